import Messaging
import STOMPCore
import Synchronization
import Transport

/// One subscription of a user: what is asked of the broker, and where its messages go.
final class STOMPRoute: DeliveryRoute, @unchecked Sendable {
    // Sendable because the fields that change are touched on the loop's thread only.
    typealias Queue = DeliveryQueue<STOMPBatch, STOMPError>
    typealias Call = PendingCall<Result<Void, STOMPError>>

    let id: String
    let token: UInt64
    let destination: String
    let acknowledgement: STOMPAckMode
    let options: STOMPSubscribeOptions
    let policy: BufferPolicy
    private(set) var queues: [Queue] = []
    /// Messages of the read under way, as indexes into its records.
    var pending: [UInt32] = []
    /// Waits for the broker's answer to the first SUBSCRIBE.
    var call: Call?
    /// Refusals in a row that the broker did not put a name to: the first may have meant another frame.
    var presumedRefusals = 0
    /// Its messages answer requests; nobody iterates them.
    let isForReplies: Bool
    private let ended = Atomic(false)
    private var end: Queue.Next?

    init(
        id: String, token: UInt64, destination: String, acknowledgement: STOMPAckMode, options: STOMPSubscribeOptions,
        policy: BufferPolicy, isForReplies: Bool = false
    ) {
        self.id = id
        self.token = token
        self.destination = destination
        self.acknowledgement = acknowledgement
        self.options = options
        self.policy = policy
        self.isForReplies = isForReplies
    }

    /// A queue that comes after the end has nothing to wait for.
    func add(_ queue: Queue) {
        if let end { queue.finish(end) } else { queues.append(queue) }
    }

    /// The receiver of a queue is gone, and nobody takes its place.
    func remove(_ queue: Queue) { queues.removeAll { $0 === queue } }

    /// Whether the subscription is over; from any thread.
    var isEnded: Bool { ended.load(ordering: .acquiring) }

    var isFull: Bool { queues.contains { $0.isFull } }

    func finish(_ end: Queue.Next) {
        ended.store(true, ordering: .releasing)
        if self.end == nil { self.end = end }
        for queue in queues { queue.finish(end) }
        queues = []
    }
}
