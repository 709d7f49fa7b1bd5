import MQTTCore
import MessagingShell
import MessagingWire

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
    /// The server's last grant in the session that it has, on any of its connections.
    var lastGranted: MQTTReasonCode?
    /// Whether any session of the server has granted the filter.
    private(set) var wasGranted = false
    /// The first SUBSCRIBE that was written for it; 0 for none, so that no session has it.
    private(set) var firstRequest: UInt64 = 0
    /// The SUBSCRIBE that was written last and is not answered; 0 for none.
    var pending: UInt64 = 0
    /// Whether the session of the server may differ from ``lastGranted``: a SUBSCRIBE was not answered or not written,
    /// or the session may be another.
    var isUncertain = false
    /// Whether routes have gone that the SUBSCRIBE asked for that was written last: the next one asks for something else.
    private(set) var asksLess = false
    /// Whether the server of this connection has granted the filter, or is about to answer.
    var isAtServer: Bool { granted != nil || pending != 0 }
    /// `$share/a/x`, `$share/b/x` and `x` are three filters at the server but one in the router's tree: the entry in the
    /// tree has the others here, in the order in which they were added.
    var others: [MQTTFilterEntry] = []

    /// A route that has asked for the filter and has no answer of the server yet.
    struct Caller {
        let route: MQTTRoute
        /// The call that waits for the answer; nil for a declared subscription.
        let wait: MQTTSubscribeWait?
        /// The place of the filter among those of the route.
        let index: Int
        /// The SUBSCRIBE whose answer the caller awaits; 0 if it is not written yet.
        var request: UInt64
        /// When the first SUBSCRIBE was written that was to be answered, on whichever connection.
        var firstWritten = Int64.max

        var retainHandling: MQTTSubscriptionRequest.RetainHandling { route.requests[index].retainHandling }
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

    /// Removes a route, and what it asked for.
    func remove(_ route: MQTTRoute) {
        routes.removeAll { $0 === route }
        let filter = request.filter
        let others = routes.flatMap { route in
            route.requests.filter { $0.filter.hasSameBytes(as: filter) }.map { (request: $0, route: route) }
        }
        guard let first = others.first else { return }
        let before = (request, properties)
        request = first.request
        setProperties(of: first.route)
        for other in others.dropFirst() { _ = add(other.request, of: other.route) }
        if before != (request, properties) { asksLess = true }
    }

    private func setProperties(of route: MQTTRoute) {
        properties = route.properties
        if !properties.subscriptionIdentifiers.isEmpty { identifier = 0 }
    }

    /// Whether its messages are distributed among several clients.
    var isShared: Bool { MQTTTopicFilter.shared(request.filter) != nil }

    /// What the next SUBSCRIBE asks for. A server that has the subscription already repeats its retained messages only if
    /// a route that asks with this SUBSCRIBE wants them. A server that kept the session may have lost it nevertheless,
    /// and then sends the retained messages.
    ///
    /// - Parameter hasOptions: whether SUBSCRIBE can say which retained messages are wanted. Before 5.0 it cannot.
    func nextRequest(hasOptions: Bool) -> MQTTSubscriptionRequest {
        guard hasOptions, isAtServer || lastGranted != nil else { return request }
        var handlings = callers[unwritten...].map(\.retainHandling)
        if !isAtServer, request.retainHandling != .doNotSend { handlings.append(.sendIfNew) }
        var next = request
        next.retainHandling = Self.strongest(handlings)
        return next
    }

    /// The handling that brings most retained messages.
    private static func strongest(
        _ handlings: [MQTTSubscriptionRequest.RetainHandling]
    ) -> MQTTSubscriptionRequest.RetainHandling {
        handlings.min { $0.rawValue < $1.rawValue } ?? .doNotSend
    }

    /// Whether the session of the server lacks the filter, or has it with a lower QoS than the server would grant now.
    ///
    /// - Parameter allowed: the Maximum QoS of the server, nil if that is unknown.
    func lacksGrant(_ allowed: QoS?) -> Bool {
        guard let lastGranted else { return true }
        guard let allowed else { return false }
        return lastGranted.rawValue < min(allowed, request.qos).rawValue
    }

    /// The server has granted the filter, in its answer to a SUBSCRIBE.
    func grant(_ code: MQTTReasonCode, to request: UInt64) {
        granted = code
        lastGranted = code
        wasGranted = true
        // An answer to an earlier SUBSCRIBE leaves it uncertain: a later answer may still change the grant.
        if request == pending { isUncertain = false }
    }

    /// The callers whose SUBSCRIBE is not written get the answer to this one.
    func subscribeWritten(_ token: UInt64, at now: Int64) {
        pending = token
        asksLess = false
        if firstRequest == 0 { firstRequest = token }
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

    /// Takes back some of the callers that were taken: the next SUBSCRIBE is theirs.
    func takeBack(_ taken: inout [Caller], where isKept: (Caller) -> Bool) {
        for var caller in taken where isKept(caller) {
            caller.request = 0
            callers.append(caller)
        }
        taken.removeAll(where: isKept)
    }

    func connectionClosed() {
        granted = nil
        if pending != 0 { isUncertain = true }
        pending = 0
        for index in callers.indices { callers[index].request = 0 }
    }
}
