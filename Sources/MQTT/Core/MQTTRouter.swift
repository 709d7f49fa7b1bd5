import MQTTCore
import Messaging

/// Which subscriptions a topic goes to, and which filters the server is to know. Lives on the loop's thread.
final class MQTTRouter {

    /// A filter that is or shall be subscribed at the server, for one or more routes.
    final class Entry {
        var request: MQTTSubscriptionRequest
        /// What SUBSCRIBE says beside the filter.
        var properties = MQTTProperties()
        var routes: [MQTTRoute] = []
        var waiters: [(wait: MQTTSubscribeWait, index: Int)] = []
        /// The server's answer on the connection that is open.
        var granted: MQTTReasonCode?
        /// The server's last answer on any connection, which a session keeps in force.
        var lastGranted: MQTTReasonCode?
        var wasGranted: Bool { lastGranted != nil }
        /// SUBSCRIBE is on its way.
        var isPending = false

        init(_ request: MQTTSubscriptionRequest) {
            self.request = request
        }
    }

    /// What is known of a topic index of the engine's cache.
    private struct CachedTopic {
        var generation: UInt64 = 0
        var topic = ""
        var routes: [MQTTRoute] = []
    }

    private(set) var entries: [FilterKey: Entry] = [:]
    private var tree = MQTTFilterTree<Entry>()
    private var topics: [CachedTopic] = []
    private var requests: [UInt64: [FilterKey]] = [:]
    private var nextToken: UInt64 = 1
    /// Receives what no filter matches; nil to drop it.
    var unmatched: MQTTRoute?

    // MARK: Topics

    func topic(at index: UInt32) -> String { topics[Int(index)].topic }

    func routes(at index: UInt32) -> [MQTTRoute] { topics[Int(index)].routes }

    /// Makes what is known of a topic index current.
    @inline(__always)
    func prepare(_ index: UInt32, generation: UInt64, topic: @autoclosure () -> String) {
        let position = Int(index)
        if position < topics.count, topics[position].generation == generation { return }
        remember(position, generation, topic())
    }

    private func remember(_ position: Int, _ generation: UInt64, _ topic: String) {
        while topics.count <= position { topics.append(CachedTopic()) }
        topics[position] = CachedTopic(generation: generation, topic: topic, routes: match(topic))
    }

    private func match(_ topic: String) -> [MQTTRoute] {
        var routes: [MQTTRoute] = []
        let bytes = Array(topic.utf8)
        tree.forEachMatch(bytes.span.bytes) { entry in
            for route in entry.routes {
                // A subscription of several filters gets a message once, however many of them match.
                if route.requests.count > 1, routes.contains(where: { $0 === route }) { continue }
                routes.append(route)
            }
        }
        if routes.isEmpty, let unmatched { routes = [unmatched] }
        return routes
    }

    /// Forgets the matches: filters changed.
    private func filtersChanged() {
        for index in topics.indices { topics[index].generation = 0 }
    }

    func setUnmatched(_ route: MQTTRoute?) {
        unmatched = route
        filtersChanged()
    }

    // MARK: Filters

    /// Adds a route for one of its filters; returns the entry, and whether SUBSCRIBE has to be sent for it.
    func add(_ route: MQTTRoute, _ request: MQTTSubscriptionRequest) -> (entry: Entry, needsSubscribe: Bool) {
        let key = FilterKey(request.filter)
        if let entry = entries[key] {
            let asksMore = request.qos > entry.request.qos
            if !entry.routes.contains(where: { $0 === route }) { entry.routes.append(route) }
            if asksMore { entry.request = request }
            if hasSharedFilter { rebuildTree() }
            filtersChanged()
            return (entry, asksMore || (entry.granted == nil && !entry.isPending))
        }
        let entry = Entry(request)
        entry.routes.append(route)
        entries[key] = entry
        if MQTTTopicFilter.shared(request.filter) != nil { hasSharedFilter = true }
        if hasSharedFilter { rebuildTree() } else { tree.insert(entry, for: request.filter) }
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
            let key = FilterKey(request.filter)
            guard let entry = entries[key], entry.routes.contains(where: { $0 === route }) else { continue }
            entry.routes.removeAll { $0 === route }
            if entry.routes.isEmpty {
                _ = removeEntry(key)
                forgotten.append(request.filter)
            } else if hasSharedFilter {
                rebuildTree()
            }
        }
        filtersChanged()
        return forgotten
    }

    func removeEntry(_ key: FilterKey) -> Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        if hasSharedFilter { rebuildTree() } else { tree.remove(key.filter) }
        filtersChanged()
        return entry
    }

    /// Some filter is shared: `$share/a/x` and `x` are two filters at the server but one in the tree, whose entry
    /// then carries the routes of both.
    private var hasSharedFilter = false

    private func rebuildTree() {
        var byInner: [FilterKey: Entry] = [:]
        for entry in entries.values {
            let inner = MQTTTopicFilter.shared(entry.request.filter)?.filter ?? entry.request.filter
            let key = FilterKey(inner)
            if let twin = byInner[key] {
                let joined = Entry(twin.request)
                joined.routes = twin.routes + entry.routes
                byInner[key] = joined
            } else {
                byInner[key] = entry
            }
        }
        tree = MQTTFilterTree()
        for (key, entry) in byInner { tree.insert(entry, for: key.filter) }
    }

    // MARK: Requests under way

    func makeRequest(for keys: [FilterKey]) -> UInt64 {
        defer { nextToken += 1 }
        requests[nextToken] = keys
        for key in keys { entries[key]?.isPending = true }
        return nextToken
    }

    func takeRequest(_ token: UInt64) -> [FilterKey]? {
        requests.removeValue(forKey: token)
    }

    /// The connection is gone: nothing is granted and nothing is on its way.
    func connectionClosed() {
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

/// A topic filter as a key: equal when its bytes are, not when its characters look the same.
struct FilterKey: Hashable {
    let filter: String

    init(_ filter: String) {
        self.filter = filter
    }

    static func == (one: FilterKey, other: FilterKey) -> Bool {
        one.filter.utf8.elementsEqual(other.filter.utf8)
    }

    func hash(into hasher: inout Hasher) {
        for byte in filter.utf8 { hasher.combine(byte) }
    }
}
