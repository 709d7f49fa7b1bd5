import MessagingWire

/// When sessions without a connection end and their wills are due, soonest first, and in which order their clients left.
///
/// An entry counts while its session has not had a connection since: the router compares its number, ``SessionRecord/left``.
struct SessionTimes: Sendable {
    struct Entry: Comparable, Sendable {
        var time: Int64
        var session: Int
        var left: Int

        static func < (one: Entry, other: Entry) -> Bool { (one.time, one.left) < (other.time, other.left) }
    }

    private var dues = Heap<Entry>()
    private var leavers = Ring<Entry>()

    /// A session lost its connection.
    ///
    /// - Parameter times: when it ends and when its will is due; `Int64.max` for never.
    mutating func append(
        _ session: Int, left: Int, times: [Int64], sessionCount: Int, where counts: (Entry) -> Bool
    ) {
        leavers.append(Entry(time: .max, session: session, left: left))
        for time in times where time != .max { dues.insert(Entry(time: time, session: session, left: left)) }
        // Sessions that come and go leave entries behind.
        let most = 4 * sessionCount + 64
        if dues.count > most { dues = Heap(dues.items.filter(counts)) }
        if leavers.count > most { leavers.removeAll { !counts($0) } }
    }

    /// The first of these times; `Int64.max` for none.
    mutating func next(where counts: (Entry) -> Bool) -> Int64 {
        while let first = dues.first, !counts(first) { _ = dues.popFirst() }
        return dues.first?.time ?? .max
    }

    /// The sessions whose time has come.
    mutating func takeDue(at now: Int64, where counts: (Entry) -> Bool) -> Int? {
        guard next(where: counts) <= now else { return nil }
        return dues.popFirst()?.session
    }

    /// The session that has been without a connection for longest.
    mutating func oldest(where counts: (Entry) -> Bool) -> Int? {
        while let first = leavers.first {
            if counts(first) { return first.session }
            _ = leavers.popFirst()
        }
        return nil
    }
}
