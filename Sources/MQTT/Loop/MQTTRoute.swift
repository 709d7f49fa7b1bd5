import MQTTCore
import Messaging
import Wire

/// One subscription: where the messages that match its filters go.
///
/// The constants may be read on any thread. What changes belongs to the task that makes the route, and to the loop's
/// thread once the route is registered.
final class MQTTRoute: DeliveryRoute, @unchecked Sendable {
    // Sendable because the fields that change have one owner at a time, as above.
    /// The filters and their options; empty for the route of messages that no other route gets.
    let requests: [MQTTSubscriptionRequest]
    /// The properties of SUBSCRIBE.
    let properties: MQTTProperties
    /// The places in `requests` whose filters match topics that others match as well, so that brokers may send several
    /// copies of a message; empty where copies cannot be told apart.
    let overlapping: [Int]
    /// The number of filters that the server refused.
    var lostFilters = 0
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
        self.policy = policy
        self.acknowledgement = acknowledgement
        receivers = DeliveryReceivers(replies: replies)
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

/// A filter that is subscribed at the server, or will be, for one or more routes; on the loop's thread.
final class MQTTFilterEntry {
    private(set) var request: MQTTSubscriptionRequest
    /// The properties of SUBSCRIBE.
    private(set) var properties = MQTTProperties()
    /// The Subscription Identifier that distinguishes its messages from those of other filters; 0 for none.
    var identifier: UInt32 = 0
    var routes: [MQTTRoute]
    /// In the order of their SUBSCRIBE; those whose SUBSCRIBE is not written yet are last.
    var callers: [Caller] = []
    /// The server's answer on the connection that is open.
    var granted: MQTTReasonCode?
    /// The server's last answer on any connection, which remains valid while the session does.
    var lastGranted: MQTTReasonCode?
    var wasGranted: Bool { lastGranted != nil }
    /// The SUBSCRIBE that was written last and is not answered; 0 for none.
    var pending: UInt64 = 0
    /// Whether the server of this connection has granted the filter, or is about to answer.
    var isAtServer: Bool { granted != nil || pending != 0 }
    /// `$share/a/x`, `$share/b/x` and `x` are three filters at the server but one in the router's tree: the entry in the
    /// tree has the others here, in the order in which they were added.
    var others: [MQTTFilterEntry] = []

    /// A caller that waits for the server's answer to one of its filters.
    struct Caller {
        let wait: MQTTSubscribeWait
        let index: Int
        /// The SUBSCRIBE that it waits for; 0 if that is not written yet.
        var request: UInt64
        /// When the first SUBSCRIBE that it has waited for was written, on whichever connection.
        var firstWritten = Int64.max

        var retainHandling: MQTTSubscriptionRequest.RetainHandling { wait.route.requests[index].retainHandling }
    }

    /// Grows with each entry of a router.
    let number: UInt64

    init(_ request: MQTTSubscriptionRequest, of route: MQTTRoute, number: UInt64) {
        self.request = request
        self.number = number
        routes = [route]
        setProperties(of: route)
    }

    /// Adds what a further route asks for; returns whether that is a higher QoS.
    ///
    /// SUBSCRIBE replaces the options of the subscription: those of the highest QoS remain.
    func add(_ added: MQTTSubscriptionRequest, of route: MQTTRoute) -> Bool {
        let asksMore = added.qos > request.qos
        let handlings = [request.retainHandling, added.retainHandling]
        if asksMore {
            request = added
            setProperties(of: route)
        }
        request.retainHandling = Self.strongest(handlings)
        return asksMore
    }

    /// Removes a route that the server refused, and what it asked for.
    func remove(_ route: MQTTRoute) {
        routes.removeAll { $0 === route }
        let filter = request.filter
        let others = routes.flatMap { route in
            route.requests.filter { $0.filter.hasSameBytes(as: filter) }.map { (request: $0, route: route) }
        }
        guard let first = others.first else { return }
        request = first.request
        setProperties(of: first.route)
        for other in others.dropFirst() { _ = add(other.request, of: other.route) }
    }

    private func setProperties(of route: MQTTRoute) {
        properties = route.properties
        if !properties.subscriptionIdentifiers.isEmpty { identifier = 0 }
    }

    /// Whether its messages are distributed among several clients.
    var isShared: Bool { MQTTTopicFilter.shared(request.filter) != nil }

    /// What the next SUBSCRIBE asks for. A server that has the subscription already repeats its retained messages only if
    /// a caller that waits for this SUBSCRIBE wants them. One that kept the session may have lost it nevertheless, and
    /// sends them then.
    ///
    /// - Parameter mayBeKept: whether this is the first SUBSCRIBE of a 5.0 connection whose server kept the session.
    func nextRequest(mayBeKept: Bool) -> MQTTSubscriptionRequest {
        let isKept = mayBeKept && wasGranted
        guard isAtServer || isKept else { return request }
        var handlings = callers[unwritten...].map(\.retainHandling)
        if isKept, request.retainHandling != .doNotSend { handlings.append(.sendIfNew) }
        var next = request
        next.retainHandling = Self.strongest(handlings)
        return next
    }

    /// The one that brings most retained messages.
    private static func strongest(
        _ handlings: [MQTTSubscriptionRequest.RetainHandling]
    ) -> MQTTSubscriptionRequest.RetainHandling {
        handlings.min { $0.rawValue < $1.rawValue } ?? .doNotSend
    }

    /// The callers that wait for a SUBSCRIBE that is not written get the answer to this one.
    func subscribeWritten(_ token: UInt64, at now: Int64) {
        pending = token
        for index in unwritten..<callers.count {
            callers[index].request = token
            callers[index].firstWritten = min(callers[index].firstWritten, now)
        }
    }

    /// The place of the first caller whose SUBSCRIBE is not written.
    private var unwritten: Int { (callers.lastIndex { $0.request != 0 } ?? -1) + 1 }

    /// Takes the callers that wait for the answer to this SUBSCRIBE.
    func takeCallers(of request: UInt64) -> [Caller] {
        if pending == request { pending = 0 }
        guard let start = callers.firstIndex(where: { $0.request == request }) else { return [] }
        let taken = callers[start...].prefix { $0.request == request }
        let all = Array(taken)
        callers.removeSubrange(taken.indices)
        // An idle client keeps no memory for callers.
        if callers.isEmpty { callers = [] }
        return all
    }

    /// Takes the callers that meet a condition.
    func takeCallers(where isTaken: (Caller) -> Bool) -> [Caller] {
        let taken = callers.filter(isTaken)
        callers.removeAll(where: isTaken)
        return taken
    }

    func connectionClosed() {
        granted = nil
        pending = 0
        for index in callers.indices { callers[index].request = 0 }
    }
}
