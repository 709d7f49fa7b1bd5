import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization

/// One subscription: where the messages that match its filters go.
///
/// The constants may be read on any thread. The fields that change belong to the task that makes the route, and to the
/// loop's thread once the route is registered.
final class MQTTRoute: DeliveryRoute, @unchecked Sendable {
    // Sendable because the fields that change have one owner at a time, as above.
    /// The filters and their options; empty for the route of messages that no other route gets.
    let requests: [MQTTSubscriptionRequest]
    var name: String { requests.map(\.filter).joined(separator: ", ") }
    /// The properties of SUBSCRIBE.
    let properties: MQTTProperties
    /// The number of different filters, without those that the server has refused.
    var filtersLeft: Int32
    /// The highest QoS that the server has granted, -1 before it has granted any; read on any thread.
    private let granted = Atomic<Int8>(-1)
    let policy: BufferPolicy
    let acknowledgement: MQTTAcknowledgement
    var receivers: DeliveryReceivers<MQTTBatch, MQTTError>

    init(
        requests: [MQTTSubscriptionRequest], properties: MQTTProperties = [], policy: BufferPolicy,
        acknowledgement: MQTTAcknowledgement, replies: MQTTClientCore.Replies? = nil
    ) {
        self.requests = requests
        self.properties = properties
        filtersLeft = Int32(requests.count > 1 ? Set(requests.map { ByteKey($0.filter) }).count : requests.count)
        self.policy = policy
        self.acknowledgement = acknowledgement
        receivers = DeliveryReceivers(replies: replies)
    }

    /// The highest QoS that the server has granted to one of the filters; nil before.
    var grantedQoS: QoS? { UInt8(exactly: granted.load(ordering: .relaxed)).flatMap(QoS.init(rawValue:)) }

    /// The server has granted one of the filters, with this code.
    func noteGranted(_ code: MQTTReasonCode) {
        guard let qos = QoS(rawValue: code.rawValue) else { return }
        granted.max(Int8(qos.rawValue), ordering: .relaxed)
    }

    /// Messages of QoS 0 hold up reading where none may be dropped. Those of QoS 1 and 2 hold up their acknowledgements.
    func heldUp(by batch: MQTTBatch) -> HeldUp? {
        if policy.overflow == .pauseReading, batch.records.contains(where: { $0.delivery == 0 }) { return .reading }
        let withholds = acknowledgement == .automatic && batch.records.contains { $0.delivery != 0 }
        return withholds ? .acknowledgements : nil
    }

    /// What it asks for with a filter.
    func request(of entry: MQTTFilterEntry) -> MQTTSubscriptionRequest? {
        requests.first { $0.filter.hasSameBytes(as: entry.request.filter) }
    }

    /// Hands responses to their requests; those that no request waits for any more are dropped.
    func receiveReplies(_ batch: MQTTBatch) { _ = receivers.replies?.receive(batch) }
}
