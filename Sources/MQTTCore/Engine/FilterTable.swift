import MessagingWire

/// The filters of a client, and the SUBSCRIBE and UNSUBSCRIBE packets that name them and have no answer.
struct FilterTable: Sendable {
    private(set) var records: [ByteKey: FilterRecord] = [:]
    /// The requests in flight, by their packet identifiers.
    private(set) var requests: [UInt16: MQTTFilterRequest] = [:]
    /// The packet identifiers of requests whose answers are late, and ignored when they come.
    private(set) var late: [UInt16: FilterRecord.Packet] = [:]
    /// When answers will be late, in that order, with the identifiers. Some of these requests have been answered since, or
    /// have got more time; not the first.
    private var deadlines: [(time: Int64, id: UInt16)] = []
    /// Filters of which something has changed on this connection, so that a packet may be due. Some may be here twice.
    private var changed: [ByteKey] = []
    /// The filters that have to be answered before the first PUBLISH of this connection.
    private(set) var first: Set<ByteKey> = []
    private var lastNumber: UInt64 = 0
    /// The token of the next request.
    private(set) var nextToken: UInt64 = 1
    /// When PINGREQ was written that was answered last: answers to earlier requests are not behind what is still to be read.
    var answeredUpTo = Int64.min
    /// The place of the first deadline that counts.
    private var firstDeadline: Int32 = 0
    /// Whether each SUBSCRIBE has one filter, since a server did not answer all filters of one that had more.
    var asksSingly = false

    var isEmpty: Bool { records.isEmpty }
    /// Whether there is nothing to remember, as in a table that was made just now.
    var isNew: Bool { records.isEmpty && changed.isEmpty && first.isEmpty && nextToken == 1 && !asksSingly }

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
        if records[key]?.isOver == true {
            records[key] = nil
            settle(key)
        }
        changed.append(key)
    }

    // MARK: What is due

    /// Whether packets may be due.
    var hasChanges: Bool { !changed.isEmpty }

    /// Takes the filters for which packets are due.
    mutating func takeDue(hasOptions: Bool) -> [(key: ByteKey, packet: FilterRecord.Packet)] {
        guard !changed.isEmpty else { return [] }
        let keys = changed
        changed = []
        var seen = Set<ByteKey>()
        return keys.compactMap { key in
            guard keys.count == 1 || seen.insert(key).inserted else { return nil }
            return due(key, hasOptions: hasOptions).map { (key, $0) }
        }
    }

    /// Takes the first filter for which a packet is due; nil for none.
    mutating func takeFirstDue(hasOptions: Bool) -> (key: ByteKey, packet: FilterRecord.Packet)? {
        while let key = changed.first {
            changed.removeFirst()
            if let packet = due(key, hasOptions: hasOptions) { return (key, packet) }
        }
        return nil
    }

    private mutating func due(_ key: ByteKey, hasOptions: Bool) -> FilterRecord.Packet? {
        let packet = records[key]?.next(hasOptions: hasOptions)
        if packet != .subscribe { settle(key) }
        return packet
    }

    /// Whether a packet is due for a filter that meets a condition.
    func hasDue(hasOptions: Bool, where isMeant: (ByteKey, FilterRecord.Packet) -> Bool) -> Bool {
        changed.contains { key in
            records[key]?.next(hasOptions: hasOptions).map { isMeant(key, $0) } ?? false
        }
    }

    /// Packets of these filters are due still: others go first, or no identifier is free.
    mutating func putBack(_ keys: [ByteKey]) { changed += keys }

    /// The packet of this filter waits for its turn, and others wait behind it.
    mutating func putFirst(_ key: ByteKey) { changed.insert(key, at: 0) }

    /// There is no connection: the next one looks at all filters.
    mutating func forgetChanges() { changed = [] }

    // MARK: What comes first

    /// Messages wait for the answers to the SUBSCRIBE packets that are due and meet a condition.
    mutating func expectAnswers(hasOptions: Bool, where isMeant: (ByteKey) -> Bool) {
        for key in changed where records[key]?.next(hasOptions: hasOptions) == .subscribe && isMeant(key) {
            first.insert(key)
        }
    }

    /// Messages wait for no answer any more.
    mutating func nothingComesFirst() { first = [] }

    /// Messages do not wait for a filter, unless its SUBSCRIBE is in flight.
    mutating func settle(_ key: ByteKey) {
        guard !first.isEmpty else { return }
        if case .subscribe? = records[key]?.inFlight { return }
        first.remove(key)
        if first.isEmpty { first = [] }
    }

    /// Whether messages wait for the answer.
    func comesFirst(_ request: MQTTFilterRequest) -> Bool {
        !first.isEmpty && request.filters.contains { first.contains(ByteKey($0)) }
    }

    // MARK: Requests

    mutating func makeToken() -> UInt64 {
        defer { nextToken += 1 }
        return nextToken
    }

    mutating func written(_ request: MQTTFilterRequest) {
        for filter in request.filters {
            records[ByteKey(filter)]?.written(request.packet, token: request.token)
        }
        requests[request.packetID] = request
        setDeadline(of: request.packetID, request.deadline)
    }

    /// A request cannot be written, whatever the connection.
    mutating func notWritten(_ request: MQTTFilterRequest) {
        for filter in request.filters {
            change(filter) { $0.notWritten(request.packet) }
            settle(ByteKey(filter))
        }
    }

    mutating func subscribeAnswered(_ request: MQTTFilterRequest, _ codes: [MQTTReasonCode]) {
        end(request)
        for (filter, code) in zip(request.filters, codes) {
            change(filter) { $0.subscribeAnswered(code) }
            settle(ByteKey(filter))
        }
    }

    mutating func unsubscribeAnswered(_ request: MQTTFilterRequest) {
        end(request)
        for filter in request.filters { change(filter) { $0.unsubscribeAnswered() } }
    }

    /// The answer to a late request has come. False if no late request of this kind has the identifier.
    mutating func lateAnswered(_ id: UInt16, _ packet: FilterRecord.Packet) -> Bool {
        guard late[id] == packet else { return false }
        late[id] = nil
        if late.isEmpty { late = [:] }
        return true
    }

    mutating func late(_ request: MQTTFilterRequest) {
        end(request)
        late[request.packetID] = request.packet
        for filter in request.filters { change(filter) { $0.late() } }
    }

    private mutating func end(_ request: MQTTFilterRequest) {
        requests[request.packetID] = nil
        forgetDeadlines()
    }

    /// The packet identifiers of all requests, the late ones among them.
    var identifiers: [UInt16] { Array(requests.keys) + Array(late.keys) }

    // MARK: Deadlines

    /// When the next answer is late; `Int64.max` for never.
    var deadline: Int64 { deadlines.isEmpty ? .max : deadlines[Int(firstDeadline)].time }

    /// The request whose answer is late first, if it is late now.
    func firstLate(at now: Int64) -> MQTTFilterRequest? {
        deadline <= now && deadline != .max ? requests[deadlines[Int(firstDeadline)].id] : nil
    }

    /// Gives a request more time, which ends later than that of all others.
    mutating func postpone(_ request: MQTTFilterRequest, until deadline: Int64, counts: Bool) {
        if counts { requests[request.packetID]?.postponements += 1 }
        setDeadline(of: request.packetID, deadline)
        forgetDeadlines()
    }

    /// Not before that of another request: callers' clocks may differ by a little.
    private mutating func setDeadline(of id: UInt16, _ wanted: Int64) {
        let deadline = max(wanted, deadlines.last?.time ?? .min)
        requests[id]?.deadline = deadline
        deadlines.append((deadline, id))
        guard deadlines.count > 64 + 2 * requests.count else { return }
        deadlines.removeAll { requests[$0.id]?.deadline != $0.time }
        firstDeadline = 0
    }

    /// Goes on to a deadline that counts.
    private mutating func forgetDeadlines() {
        while Int(firstDeadline) < deadlines.count {
            let (time, id) = deadlines[Int(firstDeadline)]
            if requests[id]?.deadline == time { break }
            firstDeadline += 1
        }
        // An idle client keeps no memory for requests.
        if requests.isEmpty { (requests, deadlines, firstDeadline) = ([:], [], 0) }
    }

    // MARK: Connections

    /// Returns the requests that have no answer, in their order.
    ///
    /// - Parameter refused: the SUBSCRIBE because of which the connection has ended.
    mutating func connectionLost(refused: MQTTFilterRequest?) -> [MQTTFilterRequest] {
        let failed = requests.values.sorted { $0.token < $1.token }
        (requests, late, deadlines, firstDeadline) = ([:], [:], [], 0)
        (changed, first, answeredUpTo) = ([], [], .min)
        for key in records.keys {
            let isRefused = refused != nil && records[key]!.inFlight.token == refused?.token
            records[key]!.connectionLost(isRefused: isRefused)
        }
        forgetWhatIsOver()
        return failed
    }

    mutating func sessionIsAbsent() {
        for key in records.keys { records[key]!.sessionIsAbsent() }
        forgetWhatIsOver()
        noteAllChanged()
    }

    mutating func sessionContinues(isInDoubt: Bool, allowed: QoS?) {
        for key in records.keys {
            let isShared = MQTTTopicFilter.shared(key.text) != nil
            records[key]!.sessionContinues(isInDoubt: isInDoubt || isShared, allowed: allowed)
        }
        noteAllChanged()
    }

    private mutating func forgetWhatIsOver() {
        if records.contains(where: { $1.isOver }) { records = records.filter { !$1.isOver } }
    }

    private mutating func noteAllChanged() {
        changed = records.keys.map { $0 }
        guard changed.count > 1 else { return }
        // Filters that were only unsubscribed have no number.
        changed = records.sorted { ($0.value.number, $0.key) < ($1.value.number, $1.key) }.map { $0.key }
    }

    // MARK: Invariants

    /// Stops the process where the table contradicts itself; in debug builds only.
    func check() {
        var inFlight = 0
        let tokens = Set(requests.values.map { $0.token })
        for record in records.values {
            assert(!record.isOver, "A filter is remembered of which there is nothing to remember.")
            guard let token = record.inFlight.token else { continue }
            inFlight += 1
            assert(tokens.contains(token), "A filter awaits the answer to a request that is not in flight.")
        }
        let named = requests.values.reduce(0) { $0 + $1.filters.count }
        assert(inFlight == named, "Requests in flight name other filters than await answers.")
        for key in first { assert(records[key] != nil, "Messages wait for a filter of which nothing is known.") }
        let next = requests.values.reduce(Int64.max) { min($0, $1.deadline) }
        assert(deadline == next, "Another answer is late first than is noted.")
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
    var packetID: UInt16 = 0
    /// Whether messages of a new connection wait for the answer.
    package internal(set) var comesFirst = false
    /// When it was written, and when the answer is late.
    package var time: Int64
    var deadline = Int64.max
    /// How often the answer was waited for once more, because bytes kept arriving.
    var postponements: UInt8 = 0
}
