import MQTTCore
import Messaging
import Wire

/// Which subscriptions a topic goes to, and which filters the server is to know. Lives on the loop's thread.
final class MQTTRouter {

    /// A filter that is or shall be subscribed at the server, for one or more routes.
    final class Entry {
        var request: MQTTSubscriptionRequest
        /// What SUBSCRIBE says beside the filter.
        var properties = MQTTProperties()
        /// The Subscription Identifier that tells its messages from those of other filters; 0 for none.
        var identifier: UInt32 = 0
        var routes: [MQTTRoute] = []
        var waiters: [(wait: MQTTSubscribeWait, index: Int)] = []
        /// The server's answer on the connection that is open.
        var granted: MQTTReasonCode?
        /// The server's last answer on any connection, which a session keeps in force.
        var lastGranted: MQTTReasonCode?
        var wasGranted: Bool { lastGranted != nil }
        /// SUBSCRIBE is on its way.
        var isPending = false
        /// `$share/a/x`, `$share/b/x` and `x` are three filters at the server but one in the tree: the entry that stands
        /// there has the others here, in the order in which they came.
        fileprivate var others: [Entry] = []

        init(_ request: MQTTSubscriptionRequest) {
            self.request = request
        }
    }

    /// A SUBSCRIBE or UNSUBSCRIBE that awaits its answer.
    struct Request {
        var keys: [ByteKey]
        /// It is the first of its connection, and the connection ends if the answer is late.
        var comesFirst: Bool
        /// The filters of an UNSUBSCRIBE.
        var forgotten: [String] = []
    }

    /// What is known of a topic index of the engine's cache.
    private struct CachedTopic {
        var generation: UInt64 = 0
        var topic = ""
        var routes: [MQTTRoute] = []
        var copies: [MQTTCopies] = []
    }

    private(set) var entries: [ByteKey: Entry] = [:]
    private var tree = MQTTFilterTree<Entry>()
    private var topics: [CachedTopic] = []
    /// Where in `topics` something is known.
    private var knownTopics: [Int] = []
    private var requests: [UInt64: Request] = [:]
    private var nextToken: UInt64 = 1
    /// Filters without a subscription that the server may still have in a session, because it could not be asked to
    /// forget them or has not answered.
    private var toForget: Set<ByteKey> = []
    /// Whether there is a subscription that the server may send several copies of a message to. Set for good, since it
    /// only costs time.
    var selectsCopies = false
    /// Begins anywhere in the upper half, so that messages of a kept session whose identifiers an earlier process chose
    /// are not taken for copies.
    private var nextIdentifier = UInt32.random(in: 134_217_728...250_000_000)
    /// Receives what no filter matches; nil to drop it.
    var unmatched: MQTTRoute?

    // MARK: Topics

    func topic(at index: UInt32) -> String { topics[Int(index)].topic }

    func routes(at index: UInt32) -> [MQTTRoute] { topics[Int(index)].routes }

    func copies(at index: UInt32) -> [MQTTCopies] { topics[Int(index)].copies }

    /// Makes what is known of a topic index current.
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
        tree.forEachMatch(bytes.span.bytes) { entry in
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

    /// Forgets the matches: filters changed. Costs as much as was remembered since the last time.
    private func filtersChanged() {
        for position in knownTopics { topics[position].generation = 0 }
        knownTopics.removeAll(keepingCapacity: true)
    }

    /// An identifier that none of the filters has. They rise, so that filters can be subscribed in the order of their
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

    /// Removes a route; returns the filters that the server is to forget.
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

    /// Takes a route off one filter that others still want.
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

    /// What the tree knows a filter as.
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

    // MARK: Requests under way

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

    /// The server has to forget filters as soon as there is a connection.
    func forgetLater(_ filters: [String]) {
        for filter in filters { toForget.insert(ByteKey(filter)) }
    }

    /// Takes the filters that a server with our session has to forget.
    func takeFiltersToForget() -> [String] {
        defer { toForget = [] }
        return toForget.filter { entries[$0] == nil }.map(\.text)
    }

    /// The connection is gone: nothing is granted and nothing is on its way.
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
