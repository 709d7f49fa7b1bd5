import MessagingWire

/// A message in a queue.
package struct QueuedMessage: Sendable, Comparable {
    package var message: Message
    /// The number that its `message-id` says, the same for every delivery.
    package var number: UInt64
    /// How often it was delivered already.
    package var deliveries = 0
    /// Whether a consumer has rejected it, and it was to be delivered once more.
    var wasRejected = false

    package static func < (one: QueuedMessage, other: QueuedMessage) -> Bool { one.number < other.number }
    package static func == (one: QueuedMessage, other: QueuedMessage) -> Bool { one.number == other.number }
}

/// A queue: messages that wait, and those who consume them.
///
/// No message is compared with a selector twice, and none is looked at while no consumer that accepts it has room: consumers
/// with equal selectors form a group, and messages that the same groups accept wait in one lane.
struct QueueRecord: Sendable {
    private struct Group {
        /// Nil accepts every message.
        var selector: Selector?
        var consumerCount = 0
        /// Who is served next, in turns. Some may have no room, or have left.
        var turns = Ring<(number: UInt64, consumer: Int)>()

        func accepts(_ message: Message) -> Bool { selector?.accepts(message.stompHeaders) ?? true }
    }

    private var groups: [Group] = []
    /// Messages by the numbers of the groups that accept them.
    private var lanes: [[Int]: Heap<QueuedMessage>] = [:]
    /// The groups of the consumers.
    private var members: [Int: Int] = [:]
    private var nextTurn: UInt64 = 0
    private(set) var count = 0
    private(set) var bytes = 0

    /// The connection that a temporary queue belongs to.
    var owner: Router.ConnectionID?
    /// The topics whose messages it collects for a subscription; nil for a queue that clients send to.
    var topics: Destination?
    /// Which of these messages it collects; nil for all.
    var selector: Selector?

    var isEmpty: Bool { count == 0 }
    /// All messages in their order.
    var messages: [QueuedMessage] { lanes.values.flatMap(\.items).sorted() }
    var consumers: Dictionary<Int, Int>.Keys { members.keys }

    // MARK: Messages

    /// Puts a message where its number belongs.
    mutating func insert(_ entry: QueuedMessage) {
        lanes[groups.indices.filter { groups[$0].accepts(entry.message) }, default: Heap()].insert(entry)
        count += 1
        bytes += entry.message.size
    }

    /// Drops the oldest messages until it is within its bounds; returns how many.
    mutating func dropExcess(over limits: LoopbackBrokerLimits) -> Int {
        var dropped = 0
        while count > max(0, limits.maximumQueueMessages) || bytes > max(0, limits.maximumQueueBytes) {
            guard let oldest = oldestLane(where: { _ in true }) else { break }
            _ = removeFirst(of: oldest)
            dropped += 1
        }
        return dropped
    }

    /// Takes the oldest message that a consumer with room accepts, and that consumer, whose turn it is.
    ///
    /// - Parameter hasRoom: whether a consumer can take a message now. One that cannot loses its turn until ``addTurn(of:)``.
    /// - Parameter passedOver: gets the consumers that have lost their turns.
    mutating func next(
        passedOver: inout [Int], where hasRoom: (Int) -> Bool
    ) -> (entry: QueuedMessage, consumer: Int)? {
        for group in groups.indices {
            while let turn = groups[group].turns.first, members[turn.consumer] != group || !hasRoom(turn.consumer) {
                _ = groups[group].turns.popFirst()
                if members[turn.consumer] == group { passedOver.append(turn.consumer) }
            }
        }
        guard let lane = oldestLane(where: { $0.contains { !groups[$0].turns.isEmpty } }),
            let group = lane.filter({ !groups[$0].turns.isEmpty }).min(by: { turn(of: $0) < turn(of: $1) }),
            let consumer = groups[group].turns.popFirst()?.consumer, let entry = removeFirst(of: lane)
        else { return nil }
        addTurn(of: consumer)
        return (entry, consumer)
    }

    private func turn(of group: Int) -> UInt64 { groups[group].turns.first?.number ?? .max }

    /// The lane with the oldest message of those that meet the condition.
    private func oldestLane(where isMeant: ([Int]) -> Bool) -> [Int]? {
        var oldest: (lane: [Int], number: UInt64)?
        for (lane, messages) in lanes where isMeant(lane) {
            guard let number = messages.first?.number, number < oldest?.number ?? .max else { continue }
            oldest = (lane, number)
        }
        return oldest?.lane
    }

    private mutating func removeFirst(of lane: [Int]) -> QueuedMessage? {
        guard let entry = lanes[lane]?.popFirst() else { return nil }
        if lanes[lane]?.first == nil { lanes[lane] = nil }
        count -= 1
        bytes -= entry.message.size
        return entry
    }

    // MARK: Consumers

    mutating func add(_ consumer: Int, _ selector: Selector?) {
        let group = makeGroup(selector)
        groups[group].consumerCount += 1
        members[consumer] = group
        addTurn(of: consumer)
    }

    mutating func remove(_ consumer: Int) {
        guard let group = members.removeValue(forKey: consumer) else { return }
        groups[group].consumerCount -= 1
        // A selector that is used again finds its messages, until there are many that nobody uses.
        if groups.lazy.filter({ $0.consumerCount == 0 }).count > groups.count / 2 + 8 { forgetGroups() }
    }

    /// A consumer has its turn after all others.
    mutating func addTurn(of consumer: Int) {
        guard let group = members[consumer] else { return }
        nextTurn += 1
        groups[group].turns.append((nextTurn, consumer))
    }

    private mutating func makeGroup(_ selector: Selector?) -> Int {
        if let known = groups.firstIndex(where: { $0.selector?.text == selector?.text }) { return known }
        groups.append(Group(selector: selector))
        sortMessages()
        return groups.count - 1
    }

    /// Forgets selectors that no consumer has.
    private mutating func forgetGroups() {
        var places: [Int: Int] = [:]
        var left: [Group] = []
        for (place, group) in groups.enumerated() where group.consumerCount > 0 {
            places[place] = left.count
            left.append(group)
        }
        groups = left
        members = members.compactMapValues { places[$0] }
        sortMessages()
    }

    private mutating func sortMessages() {
        let all = messages
        lanes = [:]
        (count, bytes) = (0, 0)
        for entry in all { insert(entry) }
    }
}
