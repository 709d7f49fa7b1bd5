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
    /// The places in `requests` whose filters match topics that others match as well, so that brokers may send several
    /// copies of a message; empty where copies cannot be told apart.
    let overlapping: [Int]
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
        overlapping = Self.overlapping(requests, properties)
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

    /// Hands responses to their requests; those that no request waits for any more are dropped.
    func receiveReplies(_ batch: MQTTBatch) { _ = receivers.replies?.receive(batch) }

    // MARK: Overlapping filters

    /// The most filters of one subscription that are compared with each other.
    static let maximumComparedFilters = 1000

    private static func overlapping(_ requests: [MQTTSubscriptionRequest], _ properties: MQTTProperties) -> [Int] {
        guard let first = requests.first, (2...maximumComparedFilters).contains(requests.count),
            properties.subscriptionIdentifiers.isEmpty,
            // Otherwise the server may send the copy of one filter only, and it would be the wrong one.
            first.retainHandling != .sendIfNew,
            requests.allSatisfy({ $0.noLocal == first.noLocal && $0.retainHandling == first.retainHandling })
        else { return [] }
        var found: Set<Int> = []
        for (index, request) in requests.enumerated() where MQTTTopicFilter.shared(request.filter) == nil {
            for other in 0..<index where MQTTTopicFilter.shared(requests[other].filter) == nil {
                if found.contains(index), found.contains(other) { continue }
                guard MQTTTopicFilter.overlap(request.filter, requests[other].filter) else { continue }
                found.insert(index)
                found.insert(other)
            }
        }
        return found.sorted()
    }
}
