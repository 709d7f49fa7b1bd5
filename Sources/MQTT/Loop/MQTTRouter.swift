import MQTTCore
import MessagingShell
import MessagingWire

/// Which subscriptions the messages of a topic go to, and which filters are subscribed at the server. On the loop's
/// thread only. `MQTTRouter+copies.swift` chooses one of several copies of a message.
final class MQTTRouter {
    /// A SUBSCRIBE or UNSUBSCRIBE that is not answered yet, with its filters.
    enum Request {
        /// If `comesFirst`, it precedes the messages of a new connection, which ends if the answer is late.
        case subscribe([ByteKey], comesFirst: Bool)
        /// With the caller that waits for the answer, and the place of the packet among those that its filters were sent in.
        case unsubscribe([String], caller: (wait: MQTTUnsubscribeWait, packet: Int)?)
    }

    /// The routes that topics have in common.
    struct Destination {
        var routes: [MQTTRoute] = []
        var copies: [MQTTCopies] = []
        /// Those of the routes that get no retained messages.
        var refusing: [MQTTRoute] = []
    }

    private(set) var entries: [ByteKey: MQTTFilterEntry] = [:]
    private var entryCount: UInt64 = 0
    private(set) var tree = MQTTFilterTree<MQTTFilterEntry>()
    /// The entries whose filters have a prefix of EMQX, and their filters without it; in most clients there are none.
    private(set) var prefixed: [(filter: String, entry: MQTTFilterEntry)] = []
    /// The number of the destination of each topic that was looked up since the filters changed.
    private(set) var topics: TopicTable
    /// The destinations by their numbers; number 0 is not used.
    private(set) var destinations = [Destination()]
    /// The numbers of those that topics may share.
    private(set) var sharedDestinations: [[ObjectIdentifier]: UInt32] = [:]
    private(set) var requests: [UInt64: Request] = [:]
    private var nextToken: UInt64 = 1
    /// Filters without a subscription that the server may still have in a session, because UNSUBSCRIBE could not be sent
    /// or was not answered.
    private var toForget: Set<ByteKey> = []
    /// Whether the server may send messages that not all matching routes get: several copies of a message for overlapping
    /// filters of a subscription, or retained messages for which only some routes of a filter have asked. False in most
    /// clients; never reset, since it only costs time.
    var selectsCopies = false
    /// The Subscription Identifier that was given last.
    var lastIdentifier: UInt32
    /// Whether the numbers have begun again.
    private var identifiersRepeat = false
    var pace = InvariantPace()
    /// The upper half of those that there are.
    private static let identifiers: ClosedRange<UInt32> = 134_217_728...268_435_455
    /// Receives the messages that no filter matches; nil to drop them.
    var unmatched: MQTTRoute?

    init(random: LoopRandom = LoopRandom()) {
        var random = random
        topics = TopicTable(seed: random.next())
        // So that messages of a resumed session, whose identifiers an earlier process chose, are not mistaken for copies.
        lastIdentifier = .random(in: Self.identifiers, using: &random)
    }

    // MARK: Topics

    /// The routes of a number that ``number(for:of:_:)`` returned for a message of the same read.
    func routes(at number: UInt32) -> [MQTTRoute] { destinations[Int(number)].routes }

    func copies(at number: UInt32) -> [MQTTCopies] { destinations[Int(number)].copies }

    /// Those of the routes that get no retained messages.
    func refusing(at number: UInt32) -> [MQTTRoute] { destinations[Int(number)].refusing }

    /// Call this before the messages of a read: numbers do not change until the next one.
    func beginRead() {
        assert(checkInvariants())
        if topics.isFull || destinations.count > Self.maximumDestinations { forgetTopics() }
    }

    /// Forgets what is known about topics, which a peer chooses. It is found again when it is needed.
    func forgetTopics(keepingCapacity: Bool = true) {
        topics.removeAll(keepingCapacity: keepingCapacity)
        destinations.removeLast(destinations.count - 1)
        sharedDestinations.removeAll()
    }

    /// Whether what is known about topics takes memory that a quiet connection should give back.
    var remembersManyTopics: Bool { topics.byteCount >= 4_096 }

    /// The most destinations that are retained for the next read.
    private static let maximumDestinations = 16_384

    /// Finds the numbers of the destinations of all messages of a read, in their order.
    func findNumbers(_ effects: borrowing MQTTEffects, _ bytes: RawSpan, into numbers: inout [UInt32]) {
        numbers.removeAll(keepingCapacity: true)
        let messages = effects.messages.span
        numbers.append(addingCapacity: messages.count) { numbers in
            var last: UInt32 = 0
            for index in messages.indices {
                let message = messages[index]
                if !message.repeatsTopic || last == 0 { last = number(for: message, of: bytes, effects) }
                numbers.append(last)
            }
        }
    }

    /// The number of a message's destination.
    func number(for message: MQTTMessageRecord, of bytes: RawSpan, _ effects: borrowing MQTTEffects) -> UInt32 {
        if message.destination != 0 { return UInt32(message.destination) }
        // The bytes of an array of bytes: nothing to reinterpret.
        if message.isTopicAliased {
            return number(for: unsafe effects.aliasTopics.span.bytes.extracting(message.topic))
        }
        return number(for: bytes.extracting(message.topic))
    }

    func number(for topic: RawSpan) -> UInt32 {
        let known = topics.number(of: topic)
        return known != 0 ? UInt32(known) : findNumber(for: topic)
    }

    /// Looks a topic up in the tree of filters.
    @inline(never)
    private func findNumber(for topic: RawSpan) -> UInt32 {
        var routes: [MQTTRoute] = []
        tree.forEachMatch(topic) { entry in
            Self.add(entry.routes, to: &routes)
            for other in entry.others { Self.add(other.routes, to: &routes) }
        }
        if routes.isEmpty, !prefixed.isEmpty { addPrefixed(to: &routes, of: topic) }
        if routes.isEmpty, let unmatched { routes = [unmatched] }
        var made = Destination(routes: routes)
        if selectsCopies {
            let name = String(checked: topic, 0..<topic.byteCount)
            made.copies = copies(for: routes, of: name)
            made.refusing = refusing(routes, of: name)
        }
        let isPlain = made.copies.isEmpty && made.refusing.isEmpty
        let key = routes.map { ObjectIdentifier($0) }
        var number = UInt32(destinations.count)
        if isPlain, let shared = sharedDestinations[key] {
            number = shared
        } else {
            destinations.append(made)
            if isPlain { sharedDestinations[key] = number }
        }
        // A read with very many destinations may lead to numbers that the table does not hold.
        if let number = UInt16(exactly: number) { topics.insert(topic, number: number) }
        return number
    }

    /// Adds the routes whose filters match without a prefix of EMQX: the messages have their real topics there. Only if
    /// no filter matches unchanged, since for other servers these are filters like any other.
    private func addPrefixed(to routes: inout [MQTTRoute], of topic: RawSpan) {
        for (filter, entry) in prefixed where filter.withUTF8Span({ MQTTTopicFilter.matches($0, topic: topic) }) {
            Self.add(entry.routes, to: &routes)
        }
    }

    private static func add(_ matching: [MQTTRoute], to routes: inout [MQTTRoute]) {
        for route in matching {
            // A subscription of several filters gets a message once, however many of them match.
            if route.requests.count > 1, routes.contains(where: { $0 === route }) { continue }
            routes.append(route)
        }
    }

    /// Filters have changed. Costs time in proportion to the topics that were looked up since the last change.
    private func filtersChanged() { forgetTopics() }

    /// An identifier that no other filter has.
    func makeIdentifier() -> UInt32 {
        repeat {
            let isLast = lastIdentifier == Self.identifiers.upperBound
            lastIdentifier = isLast ? Self.identifiers.lowerBound : lastIdentifier + 1
            identifiersRepeat = identifiersRepeat || isLast
            // Only after a wrap may the identifier belong to an existing filter.
        } while identifiersRepeat && entries.values.contains { $0.identifier == lastIdentifier }
        return lastIdentifier
    }

    func setUnmatched(_ route: MQTTRoute?) {
        unmatched = route
        filtersChanged()
    }

    // MARK: Filters

    /// Adds a route for one of its filters; returns the entry, and whether SUBSCRIBE has to be sent for it.
    func add(_ route: MQTTRoute, _ request: MQTTSubscriptionRequest) -> (entry: MQTTFilterEntry, needsSubscribe: Bool) {
        let key = ByteKey(request.filter)
        if let entry = entries[key] {
            let isNew = !entry.routes.contains { $0 === route }
            if isNew { entry.routes.append(route) }
            filtersChanged()
            if (request.retainHandling == .doNotSend) != (entry.request.retainHandling == .doNotSend) {
                selectsCopies = true
            }
            let asksMore = entry.add(request, of: route)
            // A server repeats its retained messages in its answer to SUBSCRIBE, but not for shared subscriptions
            // [MQTT 5.0 4.8.2].
            let asksForRetained =
                isNew && request.retainHandling == .sendAtSubscribe && MQTTTopicFilter.shared(request.filter) == nil
            return (entry, asksMore || asksForRetained || !entry.isAtServer)
        }
        entryCount += 1
        let entry = MQTTFilterEntry(request, of: route, number: entryCount)
        entries[key] = entry
        let inner = Self.inner(request.filter)
        if let first = tree.insert(entry, for: inner) {
            first.others.append(entry)
            tree.insert(first, for: inner)
        }
        if let filter = Self.withoutPrefix(request.filter) { prefixed.append((filter, entry)) }
        filtersChanged()
        return (entry, true)
    }

    /// Removes a route; returns the filters that are to be unsubscribed at the server.
    ///
    /// - Parameter mayBeKept: whether the server may have a session with filters that this process has not subscribed.
    func remove(_ route: MQTTRoute, mayBeKept: Bool) -> [String] {
        if route === unmatched {
            setUnmatched(nil)
            return []
        }
        var forgotten: [String] = []
        for request in route.requests {
            let key = ByteKey(request.filter)
            guard let entry = entries[key], entry.routes.contains(where: { $0 === route }) else { continue }
            entry.remove(route)
            _ = entry.takeCallers { $0.route === route }
            if entry.routes.isEmpty {
                _ = removeEntry(key)
                if entry.firstRequest != 0 || mayBeKept { forgotten.append(request.filter) }
            }
        }
        filtersChanged()
        return forgotten
    }

    /// Removes a route from one filter, which the server refused to it; returns whether the filter is to be unsubscribed.
    func withdraw(_ route: MQTTRoute, from key: ByteKey) -> Bool {
        guard let entry = entries[key] else { return false }
        entry.remove(route)
        filtersChanged()
        return entry.routes.isEmpty && removeEntry(key) != nil
    }

    func removeEntry(_ key: ByteKey) -> MQTTFilterEntry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        takeOut(entry, of: Self.inner(key.text))
        if Self.withoutPrefix(key.text) != nil { prefixed.removeAll { $0.entry === entry } }
        filtersChanged()
        return entry
    }

    /// The filter's name in the tree.
    static func inner(_ filter: String) -> String {
        MQTTTopicFilter.shared(filter)?.filter ?? filter
    }

    /// What `$exclusive/filter` and `$queue/filter` subscribe to at EMQX: one client at a time, and clients that share the
    /// messages. Nil for other filters.
    static func withoutPrefix(_ filter: String) -> String? {
        for prefix in ["$exclusive/", "$queue/"] where filter.utf8.starts(with: prefix.utf8) {
            let rest = filter.utf8.dropFirst(prefix.utf8.count)
            return rest.isEmpty ? nil : String(Substring(rest))
        }
        return nil
    }

    private func takeOut(_ entry: MQTTFilterEntry, of inner: String) {
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

    func makeToken() -> UInt64 {
        defer { nextToken += 1 }
        return nextToken
    }

    /// SUBSCRIBE was written: the callers whose filters were not sent yet get the answer to it.
    func subscribeWritten(_ token: UInt64, for keys: [ByteKey], comesFirst: Bool, at now: Int64) {
        requests[token] = .subscribe(keys, comesFirst: comesFirst)
        for key in keys { entries[key]?.subscribeWritten(token, at: now) }
    }

    func takeRequest(_ token: UInt64) -> Request? {
        // An idle client keeps no memory for requests.
        defer { if requests.isEmpty { requests = [:] } }
        return requests.removeValue(forKey: token)
    }

    /// The filters of a SUBSCRIBE that was not answered.
    func filters(ofRequest token: UInt64) -> [String] {
        if case .subscribe(let keys, _) = requests[token] { keys.map(\.text) } else { [] }
    }

    /// UNSUBSCRIBE is about to be written; returns its token.
    func makeUnsubscribe(_ filters: [String]) -> UInt64 {
        let token = makeToken()
        requests[token] = .unsubscribe(filters, caller: nil)
        return token
    }

    /// A caller waits for the answer to an UNSUBSCRIBE, which is one packet of those that its filters were sent in.
    func setCaller(_ wait: MQTTUnsubscribeWait, packet: Int, of token: UInt64) {
        guard case .unsubscribe(let filters, _) = requests[token] else { return }
        requests[token] = .unsubscribe(filters, caller: (wait, packet))
    }

    /// Filters are to be unsubscribed as soon as there is a connection.
    func forgetLater(_ filters: [String]) {
        for filter in filters { toForget.insert(ByteKey(filter)) }
    }

    /// Takes the filters that have to be unsubscribed at a server that resumed the session.
    func takeFiltersToForget() -> [String] {
        defer { toForget = [] }
        return toForget.filter { entries[$0] == nil }.map(\.text).sorted()
    }

    /// The connection has closed: no filter is granted and no request will be answered.
    func connectionClosed() {
        for case .unsubscribe(let filters, _) in requests.values { forgetLater(filters) }
        requests.removeAll()
        for entry in entries.values { entry.connectionClosed() }
    }

    /// There will be no answer to any UNSUBSCRIBE: its callers fail. The filters stay until the connection has closed, since
    /// the next one of the session repeats the request.
    func failUnsubscribes(_ failure: MQTTError) {
        var waits: [MQTTUnsubscribeWait] = []
        for (token, request) in requests.sorted(by: { $0.key < $1.key }) {
            guard case .unsubscribe(let filters, let caller?) = request else { continue }
            requests[token] = .unsubscribe(filters, caller: nil)
            waits.append(caller.wait)
        }
        for wait in waits { wait.fail(failure) }
    }

    /// The entries in the order in which they were added.
    var orderedEntries: [(key: ByteKey, value: MQTTFilterEntry)] {
        entries.sorted { $0.value.number < $1.value.number }
    }

    func takeAllEntries() -> [MQTTFilterEntry] {
        let all = orderedEntries.map(\.value)
        entries = [:]
        prefixed = []
        tree = MQTTFilterTree()
        filtersChanged()
        return all
    }
}
