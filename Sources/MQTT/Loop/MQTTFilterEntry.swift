import MQTTCore
import MessagingShell
import MessagingWire

/// A filter that one or more routes want, on the loop's thread. What the server has of it is in the engine
/// (``MQTTEngine``), under the link's lock.
final class MQTTFilterEntry {
    private(set) var request: MQTTSubscriptionRequest
    /// The properties of SUBSCRIBE.
    private(set) var properties = MQTTProperties()
    /// The Subscription Identifier that this client gave it, used unless `properties` has one; 0 for none.
    var identifier: UInt32 = 0
    /// What the server sends with its messages, if it supports that; 0 for nothing.
    var sentIdentifier: UInt32 { properties.subscriptionIdentifiers.first ?? identifier }
    var routes: [MQTTRoute]
    var callers: [Caller] = []
    /// `$share/a/x`, `$share/b/x` and `x` are three filters at the server but one in the router's tree: the entry in the
    /// tree has the others here, in the order in which they were added.
    var others: [MQTTFilterEntry] = []

    /// A route that has asked for the filter and has no answer of the server yet.
    struct Caller {
        let route: MQTTRoute
        /// The call that waits for the answer; nil for a declared subscription.
        let wait: MQTTFilterWait?
        /// The place of the filter among those of the route.
        let index: Int
        /// The caller awaits the answer to the first SUBSCRIBE of the filter whose token is not lower.
        let token: UInt64
        /// When the first SUBSCRIBE was written that was to be answered and whose connection has ended.
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

    /// Adds what a further route asks for.
    ///
    /// SUBSCRIBE replaces the options of the subscription: those of the highest QoS remain.
    func add(_ added: MQTTSubscriptionRequest, of route: MQTTRoute) {
        let handlings = [request.retainHandling, added.retainHandling]
        if added.qos > request.qos {
            request = added
            setProperties(of: route)
        }
        request.retainHandling = handlings.min { $0.rawValue < $1.rawValue } ?? .doNotSend
    }

    /// Removes a route, its callers, and what it asked for; false if it has none here.
    func remove(_ route: MQTTRoute) -> Bool {
        guard let index = routes.firstIndex(where: { $0 === route }) else { return false }
        routes.remove(at: index)
        callers.removeAll { $0.route === route }
        guard let first = routes.first else { return true }
        // What the first one asks for as well remains, however many others there are.
        if requests(of: first) == requests(of: route), first.properties == route.properties { return true }
        let others = routes.flatMap { route in requests(of: route).map { (request: $0, route: route) } }
        guard let first = others.first else { return true }
        request = first.request
        setProperties(of: first.route)
        for other in others.dropFirst() { add(other.request, of: other.route) }
        return true
    }

    /// What a route asks for with this filter.
    private func requests(of route: MQTTRoute) -> [MQTTSubscriptionRequest] {
        route.requests.filter { $0.filter.hasSameBytes(as: request.filter) }
    }

    private func setProperties(of route: MQTTRoute) {
        properties = route.properties
    }

    /// Whether it is wanted for replies to requests alone, whose topic no other client and no later process uses.
    var areReplies: Bool { routes.allSatisfy(\.receivers.areRequests) }

    /// The routes that await no answer, so that the server has granted them the filter.
    var answeredRoutes: [MQTTRoute] {
        let waiting = Set(callers.map { ObjectIdentifier($0.route) })
        return routes.filter { !waiting.contains(ObjectIdentifier($0)) }
    }

    /// Takes the callers that the answer to this SUBSCRIBE is for.
    func takeCallers(of token: UInt64) -> [Caller] { takeCallers { $0.token <= token } }

    /// Takes the callers that meet a condition.
    func takeCallers(where isTaken: (Caller) -> Bool) -> [Caller] {
        guard callers.contains(where: isTaken) else { return [] }
        let taken = callers.filter(isTaken)
        callers.removeAll(where: isTaken)
        // An idle client keeps no memory for callers.
        if callers.isEmpty { callers = [] }
        return taken
    }
}
