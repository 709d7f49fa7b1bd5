import MQTTCore
import Messaging

/// One subscription of a user: where the messages that match its filter go.
final class MQTTRoute: DeliveryRoute, @unchecked Sendable {
    // Sendable because the fields that change are touched on the loop's thread only.
    typealias Queue = DeliveryQueue<MQTTBatch, MQTTError>

    /// What the user asked for; nothing for the route of messages that nobody else gets.
    let requests: [MQTTSubscriptionRequest]
    /// What SUBSCRIBE says beside them.
    let properties: MQTTProperties
    /// The places in `requests` whose filters match topics that others match as well, so that brokers may send several
    /// copies of a message; nothing where copies cannot be told apart.
    let overlapping: [Int]
    /// Filters that the server does not grant any more.
    var lostFilters = 0
    let policy: BufferPolicy
    let acknowledgement: MQTTAcknowledgement
    private(set) var queues: [Queue] = []
    /// Messages of the read under way, as indexes into its records.
    var pending: [UInt32] = []

    init(
        requests: [MQTTSubscriptionRequest], properties: MQTTProperties = [], policy: BufferPolicy,
        acknowledgement: MQTTAcknowledgement
    ) {
        self.requests = requests
        self.properties = properties
        overlapping = Self.overlapping(requests, properties)
        self.policy = policy
        self.acknowledgement = acknowledgement
    }

    private var end: Queue.Next?

    func add(_ queue: Queue) {
        if let end { return queue.finish(end) }
        queues.append(queue)
    }

    func remove(_ queue: Queue) { queues.removeAll { $0 === queue } }

    /// Whether some receiver's bound is reached.
    var isFull: Bool { queues.contains { $0.isFull } }

    func finish(_ end: Queue.Next) {
        if self.end == nil { self.end = end }
        for queue in queues { queue.finish(end) }
        queues = []
    }
}
