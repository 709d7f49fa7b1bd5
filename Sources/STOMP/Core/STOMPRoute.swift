import Messaging
import STOMPCore

/// One subscription of a user: what is asked of the broker, and where its messages go.
final class STOMPRoute: @unchecked Sendable {
    // Sendable because the fields that change are touched on the loop's thread only.
    typealias Queue = DeliveryQueue<STOMPBatch, STOMPError>
    typealias Waiter = UnsafeContinuation<Result<Void, STOMPError>, Never>

    let id: String
    let token: UInt64
    let destination: String
    let ack: STOMPAckMode
    let options: STOMPSubscribeOptions
    let policy: BufferPolicy
    private(set) var queues: [Queue] = []
    /// Messages of the read under way, as indexes into its records.
    var pending: [UInt32] = []
    /// Waits for the broker's answer to the first SUBSCRIBE.
    var waiter: (id: UInt64, waiter: Waiter)?
    /// Whoever subscribes was cancelled before the loop had heard of it.
    var isCancelled = false
    /// What was sent with SUBSCRIBE, which RabbitMQ wants again with UNSUBSCRIBE.
    var sentHeaders: STOMPHeaders = [:]

    init(
        id: String, token: UInt64, destination: String, ack: STOMPAckMode, options: STOMPSubscribeOptions,
        policy: BufferPolicy
    ) {
        self.id = id
        self.token = token
        self.destination = destination
        self.ack = ack
        self.options = options
        self.policy = policy
    }

    func add(_ queue: Queue) { queues.append(queue) }

    var isFull: Bool { queues.contains { $0.isFull } }

    func finish(_ end: Queue.Next) {
        for queue in queues { queue.finish(end) }
        queues = []
    }
}
