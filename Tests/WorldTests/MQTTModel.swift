import MQTT
import Synchronization

@testable import LoopbackBroker

/// What a receiver may and must have received: QoS 0 at most once and in order, QoS 1 at least once with first deliveries in
/// order, QoS 2 exactly once, also over the end of a process with a store; what was enqueued arrives or is reported as
/// undelivered; possible duplicates are reported when a server has lost the session, and only then. What a worker has not
/// acknowledged comes again, and what it has acknowledged with QoS 2 does not. And what else a world
/// notices: a cancelled call ends at once, a released subscription receives nothing, subscriptions precede messages
/// after a reconnect, and unfinished messages precede the queue. Every message arrives whole. A client stops by itself only
/// for reasons that do not pass. Each CONNECT has the will; it is published for each connection that ends without
/// DISCONNECT, and for no other, and the last packet of every client is DISCONNECT.
final class MQTTModel: Sendable {
    private struct Topic {
        var succeeded: Set<Int> = []
        var enqueued: Set<Int> = []
        var received: [Int] = []
        /// When each was begun, among all messages, and its text.
        var places: [Int: Int] = [:]
        var texts: [Int: String] = [:]
        /// Processed by the worker, which has acknowledged them, with its turn then.
        var processed: [Int: Int] = [:]
        /// How often the worker received each, by its turns.
        var turns: [Int: [Int: Int]] = [:]
    }

    /// Where the worker stands. Between two of its turns its process ends, or it disconnects or stops.
    private struct Work {
        var turn = 0
        /// The first turn of its process.
        var firstTurn = 0
        /// How often its store has failed in this process.
        var failures = 0
        /// The turns that ended because the worker disconnected.
        var turnsLeft: Set<Int> = []
    }

    /// What the broker saw of the connections of a client.
    private struct Leaving {
        var isConnected = false
        var last: LoopbackPacket?
        /// Connections that ended without DISCONNECT.
        var unannounced = 0
    }

    private let world: Simulation
    let serverForgets: Bool
    /// No connection ends before the world does.
    let isUnbroken: Bool
    private let topics = Mutex<[String: Topic]>([:])
    private let isOutOfOrder = Atomic(false)
    private let isSentOutOfOrder = Atomic(false)
    private let count = Atomic(0)
    private let late = Atomic(0)
    private let undeliveredCount = Atomic(0)
    private let lossCount = Atomic(0)
    private let duplicateCount = Atomic(0)
    private let anewCount = Atomic(0)
    private let isGrantedLess = Atomic(false)
    private let isRefused = Atomic(false)
    private let work = Mutex(Work())
    private let stops = Atomic(0)
    private let left = Mutex<Set<String>>([])
    private let damage = Mutex("")
    private let broken = Mutex("")
    private let leaving = Mutex<[String: Leaving]>([:])
    private let longestCancellation = Mutex<(name: String, time: Duration)>(("", .zero))

    init(serverForgets: Bool, isUnbroken: Bool, _ world: Simulation) {
        self.world = world
        self.serverForgets = serverForgets
        self.isUnbroken = isUnbroken
    }

    /// What a client did that it must not do; the first counts.
    func broke(_ text: String) {
        world.noteViolation(text)
        broken.withLock { if $0.isEmpty { $0 = text } }
    }

    /// Why clients stopped that kept no promise by it.
    private static let reasonsToStop: Set<MQTTError.Code> = [.takenOver, .storeFailed]

    /// A client has stopped by itself: what else may happen in a world passes, so that it has to try again.
    func stopped(_ name: String, _ reason: MQTTError) {
        guard isUnbroken || !Self.reasonsToStop.contains(reason.code) else { return }
        broke("the \(name) has stopped: \(reason)")
    }

    /// What arrives of a client.
    ///
    /// - Parameter hasWill: whether each CONNECT has to have the will.
    func arrived(_ arrival: LoopbackArrival, hasWill: Bool) {
        if arrival.packet == .mqtt(.connect), arrival.hasWill != hasWill {
            broke("a CONNECT of the \(arrival.client) has \(hasWill ? "no" : "a") will")
        }
        leaving.withLock { leaving in
            var client = leaving[arrival.client] ?? Leaving()
            if arrival.packet == .mqtt(.connect) {
                if client.isConnected { client.unannounced += 1 }
                client.isConnected = true
            }
            if arrival.packet == .mqtt(.disconnect) { client.isConnected = false }
            client.last = arrival.packet
            leaving[arrival.client] = client
        }
    }

    /// How often the receiver has stopped connecting, as far as that was noticed.
    var receiverStops: Int { stops.load(ordering: .relaxed) }
    func receiverStopped() { stops.add(1, ordering: .relaxed) }

    /// Filters that a stopped receiver left in its session, and that it has not subscribed and unsubscribed again since.
    var filtersLeft: Set<String> { left.withLock { $0 } }
    func ended(_ filter: String, byStop: Bool) {
        left.withLock { left in
            if byStop { left.insert(filter) } else { left.remove(filter) }
        }
    }

    /// The receiver was granted less than QoS 2, for good: the end of a connection may lose or repeat messages.
    func grantedLess() { isGrantedLess.store(true, ordering: .relaxed) }
    private var wasGrantedLess: Bool { isGrantedLess.load(ordering: .relaxed) }

    /// Whether the client gave up a message as refused; the broker refuses none.
    var wasRefused: Bool { isRefused.load(ordering: .relaxed) }
    func failed(_ error: any Error) {
        if (error as? MQTTError)?.code == .refused { isRefused.store(true, ordering: .relaxed) }
    }

    func publishedFirst() { isOutOfOrder.store(true, ordering: .relaxed) }
    func sentOutOfOrder() { isSentOutOfOrder.store(true, ordering: .relaxed) }
    func undelivered() { undeliveredCount.add(1, ordering: .relaxed) }
    func damaged(_ text: String) { damage.withLock { $0 = text } }

    func sessionLost(_ possibleDuplicates: Int, wasConnected: Bool) {
        if wasConnected { lossCount.add(1, ordering: .relaxed) }
        duplicateCount.add(possibleDuplicates, ordering: .relaxed)
    }

    /// A message of QoS 2 was published again under a new identifier.
    func sentAnew() { anewCount.add(1, ordering: .relaxed) }

    func workBegins() { work.withLock { $0.turn += 1 } }
    /// Before the next process opens its store, which may fail before the worker begins.
    func workProcessEnds() { work.withLock { ($0.firstTurn, $0.failures) = ($0.turn + 1, 0) } }
    func workIsLeft() { work.withLock { if $0.failures == 0 { $0.turnsLeft.insert($0.turn) } } }
    func workStoreFails() { work.withLock { $0.failures += 1 } }

    /// The worker receives a message.
    func delivered(_ topic: String, _ text: String?) {
        received(topic, text)
        guard let number = text.flatMap({ Self.number($0) }) else { return }
        let work = work.withLock { $0 }
        topics.withLock { topics in
            topics[topic]?.turns[number, default: [:]][work.turn, default: 0] += 1
            guard topic.hasSuffix("/2"), !wasGrantedLess, let state = topics[topic], let turns = state.turns[number]
            else { return }
            guard work.failures == 0 else {
                // A store that does not hold a message of QoS 2 lets it come again. What came before the failure may be read
                // after it, so that the copies of a turn cannot be told apart, but counted.
                let copies = turns.reduce(0) { $1.key < work.firstTurn ? $0 : $0 + $1.value }
                let most = work.turn - work.firstTurn + 1 + work.failures
                if copies > most { broke("\(topic) \(number) came \(copies) times to one process, \(most) may be") }
                return
            }
            if turns[work.turn] != 1 { broke("\(topic) \(number) came twice to one process") }
            if let done = state.processed[number], work.turnsLeft.contains(done) || done == work.turn {
                broke("\(topic) \(number) came again after it was acknowledged")
            }
        }
    }

    /// The worker acknowledges a message.
    func processed(_ topic: String, _ text: String) {
        guard let number = Self.number(text) else { return }
        let work = work.withLock { $0 }
        // While it disconnects, an acknowledgement may come too late, and a store that fails does not hold it.
        let isLate = work.turnsLeft.contains(work.turn) || work.failures > 0
        topics.withLock { topics in
            // For one of before its client has stopped it does nothing.
            guard topics[topic]?.turns[number]?[work.turn] != nil else { return }
            topics[topic]?.processed[number] = isLate ? 0 : work.turn
        }
    }

    /// The worker acknowledges a message that it received before it disconnected, and that the store may hold still.
    func processedEarlier(_ topic: String, _ text: String) {
        guard let number = Self.number(text) else { return }
        // It may come again all the same, if the client had no connection.
        topics.withLock { topics in if topics[topic]?.processed[number] == nil { topics[topic]?.processed[number] = 0 }
        }
    }

    /// Counts messages that were begun.
    var now: Int { count.load(ordering: .relaxed) }

    func began(_ topic: String, _ number: Int, _ text: String) {
        let place = count.add(1, ordering: .relaxed).newValue
        topics.withLock { topics in
            topics[topic, default: Topic()].places[number] = place
            topics[topic]?.texts[number] = text
        }
    }

    func ended(_ topic: String, _ number: Int) { topics.withLock { _ = $0[topic]?.succeeded.insert(number) } }
    func enqueued(_ topic: String, _ number: Int) { topics.withLock { _ = $0[topic]?.enqueued.insert(number) } }

    private static func number(_ text: String) -> Int? { Int(text.prefix { $0 != " " }) }

    /// The number of a message that arrived somewhere, nil for the last message, and for one that nobody has published like
    /// this.
    private func number(_ topic: String, _ text: String?, at place: String) -> Int? {
        if topic == "t/end", text == "end" { return nil }
        let number = text.flatMap { Self.number($0) }
        if let number, topics.withLock({ $0[topic]?.texts[number] }) == text { return number }
        broke("\(topic) '\(text ?? "not UTF-8")' arrived at \(place), which nobody has published")
        return nil
    }

    /// The broker received this of the sender: it is as it was published.
    func arrivedAtBroker(_ topic: String, _ payload: [UInt8]) {
        _ = number(topic, String(validating: payload, as: UTF8.self), at: "the broker")
    }

    /// When a message was begun, among all.
    func place(of topic: String, _ text: String) -> Int? {
        Self.number(text).flatMap { number in topics.withLock { $0[topic]?.places[number] } }
    }

    /// What was read, repetitions included.
    var receivedCount: Int { topics.withLock { $0.values.reduce(0) { $0 + $1.received.count } } }

    func received(_ topic: String, _ text: String?) {
        guard let number = number(topic, text, at: "the receiver") else { return }
        topics.withLock { $0[topic, default: Topic()].received.append(number) }
    }

    /// A subscription that was released received this.
    func received(_ topic: String, _ text: String, after release: Int) {
        if let place = place(of: topic, text), place > release { late.add(1, ordering: .relaxed) }
    }

    /// Cancels a call and waits for its end.
    func cancel(_ call: Task<Void, Never>, _ name: String, _ world: Simulation) async {
        call.cancel()
        let start = world.clock.now
        await call.value
        let time = start.duration(to: world.clock.now)
        longestCancellation.withLock { if time > $0.time { $0 = (name, time) } }
    }

    func check(_ world: Simulation) throws {
        try world.require(
            !isOutOfOrder.load(ordering: .relaxed), "a client published before it had subscribed again")
        try world.require(
            !isSentOutOfOrder.load(ordering: .relaxed), "the sender did not publish in the order of its messages")
        try world.require(
            late.load(ordering: .relaxed) == 0, "a subscription received what was published after its end")
        let broken = broken.withLock { $0 }
        try world.require(broken.isEmpty, "\(broken)")
        let damage = damage.withLock { $0 }
        try world.require(damage.isEmpty, "the store is damaged: \(damage)")
        let longest = longestCancellation.withLock { $0 }
        try world.require(longest.time == .zero, "a cancelled call for \(longest.name) ended after \(longest.time)")
        let (losses, possible) = (lossCount.load(ordering: .relaxed), duplicateCount.load(ordering: .relaxed))
        try world.require(serverForgets || losses == 0, "\(losses) lost sessions were reported, but none was lost")
        var (lostCount, duplicates) = (0, 0)
        for (name, topic) in topics.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let numbers = topic.received
            let first = numbers.indices.filter { !numbers[..<$0].contains(numbers[$0]) }.map { numbers[$0] }
            let isWork = !topic.turns.isEmpty
            let arrived = isWork && !name.hasSuffix("/0") ? Array(topic.processed.keys) : numbers
            let lost = topic.succeeded.subtracting(arrived)
            try world.require(first == first.sorted(), "\(name) received \(numbers), out of order")
            lostCount += topic.enqueued.subtracting(numbers).count
            if isUnbroken || !name.hasSuffix("/0") && !serverForgets && !wasGrantedLess {
                try world.require(lost.isEmpty, "\(name) lost \(lost.sorted())")
            }
            if name.hasSuffix("/2"), !isWork, !wasGrantedLess { duplicates += numbers.count - first.count }
            if name.hasSuffix("/0") || isUnbroken {
                try world.require(first == numbers, "\(name) received \(numbers): some more than once")
            }
        }
        let users = WorldUsers(world)
        for (name, client) in leaving.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            // One with the old password is refused, and the client may disconnect before the next.
            let wasRefused = users.hasUsers && client.last == .mqtt(.connect)
            try world.require(
                client.last == .mqtt(.disconnect) || wasRefused,
                "the last packet of the \(name) is \(client.last.map { "\($0)" } ?? "none"), not DISCONNECT")
        }
        let reported = undeliveredCount.load(ordering: .relaxed)
        try world.require(
            !isUnbroken || reported == 0, "\(reported) messages were reported as undelivered, but none was lost")
        try world.require(
            serverForgets || lostCount <= reported,
            "\(lostCount) enqueued messages were lost, but \(reported) reported as undelivered")
        let anew = anewCount.load(ordering: .relaxed)
        try world.require(
            anew <= possible, "\(anew) messages of QoS 2 were published again as new, but \(possible) were reported")
        try world.require(
            duplicates <= possible, "\(duplicates) messages of QoS 2 came twice, but \(possible) were reported")
    }

    /// Compares the wills that the broker has published with the connections that ended without DISCONNECT.
    func check(wills: [String], _ world: Simulation) throws {
        for (name, client) in leaving.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let count = wills.count { $0 == name }
            try world.require(
                count == client.unannounced,
                "the will of the \(name) was published \(count) times, but \(client.unannounced) connections ended without DISCONNECT"
            )
        }
    }
}
