import MessagingShell
import STOMPCore
import Synchronization
import Transport

/// One subscription of a user: the request to the broker, and the buffers of its receivers.
///
/// The constants may be read on any thread. The fields that change belong to the task that makes the route, and to the
/// loop's thread once the route is registered.
final class STOMPRoute: DeliveryRoute, @unchecked Sendable {
    // Sendable because the `var`s have one owner at a time, as above, and the rest is constant.
    typealias Call = PendingCall<Result<Void, STOMPError>>

    let id: String
    let token: UInt64
    let destination: String
    var name: String { destination }
    let acknowledgement: STOMPAckMode
    let options: STOMPSubscribeOptions
    let policy: BufferPolicy
    var receivers: DeliveryReceivers<STOMPBatch, STOMPError>
    /// The number of the first message of the read that is being handled, if its messages are acknowledged.
    var firstNumber: UInt64?
    /// Waits for the broker's answer to the first SUBSCRIBE.
    var call: Call?
    /// When SUBSCRIBE was first written, on any connection; `Int64.max` before that.
    var firstWritten = Int64.max
    /// Whether the broker has confirmed the subscription on any connection.
    var wasGranted = false
    /// ERROR frames in a row that named no receipt: the first may refer to another frame.
    var presumedRefusals: UInt16 = 0
    /// Connections in a row that one of its messages has ended, because it is beyond the limits.
    var endedConnections: UInt16 = 0
    /// Connections in a row that ended while SUBSCRIBE was the first without an answer.
    var unansweredEnds: UInt16 = 0
    /// Whether the connection that is ending has not answered SUBSCRIBE.
    var isUnanswered = false
    /// What is known of a subscription at the broker once it has ended here.
    enum Remainder {
        /// It ends with its connection, or the broker has confirmed its end.
        case nothing
        /// It is durable, and the broker was not asked to end it.
        case durable
        /// It is durable, and the broker has not confirmed its end.
        case unknown
        /// It is durable, and the broker has ended its consumer, but cannot be asked to delete it.
        case undeletable
    }

    var remainder: Remainder

    /// A receiver with acknowledgements is bounded by the broker's prefetch, and by pausing where it has none.
    func heldUp(by batch: STOMPBatch) -> HeldUp? {
        policy.overflow == .pauseReading || acknowledgement != .auto ? .reading : nil
    }

    init(
        id: String, token: UInt64, destination: String, acknowledgement: STOMPAckMode, options: STOMPSubscribeOptions,
        policy: BufferPolicy, replies: STOMPClientCore.Replies? = nil
    ) {
        self.id = id
        self.token = token
        self.destination = destination
        self.acknowledgement = acknowledgement
        self.options = options
        self.policy = policy
        remainder = options.durableName == nil ? .nothing : .durable
        receivers = DeliveryReceivers(replies: replies)
    }
}
