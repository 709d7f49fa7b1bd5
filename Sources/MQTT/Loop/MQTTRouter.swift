import MQTTCore
import MessagingShell
import MessagingWire

/// Which subscriptions the messages of a topic go to, and which subscriptions want a filter. On the loop's thread
/// only. `MQTTRouter+copies.swift` decides where several filters match.
final class MQTTRouter {
    /// The routes that topics, or messages with the same identifiers, have in common.
    struct Destination {
        var routes: [MQTTRoute] = []
        /// Whether a filter matches, and its route has another copy of the message.
        var isSurplus = false
        /// The filters, if messages of the topic may go to some of the routes only.
        var matches: [Match] = []
        /// The destinations of such messages, by their identifiers and by whether they are retained.
        var selected: [(identifiers: [UInt32], isRetained: Bool, number: UInt32)] = []
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
    /// The callers that wait until filters are unsubscribed, by the filter, with its place among those of the call.
    private var unsubscribing: [ByteKey: [(wait: MQTTFilterWait, index: Int)]] = [:]
    /// Whether the server may send messages that not all matching routes get: for some of the filters that overlap, or retained
    /// messages for which only some routes of a filter have asked. False in most clients; never reset, since it only costs
    /// time.
    var selects = false
    /// The identifiers of a message, and the filters that match it: arrays that are filled anew, so that none is allocated.
    private var identifiers: [UInt32] = []
    private var matches: [Match] = []
    /// Chosen anew by each process, so that messages of a resumed session, whose identifiers an earlier process chose, are not
    /// mistaken for copies.
    private let identifierSeed: UInt64
    /// The identifiers of filters that were removed, the last ones. Messages for them may follow UNSUBACK [MQTT 5.0 3.10.4].
    private var endedIdentifiers: [UInt32] = []
    var pace = InvariantPace()
    /// How many routes the last check of invariants has found.
    var checkedRoutes = 0
    /// Receives the messages that no filter matches; nil to drop them.
    var unmatched: MQTTRoute?

    init(random: LoopRandom = LoopRandom()) {
        var random = random
        topics = TopicTable(seed: random.next())
        identifierSeed = random.next()
    }

    // MARK: Topics

    /// The routes of a number that ``number(for:of:_:_:)`` returned for a message of the same read.
    func routes(at number: UInt32) -> [MQTTRoute] { destinations[Int(number)].routes }

    /// Whether no filter matches.
    func isUnmatched(_ number: UInt32) -> Bool {
        destinations[Int(number)].routes.isEmpty && !destinations[Int(number)].isSurplus
    }

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
    func findNumbers(
        _ effects: borrowing MQTTEffects, _ bytes: RawSpan, _ engine: borrowing MQTTEngine, into numbers: inout [UInt32]
    ) {
        numbers.removeAll(keepingCapacity: true)
        let messages = effects.messages.span
        let selects = selects && engine.version.hasProperties
        numbers.append(addingCapacity: messages.count) { numbers in
            var last: UInt32 = 0
            for index in messages.indices {
                let message = messages[index]
                if !message.repeatsTopic || last == 0 { last = number(for: message, of: bytes, effects, engine) }
                numbers.append(selects ? select(message, of: bytes, from: last) : last)
            }
        }
    }

    /// The number of the destination of a message's topic.
    func number(
        for message: MQTTMessageRecord, of bytes: RawSpan, _ effects: borrowing MQTTEffects,
        _ engine: borrowing MQTTEngine
    ) -> UInt32 {
        if message.destination != 0 { return UInt32(message.destination) }
        // The bytes of an array of bytes: nothing to reinterpret.
        if message.isTopicAliased {
            return number(for: unsafe effects.aliasTopics.span.bytes.extracting(message.topic), engine)
        }
        return number(for: bytes.extracting(message.topic), engine)
    }

    func number(for topic: RawSpan, _ engine: borrowing MQTTEngine) -> UInt32 {
        let known = topics.number(of: topic)
        return known != 0 ? UInt32(known) : findNumber(for: topic, engine)
    }

    /// Looks a topic up in the tree of filters.
    @inline(never)
    private func findNumber(for topic: RawSpan, _ engine: borrowing MQTTEngine) -> UInt32 {
        defer { matches.removeAll(keepingCapacity: true) }
        tree.forEachMatch(topic) { entry in
            matches.append(Match(entry: entry))
            for other in entry.others { matches.append(Match(entry: other)) }
        }
        // Messages of filters with a prefix of EMQX have their real topics. Only if no filter matches unchanged, since for
        // other servers these are filters like any other.
        if matches.isEmpty {
            for (filter, entry) in prefixed where filter.withUTF8Span({ MQTTTopicFilter.matches($0, topic: topic) }) {
                matches.append(Match(entry: entry))
            }
        }
        var made = Destination(routes: Self.routes(matches, [], isRetained: false))
        if matches.isEmpty, let unmatched { made.routes = [unmatched] }
        if selects {
            for index in matches.indices {
                matches[index].held = engine.heldIdentifier(of: matches[index].entry.request.filter)
            }
        }
        if selects, Self.selects(matches) { made.matches = matches }
        let number = number(of: made)
        // A read with very many destinations may lead to numbers that the table does not hold.
        if let number = UInt16(exactly: number) { topics.insert(topic, number: number) }
        return number
    }

    /// The number of a destination, which topics share if their messages always go to the same routes.
    private func number(of made: Destination) -> UInt32 {
        let isPlain = made.matches.isEmpty && !made.isSurplus
        let key = isPlain ? made.routes.map { ObjectIdentifier($0) } : []
        if isPlain, let shared = sharedDestinations[key] { return shared }
        let number = UInt32(destinations.count)
        destinations.append(made)
        if isPlain { sharedDestinations[key] = number }
        return number
    }

    /// The number of the destination of a message, whose topic has the destination `base`.
    private func select(_ message: MQTTMessageRecord, of bytes: RawSpan, from base: UInt32) -> UInt32 {
        if destinations[Int(base)].matches.isEmpty { return base }
        defer { identifiers.removeAll(keepingCapacity: true) }
        message.appendIdentifiers(in: bytes, to: &identifiers)
        let isRetained = message.flags.isRetained
        if identifiers.isEmpty && !isRetained { return base }
        for known in destinations[Int(base)].selected
        where known.isRetained == isRetained && known.identifiers == identifiers {
            return known.number
        }
        let matches = destinations[Int(base)].matches
        let unwanted = identifiers.filter { identifier in
            !matches.contains { $0.entry.sentIdentifier == identifier } && endedIdentifiers.contains(identifier)
        }
        var made = Destination(
            routes: Self.routes(matches, identifiers, unwanted: unwanted, isRetained: isRetained))
        made.isSurplus = made.routes.isEmpty
        let number = number(of: made)
        // A server chooses identifiers.
        if destinations[Int(base)].selected.count >= 64 { destinations[Int(base)].selected = [] }
        destinations[Int(base)].selected.append((Array(identifiers), isRetained, number))
        return number
    }

    /// Filters have changed. Costs time in proportion to the topics that were looked up since the last change.
    func filtersChanged() { forgetTopics() }

    /// The Subscription Identifier of a filter, from the upper half of those that there are: always the same in the life of the
    /// client, unless a filter that overlaps it has it.
    func makeIdentifier(for filter: String, apartFrom taken: Set<UInt32>) -> UInt32 {
        let hash = filter.withUTF8Span { $0.hashed(seed: identifierSeed) }
        var place = UInt32(truncatingIfNeeded: hash)
        while taken.contains(1 << 27 | place % (1 << 27)) { place &+= 1 }
        return 1 << 27 | place % (1 << 27)
    }

    func setUnmatched(_ route: MQTTRoute?) {
        unmatched = route
        filtersChanged()
    }

    // MARK: Filters

    /// Adds a route for one of its filters; returns the entry, and whether the route had it not.
    func add(_ route: MQTTRoute, _ request: MQTTSubscriptionRequest) -> (entry: MQTTFilterEntry, isNew: Bool) {
        let key = ByteKey(request.filter)
        if let entry = entries[key] {
            // All filters of a route are added before another route.
            let isNew = entry.routes.last !== route
            if isNew { entry.routes.append(route) }
            filtersChanged()
            if (request.retainHandling == .doNotSend) != (entry.request.retainHandling == .doNotSend) {
                selects = true
            }
            entry.add(request, of: route)
            return (entry, isNew)
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

    /// Removes a route; returns the filters that no other one has, and the entries that others have.
    func remove(_ route: MQTTRoute) -> (unwanted: [String], shared: [MQTTFilterEntry]) {
        if route === unmatched {
            setUnmatched(nil)
            return ([], [])
        }
        var (unwanted, shared): ([String], [MQTTFilterEntry]) = ([], [])
        for request in route.requests {
            let key = ByteKey(request.filter)
            guard let entry = entries[key], entry.remove(route) else { continue }
            if entry.routes.isEmpty {
                removeEntry(key)
                unwanted.append(request.filter)
            } else {
                shared.append(entry)
            }
        }
        filtersChanged()
        return (unwanted, shared)
    }

    /// Removes a route from one filter, which the server refused to it. Returns the filter's entry, nil if it has no such
    /// route.
    func withdraw(_ route: MQTTRoute, from key: ByteKey) -> MQTTFilterEntry? {
        guard let entry = entries[key], entry.remove(route) else { return nil }
        filtersChanged()
        if entry.routes.isEmpty { removeEntry(key) }
        return entry
    }

    func removeEntry(_ key: ByteKey) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        if entry.sentIdentifier != 0 {
            if endedIdentifiers.count == 64 { endedIdentifiers.removeFirst() }
            endedIdentifiers.append(entry.sentIdentifier)
        }
        takeOut(entry, of: Self.inner(key.text))
        if Self.withoutPrefix(key.text) != nil { prefixed.removeAll { $0.entry === entry } }
        filtersChanged()
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

    // MARK: Filters that overlap

    /// The other filters of the client that match topics which this one matches as well.
    func overlapping(_ filter: String) -> [MQTTFilterEntry] {
        let inner = Self.inner(filter)
        var found: [MQTTFilterEntry] = []
        tree.forEachNear(inner) { first in
            guard MQTTTopicFilter.overlap(inner, Self.inner(first.request.filter)) else { return }
            found += ([first] + first.others).filter { !$0.request.filter.hasSameBytes(as: filter) }
        }
        return found
    }

    /// Whether messages of one filter must not reach subscriptions of the other, which matches the same topics: a server
    /// sends a client only its share of them.
    private static func conflict(_ one: String, _ other: String) -> Bool {
        MQTTTopicFilter.shared(one) != nil || MQTTTopicFilter.shared(other) != nil
    }

    /// The first filter of a new subscription whose messages could not be told from those of another filter without
    /// identifiers, and that filter; nil if there is none.
    func conflict(of requests: [MQTTSubscriptionRequest]) -> (filter: String, other: String)? {
        var (filters, shared): ([String], [String]) = ([], [])
        for filter in requests.map(\.filter) {
            let isShared = MQTTTopicFilter.shared(filter) != nil
            let own = (isShared ? filters : shared).filter { own in
                !own.hasSameBytes(as: filter) && MQTTTopicFilter.overlap(Self.inner(own), Self.inner(filter))
            }
            let others = overlapping(filter).filter { !$0.areReplies }.map(\.request.filter) + own
            if let other = others.first(where: { Self.conflict(filter, $0) }) { return (filter, other) }
            filters.append(filter)
            if isShared { shared.append(filter) }
        }
        return nil
    }

    /// All such filters, each after a filter that was subscribed before it, in the order of the later ones.
    var conflicts: [(earlier: MQTTFilterEntry, later: MQTTFilterEntry)] {
        var found: [(earlier: MQTTFilterEntry, later: MQTTFilterEntry)] = []
        for entry in entries.values where MQTTTopicFilter.shared(entry.request.filter) != nil {
            for other in overlapping(entry.request.filter) where !other.areReplies {
                found.append(entry.number < other.number ? (entry, other) : (other, entry))
            }
        }
        return found.sorted { ($0.later.number, $0.earlier.number) < ($1.later.number, $1.earlier.number) }
    }

    // MARK: Callers that unsubscribe

    var hasUnsubscribing: Bool { !unsubscribing.isEmpty }

    /// A caller waits until filters are unsubscribed.
    func addUnsubscribing(_ wait: MQTTFilterWait, _ filters: [String]) {
        for (index, filter) in filters.enumerated() {
            unsubscribing[ByteKey(filter), default: []].append((wait, index))
        }
    }

    /// Takes the callers that wait until a filter is unsubscribed.
    func takeUnsubscribing(_ filter: String) -> [(wait: MQTTFilterWait, index: Int)] {
        // An idle client keeps no memory for callers.
        defer { if unsubscribing.isEmpty { unsubscribing = [:] } }
        return unsubscribing.removeValue(forKey: ByteKey(filter)) ?? []
    }

    /// No filter will be unsubscribed now: the callers fail. The next connection of the session does it.
    func failUnsubscribes(_ failure: MQTTError) {
        let waits = unsubscribing.sorted { $0.key < $1.key }.flatMap(\.value)
        unsubscribing = [:]
        for (wait, _) in waits { wait.fail(failure) }
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
        endedIdentifiers = []
        filtersChanged()
        return all
    }
}
