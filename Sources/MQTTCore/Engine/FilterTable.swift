import MessagingWire

/// The filters of a client, and the SUBSCRIBE and UNSUBSCRIBE packets that name them and have no answer.
struct FilterTable: Sendable {
    private(set) var records: [ByteKey: FilterRecord] = [:]
    /// What this connection has to do for them, if there is anything. An array, which is changed in place and small while it
    /// is empty: most connections are idle.
    private(set) var work: [FilterWork] = []
    /// The token of the next request, or the number of the next filter.
    private(set) var nextToken: UInt64 = 1

    var isEmpty: Bool { records.isEmpty }

    /// Changes what there is to do.
    private mutating func withWork<Result>(_ body: (inout FilterWork) -> Result) -> Result {
        if work.isEmpty { work = [FilterWork()] }
        defer { if work[0].isEmpty { work = [] } }
        return body(&work[0])
    }

    subscript(filter: String) -> FilterRecord? { records[ByteKey(filter)] }

    // MARK: What the caller wants

    /// Changes a record, which is made if there is none, and forgotten if there is nothing to remember.
    ///
    /// - Parameter mayBeHeld: whether a server may hold a filter that has no record.
    mutating func change(_ filter: String, mayBeHeld: Bool, _ change: (inout FilterRecord) -> Void) {
        let key = ByteKey(filter)
        // Only the store has to forget it still.
        if mayBeHeld, records[key]?.isGone == true { records[key]!.doubt() }
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
        _ request: MQTTSubscriptionRequest, identifier: UInt32, _ properties: MQTTProperties, mayBeHeld: Bool,
        isTemporary: Bool
    ) {
        let options = FilterRecord.Options(
            qos: request.qos, noLocal: request.noLocal, retainAsPublished: request.retainAsPublished,
            identifier: properties.subscriptionIdentifiers.first ?? identifier)
        let number = makeToken()
        change(request.filter, mayBeHeld: mayBeHeld) { record in
            if case .options = record.wanted {} else { record.number = number }
            record.want(options, request.retainHandling, properties)
            record.isTemporary = isTemporary
        }
    }

    private mutating func noteChange(_ key: ByteKey) {
        if records[key]?.isOver == true {
            records[key] = nil
            settle(key)
        }
        withWork { $0.changed.append(key) }
    }

    // MARK: What is due

    private var changed: [ByteKey] { work.first?.changed ?? [] }

    /// Whether packets may be due.
    var hasChanges: Bool { !work.isEmpty && !work[0].changed.isEmpty }

    /// The filter that has changed first.
    var firstChanged: ByteKey? { work.first?.changed.first }

    /// Takes the filters of which something has changed, each once.
    mutating func takeChanged() -> [ByteKey] {
        let keys = changed
        forgetChanges()
        if keys.count < 2 { return keys }
        var seen = Set<ByteKey>()
        return keys.filter { seen.insert($0).inserted }
    }

    /// Takes the filter that has changed first.
    mutating func takeFirstChanged() -> ByteKey? { hasChanges ? withWork { $0.changed.removeFirst() } : nil }

    /// The packet that is due for a filter that was taken.
    mutating func due(_ key: ByteKey, _ terms: FilterRecord.Terms) -> FilterRecord.Packet? {
        let packet = records[key]?.next(terms)
        if packet != .subscribe { settle(key) }
        return packet
    }

    /// Whether SUBSCRIBE of a filter waits for the store.
    func waitsForStore(_ key: ByteKey, through ticket: UInt64) -> Bool {
        records[key]?.waitsForStore(through: ticket) ?? false
    }

    /// Whether a packet is due for a filter that meets a condition.
    func hasDue(_ terms: FilterRecord.Terms, where isMeant: (ByteKey, FilterRecord.Packet) -> Bool) -> Bool {
        changed.contains { key in
            records[key]?.next(terms).map { isMeant(key, $0) } ?? false
        }
    }

    /// Packets of these filters are due still: others go first, or no identifier is free.
    mutating func putBack(_ keys: [ByteKey]) { if !keys.isEmpty { withWork { $0.changed += keys } } }

    /// The packet of this filter waits for its turn, and others wait behind it.
    mutating func putFirst(_ key: ByteKey) { withWork { $0.changed.insert(key, at: 0) } }

    /// There is no connection: the next one looks at all filters.
    mutating func forgetChanges() { if hasChanges { withWork { $0.changed = [] } } }

    // MARK: The store

    /// The store was given a record.
    mutating func setNoted(_ note: FilterRecord.Note, of key: ByteKey, ticket: UInt64) {
        records[key]?.setNoted(note, ticket: ticket)
        guard records[key]?.isOver == true else { return }
        records[key] = nil
        settle(key)
    }

    /// The store was opened, perhaps after another client has used it.
    ///
    /// - Parameter stored: the filters that it has, and whether each is wanted.
    mutating func reopened(_ stored: [ByteKey: Bool], persistedTicket: UInt64) {
        func note(_ key: ByteKey) -> FilterRecord.Note {
            switch stored[key] {
            case true?: .wanted
            case false?: .ended
            case nil: .nothing
            }
        }
        for key in records.keys { records[key]!.reopened(note(key), persistedTicket: persistedTicket) }
        for key in stored.keys where records[key] == nil { records[key] = FilterRecord(restored: note(key)) }
        forgetWhatIsOver()
    }

    /// The store was emptied.
    mutating func storeWasEmptied() {
        for key in records.keys { records[key]!.setNoted(.nothing, ticket: 0) }
        forgetWhatIsOver()
    }

    // MARK: What comes first

    /// The filters that have to be answered before the first PUBLISH of this connection.
    var first: Set<ByteKey> { work.first?.first ?? [] }

    /// Whether messages wait.
    var messagesWait: Bool { !work.isEmpty && !work[0].first.isEmpty }

    /// Messages wait for the answers to the SUBSCRIBE packets that are due and meet a condition.
    mutating func expectAnswers(_ terms: FilterRecord.Terms, where isMeant: (ByteKey) -> Bool) {
        let keys = changed.filter { records[$0]?.next(terms) == .subscribe && isMeant($0) }
        if !keys.isEmpty { withWork { $0.first.formUnion(keys) } }
    }

    /// Messages wait for no answer any more.
    mutating func nothingComesFirst() { if messagesWait { withWork { $0.first = [] } } }

    /// Messages do not wait for a filter, unless its SUBSCRIBE is in flight.
    mutating func settle(_ key: ByteKey) {
        guard messagesWait else { return }
        if case .subscribe? = records[key]?.inFlight { return }
        withWork { _ = $0.first.remove(key) }
    }

    /// Whether messages wait for the answer.
    func comesFirst(_ request: MQTTFilterRequest) -> Bool {
        messagesWait && request.filters.contains { work[0].first.contains(ByteKey($0)) }
    }

    // MARK: Requests

    mutating func makeToken() -> UInt64 {
        defer { nextToken += 1 }
        return nextToken
    }

    mutating func written(_ request: MQTTFilterRequest, _ terms: FilterRecord.Terms) {
        for filter in request.filters {
            records[ByteKey(filter)]?.written(request.packet, terms, token: request.token)
        }
        withWork { $0.add(request) }
    }

    /// A request cannot be written, whatever the connection.
    mutating func notWritten(_ request: MQTTFilterRequest) {
        for filter in request.filters {
            change(filter) { $0.notWritten(request.packet) }
            settle(ByteKey(filter))
        }
    }

    mutating func subscribeAnswered(_ request: MQTTFilterRequest, _ codes: [MQTTReasonCode]) {
        withWork { $0.answered(request.packetID) }
        for (filter, code) in zip(request.filters, codes) {
            change(filter) { $0.subscribeAnswered(code) }
            settle(ByteKey(filter))
        }
    }

    mutating func unsubscribeAnswered(_ request: MQTTFilterRequest) {
        withWork { $0.answered(request.packetID) }
        for filter in request.filters { change(filter) { $0.unsubscribeAnswered() } }
    }

    /// The answer to a late request has come. False if no late request of this kind has the identifier.
    mutating func lateAnswered(_ id: UInt16, _ packet: FilterRecord.Packet) -> Bool {
        !work.isEmpty && withWork { $0.lateAnswered(id, packet) }
    }

    mutating func late(_ request: MQTTFilterRequest) {
        withWork { $0.late(request) }
        for filter in request.filters { change(filter) { $0.late() } }
    }

    /// The requests in flight, by their packet identifiers.
    var requests: [UInt16: MQTTFilterRequest] { work.first?.inFlight ?? [:] }

    /// The packet identifiers of all requests, the late ones among them.
    var identifiers: [UInt16] { work.first.map { Array($0.inFlight.keys) + Array($0.late.keys) } ?? [] }

    /// The request whose answer is awaited longest.
    var oldestRequest: MQTTFilterRequest? { work.isEmpty ? nil : work[0].oldest }

    /// PINGRESP arrived for the PINGREQ that was written at `time`: answers to earlier requests are not behind what is still
    /// to be read.
    mutating func overtaken(by time: Int64) { if !work.isEmpty { work[0].answeredUpTo = time } }

    /// The clock has gone back to `time`.
    mutating func limitTimes(to time: Int64) { if !work.isEmpty { work[0].limitTimes(to: time) } }

    /// Whether the answer may be behind what is still to be read.
    func mayBeBehind(_ request: MQTTFilterRequest) -> Bool {
        work.first.map { request.time > $0.answeredUpTo } ?? false
    }

    // MARK: Connections

    /// Returns the requests that have no answer, in their order.
    ///
    /// - Parameter refused: the SUBSCRIBE because of which the connection has ended.
    mutating func connectionLost(refused: MQTTFilterRequest?) -> [MQTTFilterRequest] {
        let failed = work.isEmpty ? [] : requests.values.sorted { $0.token < $1.token }
        work = []
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
        guard !records.isEmpty else { return }
        // Filters that were only unsubscribed have no number.
        let keys = records.sorted { ($0.value.number, $0.key) < ($1.value.number, $1.key) }.map { $0.key }
        withWork { $0.changed = keys }
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
        if !work.isEmpty { work[0].check() }
    }
}
