import MessagingWire

/// The filters of a client, and the SUBSCRIBE and UNSUBSCRIBE packets that name them and have no answer.
struct FilterTable: Sendable {
    private(set) var records: [ByteKey: FilterRecord] = [:]
    /// By their tokens.
    private(set) var requests: [UInt64: MQTTFilterRequest] = [:]
    /// Filters of which something has changed on this connection, so that a packet may be due. Some may be here twice.
    private var changed: [ByteKey] = []
    private var lastNumber: UInt64 = 0
    /// The token of the next request.
    private(set) var nextToken: UInt64 = 1
    /// How many filters have to be answered before the first PUBLISH of this connection.
    private(set) var unansweredFirst = 0
    /// Whether each SUBSCRIBE has one filter, since a server did not answer all filters of one that had more.
    var asksSingly = false

    var isEmpty: Bool { records.isEmpty }

    subscript(filter: String) -> FilterRecord? { records[ByteKey(filter)] }

    // MARK: What the caller wants

    /// Changes a record, which is made if there is none, and forgotten if there is nothing to remember.
    ///
    /// - Parameter mayBeHeld: whether a server may hold a filter that has no record.
    mutating func change(_ filter: String, mayBeHeld: Bool, _ change: (inout FilterRecord) -> Void) {
        let key = ByteKey(filter)
        change(&records[key, default: FilterRecord(mayBeHeld: mayBeHeld)])
        noteChange(key)
    }

    /// The same for a record that there is.
    mutating func change(_ filter: String, _ body: (inout FilterRecord) -> Void) {
        let key = ByteKey(filter)
        guard records[key] != nil else { return }
        body(&records[key]!)
        noteChange(key)
    }

    mutating func want(
        _ request: MQTTSubscriptionRequest, identifier: UInt32, _ properties: MQTTProperties, mayBeHeld: Bool
    ) {
        let own = identifier != 0 ? identifier : properties.subscriptionIdentifiers.first ?? 0
        let options = FilterRecord.Options(
            qos: request.qos, noLocal: request.noLocal, retainAsPublished: request.retainAsPublished, identifier: own)
        let number = lastNumber + 1
        var isNew = false
        change(request.filter, mayBeHeld: mayBeHeld) { record in
            if case .options = record.wanted {
            } else {
                record.number = number
                isNew = true
            }
            record.want(options, request.retainHandling, properties)
        }
        if isNew { lastNumber = number }
    }

    private mutating func noteChange(_ key: ByteKey) {
        if records[key]?.isOver == true { records[key] = nil }
        changed.append(key)
    }

    // MARK: What is due

    /// Takes the filters of which something has changed, with the packets that are due for them.
    mutating func takeDue(hasOptions: Bool) -> [(key: ByteKey, packet: FilterRecord.Packet)] {
        guard !changed.isEmpty else { return [] }
        let keys = changed
        changed = []
        var seen = Set<ByteKey>()
        return keys.compactMap { key in
            guard let packet = records[key]?.next(hasOptions: hasOptions), keys.count == 1 || seen.insert(key).inserted
            else { return nil }
            return (key, packet)
        }
    }

    /// There is no connection: the next one looks at all filters.
    mutating func forgetChanges() { changed = [] }

    /// A packet of these filters could not be written now.
    mutating func putBack(_ keys: [ByteKey]) { changed += keys }

    // MARK: Requests

    mutating func makeToken() -> UInt64 {
        defer { nextToken += 1 }
        return nextToken
    }

    /// A request was written, or waits for its turn.
    mutating func written(_ request: MQTTFilterRequest) {
        for filter in request.filters {
            records[ByteKey(filter)]?.written(request.packet, token: request.token)
        }
        requests[request.token] = request
        if request.comesFirst { unansweredFirst += request.filters.count }
    }

    /// A request cannot be written, whatever the connection.
    mutating func notWritten(_ request: MQTTFilterRequest) {
        for filter in request.filters { change(filter) { $0.notWritten(request.packet) } }
    }

    mutating func subscribeAnswered(_ token: UInt64, _ codes: [MQTTReasonCode]) -> MQTTFilterRequest? {
        guard let request = take(token) else { return nil }
        for (filter, code) in zip(request.filters, codes) { change(filter) { $0.subscribeAnswered(code) } }
        return request
    }

    mutating func unsubscribeAnswered(_ token: UInt64) -> MQTTFilterRequest? {
        guard let request = take(token) else { return nil }
        for filter in request.filters { change(filter) { $0.unsubscribeAnswered() } }
        return request
    }

    mutating func late(_ token: UInt64) -> MQTTFilterRequest? {
        guard let request = take(token) else { return nil }
        for filter in request.filters { change(filter) { $0.late() } }
        return request
    }

    /// A request that waits for its turn is not wanted any more.
    mutating func withdrawn(_ token: UInt64) {
        guard let request = take(token) else { return }
        for filter in request.filters { change(filter) { $0.withdrawn() } }
    }

    private mutating func take(_ token: UInt64) -> MQTTFilterRequest? {
        guard let request = requests.removeValue(forKey: token) else { return nil }
        // An idle client keeps no memory for requests.
        if requests.isEmpty { requests = [:] }
        if request.comesFirst { unansweredFirst -= request.filters.count }
        return request
    }

    /// Messages do not wait for answers any more.
    mutating func nothingComesFirst() {
        guard unansweredFirst > 0 else { return }
        unansweredFirst = 0
        for token in requests.keys { requests[token]?.comesFirst = false }
    }

    // MARK: Connections

    /// Returns the requests that have no answer, in their order.
    mutating func connectionLost() -> [MQTTFilterRequest] {
        guard !records.isEmpty else { return [] }
        let failed = requests.values.sorted { $0.token < $1.token }
        requests = [:]
        changed = []
        unansweredFirst = 0
        for key in records.keys { records[key]!.connectionLost() }
        return failed
    }

    mutating func sessionIsAbsent() {
        for key in records.keys { records[key]!.sessionIsAbsent() }
        records = records.filter { !$1.isOver }
        noteAllChanged()
    }

    mutating func sessionContinues(isInDoubt: Bool, allowed: QoS?) {
        for key in records.keys {
            let isShared = MQTTTopicFilter.shared(key.text) != nil
            records[key]!.sessionContinues(isInDoubt: isInDoubt || isShared, allowed: allowed)
        }
        noteAllChanged()
    }

    private mutating func noteAllChanged() {
        changed = records.keys.map { $0 }
        if changed.count > 1 { changed = records.sorted { $0.value.number < $1.value.number }.map { $0.key } }
    }

    // MARK: Invariants

    /// Stops the process where the table contradicts itself; in debug builds only.
    func check() {
        var inFlight = 0
        for (key, record) in records {
            assert(!record.isOver, "A filter is remembered of which there is nothing to remember.")
            guard let token = record.inFlight.token else { continue }
            inFlight += 1
            let names = requests[token]?.filters.contains { ByteKey($0) == key } == true
            assert(names, "A filter awaits the answer to a request that is not in flight.")
        }
        let named = requests.values.reduce(0) { $0 + $1.filters.count }
        assert(inFlight == named, "Requests in flight name other filters than await answers.")
        let first = requests.values.reduce(0) { $0 + ($1.comesFirst ? $1.filters.count : 0) }
        assert(first == unansweredFirst, "Messages wait for other answers than are awaited.")
    }
}

/// A SUBSCRIBE or UNSUBSCRIBE packet of a client.
public struct MQTTFilterRequest: Sendable {
    /// Which packet it is.
    public var isUnsubscribe: Bool { packet == .unsubscribe }
    /// The filters, in the order of the packet.
    public internal(set) var filters: [String]
    /// Increases with each request of the engine.
    public internal(set) var token: UInt64
    var packet: FilterRecord.Packet
    /// Whether messages of a new connection wait for the answer.
    package internal(set) var comesFirst: Bool
    /// When it was written.
    package var time: Int64
}
