import MQTTCore
import Messaging
import Wire

/// Which subscriptions the messages of a topic go to, and which filters are subscribed at the server. On the loop's
/// thread only. `MQTTRouter+copies.swift` chooses one of several copies of a message.
final class MQTTRouter {

    /// A filter that is subscribed at the server, or will be, for one or more routes.
    final class Entry {
        var request: MQTTSubscriptionRequest
        /// The properties of SUBSCRIBE.
        var properties = MQTTProperties()
        /// The Subscription Identifier that distinguishes its messages from those of other filters; 0 for none.
        var identifier: UInt32 = 0
        var routes: [MQTTRoute] = []
        var waiters: [(wait: MQTTSubscribeWait, index: Int)] = []
        /// The server's answer on the connection that is open.
        var granted: MQTTReasonCode?
        /// The server's last answer on any connection, which remains valid while the session does.
        var lastGranted: MQTTReasonCode?
        var wasGranted: Bool { lastGranted != nil }
        /// SUBSCRIBE is written and not answered.
        var isPending = false
        /// `$share/a/x`, `$share/b/x` and `x` are three filters at the server but one in the tree: the entry in the tree
        /// has the others here, in the order in which they were added.
        fileprivate var others: [Entry] = []

        init(_ request: MQTTSubscriptionRequest) {
            self.request = request
        }
    }

    /// A SUBSCRIBE or UNSUBSCRIBE that is not answered yet.
    struct Request {
        var keys: [ByteKey]
        /// It precedes the messages of a new connection, and the connection ends if the answer is late.
        var comesFirst: Bool
        /// The filters of an UNSUBSCRIBE.
        var forgotten: [String] = []
    }

    /// The routes of a topic index of the engine's cache.
    private struct CachedTopic {
        var generation: UInt64 = 0
        var topic = ""
        var routes: [MQTTRoute] = []
        var copies: [MQTTCopies] = []
    }

    /// Callers that wait for UNSUBACK, by the token of the request.
    var unsubscribes = PendingCalls<MQTTUnsubscribeResult, MQTTError>()
    private(set) var entries: [ByteKey: Entry] = [:]
    private var tree = MQTTFilterTree<Entry>()
    private var topics: [CachedTopic] = []
    /// The indexes of valid entries in `topics`.
    private var knownTopics: [Int] = []
    private var requests: [UInt64: Request] = [:]
    private var nextToken: UInt64 = 1
    /// Filters without a subscription that the server may still have in a session, because UNSUBSCRIBE could not be sent
    /// or was not answered.
    private var toForget: Set<ByteKey> = []
    /// Whether there is a subscription to which the server may send several copies of a message. Never reset, since it
    /// only costs time.
    var selectsCopies = false
    /// Begins at random in the upper half, so that messages of a resumed session, whose identifiers an earlier process
    /// chose, are not mistaken for copies.
    private var nextIdentifier = UInt32.random(in: 134_217_728...250_000_000)
    /// Receives the messages that no filter matches; nil to drop them.
    var unmatched: MQTTRoute?

    // MARK: Topics

    func topic(at index: UInt32) -> String { topics[Int(index)].topic }

    func routes(at index: UInt32) -> [MQTTRoute] { topics[Int(index)].routes }

    func copies(at index: UInt32) -> [MQTTCopies] { topics[Int(index)].copies }

    /// Looks up the routes of a topic index, unless they are known.
    @inline(__always)
    func prepare(_ index: UInt32, generation: UInt64, topic: @autoclosure () -> String) {
        let position = Int(index)
        if position < topics.count, topics[position].generation == generation { return }
        remember(position, generation, topic())
    }

    private func remember(_ position: Int, _ generation: UInt64, _ topic: String) {
        while topics.count <= position { topics.append(CachedTopic()) }
        if topics[position].generation == 0 { knownTopics.append(position) }
        let routes = match(topic)
        topics[position] = CachedTopic(
            generation: generation, topic: topic, routes: routes, copies: copies(for: routes, of: topic))
    }

    private func match(_ topic: String) -> [MQTTRoute] {
        var routes: [MQTTRoute] = []
        let bytes = Array(topic.utf8)
        unsafe tree.forEachMatch(bytes.span.bytes) { entry in
            Self.add(entry.routes, to: &routes)
            for other in entry.others { Self.add(other.routes, to: &routes) }
        }
        if routes.isEmpty, let unmatched { routes = [unmatched] }
        return routes
    }

    private static func add(_ matching: [MQTTRoute], to routes: inout [MQTTRoute]) {
        for route in matching {
            // A subscription of several filters gets a message once, however many of them match.
            if route.requests.count > 1, routes.contains(where: { $0 === route }) { continue }
            routes.append(route)
        }
    }

    /// Filters have changed: discards the known matches. Costs time in proportion to the matches since the last change.
    private func filtersChanged() {
        for position in knownTopics { topics[position].generation = 0 }
        knownTopics.removeAll(keepingCapacity: true)
    }

    /// An identifier that no other filter has. They increase, so that filters can be sorted in the order of their
    /// subscription.
    func makeIdentifier() -> UInt32 {
        defer { nextIdentifier += 1 }
        return nextIdentifier
    }

    func setUnmatched(_ route: MQTTRoute?) {
        unmatched = route
        filtersChanged()
    }

    // MARK: Filters

    /// Adds a route for one of its filters; returns the entry, and whether SUBSCRIBE has to be sent for it.
    func add(_ route: MQTTRoute, _ request: MQTTSubscriptionRequest) -> (entry: Entry, needsSubscribe: Bool) {
        let key = ByteKey(request.filter)
        if let entry = entries[key] {
            let asksMore = request.qos > entry.request.qos
            if !entry.routes.contains(where: { $0 === route }) { entry.routes.append(route) }
            if asksMore { entry.request = request }
            filtersChanged()
            return (entry, asksMore || (entry.granted == nil && !entry.isPending))
        }
        let entry = Entry(request)
        entry.routes.append(route)
        entries[key] = entry
        let inner = Self.inner(request.filter)
        if let first = tree.insert(entry, for: inner) {
            first.others.append(entry)
            tree.insert(first, for: inner)
        }
        filtersChanged()
        return (entry, true)
    }

    /// Removes a route; returns the filters that are to be unsubscribed at the server.
    func remove(_ route: MQTTRoute) -> [String] {
        if route === unmatched {
            setUnmatched(nil)
            return []
        }
        var forgotten: [String] = []
        for request in route.requests {
            let key = ByteKey(request.filter)
            guard let entry = entries[key], entry.routes.contains(where: { $0 === route }) else { continue }
            entry.routes.removeAll { $0 === route }
            if entry.routes.isEmpty {
                _ = removeEntry(key)
                forgotten.append(request.filter)
            }
        }
        filtersChanged()
        return forgotten
    }

    /// Removes a route from one filter that other routes have too.
    func withdraw(_ route: MQTTRoute, from entry: Entry) {
        entry.routes.removeAll { $0 === route }
        filtersChanged()
    }

    func removeEntry(_ key: ByteKey) -> Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        takeOut(entry, of: Self.inner(key.text))
        filtersChanged()
        return entry
    }

    /// The filter's name in the tree.
    private static func inner(_ filter: String) -> String {
        MQTTTopicFilter.shared(filter)?.filter ?? filter
    }

    private func takeOut(_ entry: Entry, of inner: String) {
        guard let first = tree.value(for: inner) else { return }
        guard first === entry else { return first.others.removeAll { $0 === entry } }
        guard let next = first.others.first else {
            tree.remove(inner)
            return
        }
        next.others = Array(first.others.dropFirst())
        first.others = []
        tree.insert(next, for: inner)
    }

    // MARK: Requests without an answer

    func makeRequest(for keys: [ByteKey], comesFirst: Bool = false) -> UInt64 {
        defer { nextToken += 1 }
        requests[nextToken] = Request(keys: keys, comesFirst: comesFirst)
        for key in keys { entries[key]?.isPending = true }
        return nextToken
    }

    func takeRequest(_ token: UInt64) -> Request? {
        requests.removeValue(forKey: token)
    }

    /// The same for UNSUBSCRIBE.
    func makeRequest(forgetting filters: [String]) -> UInt64 {
        defer { nextToken += 1 }
        requests[nextToken] = Request(keys: [], comesFirst: false, forgotten: filters)
        return nextToken
    }

    /// Filters are to be unsubscribed as soon as there is a connection.
    func forgetLater(_ filters: [String]) {
        for filter in filters { toForget.insert(ByteKey(filter)) }
    }

    /// Takes the filters that have to be unsubscribed at a server that resumed the session.
    func takeFiltersToForget() -> [String] {
        defer { toForget = [] }
        return toForget.filter { entries[$0] == nil }.map(\.text)
    }

    /// The connection has closed: no filter is granted and no request will be answered.
    func connectionClosed() {
        for request in requests.values { forgetLater(request.forgotten) }
        requests.removeAll()
        for entry in entries.values {
            entry.granted = nil
            entry.isPending = false
        }
    }

    func takeAllEntries() -> [Entry] {
        let all = Array(entries.values)
        entries = [:]
        tree = MQTTFilterTree()
        filtersChanged()
        return all
    }
}
