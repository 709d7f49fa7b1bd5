import MessagingWire

/// What a connection has to do for the filters of a client: packets that may be due, and those that have no answer.
struct FilterWork: Sendable {
    /// Filters of which something has changed on this connection, so that a packet may be due. Some may be here twice.
    var changed: [ByteKey] = []
    /// The filters that have to be answered before the first PUBLISH of this connection.
    var first: Set<ByteKey> = []
    /// The SUBSCRIBE and UNSUBSCRIBE packets that have no answer, by their packet identifiers.
    private(set) var inFlight: [UInt16: MQTTFilterRequest] = [:]
    /// The packet identifiers of requests whose answers are late, and ignored when they come.
    private(set) var late: [UInt16: FilterRecord.Packet] = [:]
    /// When answers will be late, in that order, with the identifiers. Some of these requests have been answered since, or
    /// have got more time; not the first that counts.
    private var deadlines: [(time: Int64, id: UInt16)] = []
    /// The place of the first deadline that counts.
    private var firstDeadline = 0
    /// When PINGREQ was written that was answered last.
    var answeredUpTo = Int64.min

    var isEmpty: Bool { changed.isEmpty && first.isEmpty && inFlight.isEmpty && late.isEmpty }

    mutating func add(_ request: MQTTFilterRequest) {
        inFlight[request.packetID] = request
        setDeadline(of: request.packetID, request.deadline)
    }

    mutating func answered(_ id: UInt16) {
        inFlight[id] = nil
        forgetDeadlines()
    }

    mutating func late(_ request: MQTTFilterRequest) {
        answered(request.packetID)
        late[request.packetID] = request.packet
    }

    mutating func lateAnswered(_ id: UInt16, _ packet: FilterRecord.Packet) -> Bool {
        guard late[id] == packet else { return false }
        late[id] = nil
        return true
    }

    // MARK: Deadlines

    /// When the next answer is late; `Int64.max` for never.
    var deadline: Int64 { firstDeadline < deadlines.count ? deadlines[firstDeadline].time : .max }

    func firstLate(at now: Int64) -> MQTTFilterRequest? {
        deadline <= now && deadline != .max ? inFlight[deadlines[firstDeadline].id] : nil
    }

    mutating func postpone(_ request: MQTTFilterRequest, until deadline: Int64, counts: Bool) {
        if counts { inFlight[request.packetID]?.postponements += 1 }
        setDeadline(of: request.packetID, deadline)
        forgetDeadlines()
    }

    /// Not before that of another request: callers' clocks may differ by a little.
    private mutating func setDeadline(of id: UInt16, _ wanted: Int64) {
        let deadline = max(wanted, deadlines.last?.time ?? .min)
        inFlight[id]?.deadline = deadline
        deadlines.append((deadline, id))
        guard deadlines.count > 64 + 2 * inFlight.count else { return }
        deadlines.removeAll { inFlight[$0.id]?.deadline != $0.time }
        firstDeadline = 0
    }

    /// Goes on to a deadline that counts.
    private mutating func forgetDeadlines() {
        while firstDeadline < deadlines.count {
            let (time, id) = deadlines[firstDeadline]
            if inFlight[id]?.deadline == time { return }
            firstDeadline += 1
        }
    }

    /// Stops the process where the requests contradict themselves; in debug builds only.
    func check() {
        assert(!isEmpty, "What has been done is remembered as work.")
        let next = inFlight.values.reduce(Int64.max) { min($0, $1.deadline) }
        assert(deadline == next, "Another answer is late first than is noted.")
    }
}
