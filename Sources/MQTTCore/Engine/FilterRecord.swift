import MessagingWire

/// A topic filter of a client: what is wanted of it, what the server has of it, and which request is in flight for it.
///
/// Events only assign; which packet follows from them is computed (``next(_:)``). At most one request in flight
/// names a filter.
struct FilterRecord: Sendable, Equatable {
    /// What SUBSCRIBE asks for, except for Retain Handling.
    struct Options: Sendable, Equatable {
        var qos = QoS.atMostOnce
        var noLocal = false
        var retainAsPublished = false
        /// The Subscription Identifier; 0 for none.
        var identifier: UInt32 = 0

        /// Whether a server that was asked for `asked` is to be asked for this. A lower QoS is not worth a request, whose
        /// answer before 5.0 repeats retained messages.
        func exceeds(_ asked: Options, _ terms: Terms) -> Bool {
            if qos > asked.qos { return true }
            switch terms {
            case .qos: return false
            case .options: return differs(from: asked)
            case .identifiers: return differs(from: asked) || identifier != asked.identifier
            }
        }

        private func differs(from asked: Options) -> Bool {
            noLocal != asked.noLocal || retainAsPublished != asked.retainAsPublished
        }
    }

    /// What a SUBSCRIBE of the connection may have.
    enum Terms: Sendable {
        /// Before 5.0.
        case qos
        case options
        /// A server of 5.0 need not support identifiers.
        case identifiers
    }

    enum Wanted: Sendable, Equatable {
        case none
        /// The server has it for a subscription that ended with the client, and may have it for the next one.
        case unclaimed
        case options(Options)
    }

    enum Server: Sendable, Equatable {
        case absent
        case holds(Holding)
        /// It may have the filter; also for longer than this client has asked for it, if `isOlder`.
        case unknown(isOlder: Bool, mayLackIdentifier: Bool)
        /// The answer to the last request did not come in time, or it could not be written. Nothing follows on this connection
        /// unless something else is wanted.
        case late(mayLackIdentifier: Bool)

        /// Whether it may have the filter without an identifier of this process.
        var mayLackIdentifier: Bool {
            switch self {
            case .absent: false
            case .holds(let holding): holding.asked.identifier == 0
            case .unknown(_, let mayLackIdentifier), .late(let mayLackIdentifier): mayLackIdentifier
            }
        }
    }

    /// What the server has granted.
    struct Holding: Sendable, Equatable {
        /// With identifier 0 if it is not certain that this process has sent the identifier.
        var asked: Options
        var granted: MQTTReasonCode
        /// Whether this connection has granted it.
        var isConfirmed = true
    }

    enum InFlight: Sendable, Equatable {
        case none
        /// With the handling of retained messages that callers asked for, if any waited.
        case subscribe(asked: Options, RetainHandling?, token: UInt64)
        case unsubscribe(token: UInt64)

        var token: UInt64? {
            switch self {
            case .none: nil
            case .subscribe(_, _, let token), .unsubscribe(let token): token
            }
        }
    }

    /// The packet that is to be written.
    enum Packet: Sendable, Equatable {
        case subscribe
        case unsubscribe
    }

    /// What a session store has of the filter.
    enum Note: Sendable, Equatable {
        case nothing
        /// The server may have it for a subscription, which the next process may take over.
        case wanted
        /// The subscription has ended, and the server may have it still.
        case ended
    }

    typealias RetainHandling = MQTTSubscriptionRequest.RetainHandling

    private(set) var wanted = Wanted.none
    private(set) var server: Server
    private(set) var inFlight = InFlight.none
    /// What the server has refused since it granted something, or began a session. It is not asked for the same again.
    private(set) var refused: Options?
    /// The strongest Retain Handling of the callers that wait for a SUBSCRIBE which is not written; nil if none waits. While one
    /// does, SUBSCRIBE is due, whatever the server holds.
    private(set) var asking: RetainHandling?
    /// The Retain Handling for a server that does not hold the filter.
    private(set) var handling = RetainHandling.sendAtSubscribe
    /// The properties of the next packet, without an identifier of this client.
    private(set) var properties = MQTTProperties()
    /// What the session store has, with the ticket of that record.
    private(set) var noted = Note.nothing
    private var ticket: UInt64 = 0
    /// Whether the next process is not to take it over: the topic of replies to this one.
    var isTemporary = false
    /// Increases with each filter that is wanted anew; filters are subscribed in this order.
    var number: UInt64 = 0

    /// - Parameter mayBeHeld: whether the server may hold it in a session that an earlier process has begun.
    init(mayBeHeld: Bool) { server = mayBeHeld ? .unknown(isOlder: true, mayLackIdentifier: true) : .absent }

    /// A filter of an earlier process.
    init(restored note: Note) {
        self.init(mayBeHeld: true)
        wanted = note == .ended ? .none : .unclaimed
        noted = note
    }

    // MARK: What follows

    /// The packet that is due while there is a connection.
    func next(_ terms: Terms) -> Packet? {
        guard case .none = inFlight else { return nil }
        switch wanted {
        case .unclaimed: return nil
        case .none:
            switch server {
            case .holds, .unknown: return .unsubscribe
            case .absent, .late: return nil
            }
        case .options(let wanted):
            if asking != nil { return .subscribe }
            if let refused, !Self.differ(wanted, refused, terms) { return nil }
            switch server {
            case .absent, .unknown: return .subscribe
            case .late: return nil
            case .holds(let holding):
                return wanted.exceeds(holding.asked, terms) ? .subscribe : nil
            }
        }
    }

    private static func differ(_ wanted: Options, _ asked: Options, _ terms: Terms) -> Bool {
        wanted.qos != asked.qos || wanted.exceeds(asked, terms)
    }

    /// Whether the server has refused what is wanted and holds nothing that it granted on this connection, and nothing is asked
    /// for.
    func isRefused(_ terms: Terms) -> Bool {
        if case .holds = server { return false }
        guard refused != nil, case .options = wanted, case .none = inFlight else { return false }
        return next(terms) == nil
    }

    /// Whether the server may have the filter without an identifier of this process, also because of the request in flight.
    private var mayLackIdentifier: Bool {
        if case .subscribe(let asked, _, _) = inFlight, asked.identifier == 0 { return true }
        return server.mayLackIdentifier
    }

    /// With which Subscription Identifier the server has it.
    var heldIdentifier: MQTTEngine.HeldIdentifier {
        if mayLackIdentifier { return .maybeNone }
        return switch (server, inFlight) {
        case (.holds, .none), (.holds, .subscribe): .own
        case (.holds, .unsubscribe), (.absent, _), (.unknown, _), (.late, _): .ownOrNothing
        }
    }

    /// Whether it is asked for without its identifier, and will be asked for again with it.
    var willAskForIdentifier: Bool {
        guard case .subscribe(let asked, _, _) = inFlight, case .options(let wanted) = wanted else { return false }
        return asked.identifier == 0 && wanted.identifier != 0
    }

    private var isHeld: Bool { if case .holds = server { true } else { false } }

    /// Whether it is neither wanted nor at the server.
    var isGone: Bool {
        if case .options = wanted { return false }
        return server == .absent && inFlight == .none
    }

    /// Whether there is nothing to remember.
    var isOver: Bool { isGone && noted == .nothing }

    /// What the store is to have. A filter that the server cannot have yet is noted when SUBSCRIBE is due.
    func note(isDue: Bool) -> Note {
        if isGone { return .nothing }
        switch wanted {
        case .none: return .ended
        case .unclaimed, .options:
            if noted == .nothing, !isDue, !isHeld { return .nothing }
            return isTemporary ? .ended : .wanted
        }
    }

    /// Whether SUBSCRIBE waits until the store has what it was given.
    func waitsForStore(through ticket: UInt64) -> Bool {
        guard case .options = wanted else { return false }
        return noted != .nothing && self.ticket > ticket
    }

    /// The Retain Handling of the SUBSCRIBE that is due. A server that holds the filter repeats its retained messages only if
    /// a caller wants them. A server that may hold it sends them if it does not.
    var nextHandling: RetainHandling {
        switch server {
        case .absent: handling
        case .holds(let holding) where holding.isConfirmed: asking ?? .doNotSend
        case .holds, .unknown, .late:
            Self.strongest(asking, handling == .doNotSend ? nil : .sendIfNew) ?? .doNotSend
        }
    }

    /// The handling that brings most retained messages.
    static func strongest(_ one: RetainHandling?, _ other: RetainHandling?) -> RetainHandling? {
        guard let one, let other else { return one ?? other }
        return one.rawValue < other.rawValue ? one : other
    }

    // MARK: What the caller wants

    mutating func want(_ options: Options, _ handling: RetainHandling, _ properties: MQTTProperties) {
        wanted = .options(options)
        self.handling = handling
        self.properties = properties
    }

    /// A caller waits for a SUBSCRIBE that is not written.
    mutating func ask(_ handling: RetainHandling) { asking = Self.strongest(asking, handling) }

    /// The handlings of the callers that wait still: for the SUBSCRIBE in flight, and for the next.
    mutating func keepAsking(_ written: RetainHandling?, next: RetainHandling?) {
        if case .subscribe(let asked, _, let token) = inFlight {
            inFlight = .subscribe(asked: asked, written, token: token)
        }
        asking = next
    }

    mutating func unwant(_ properties: MQTTProperties) {
        wanted = .none
        asking = nil
        self.properties = properties
        // The server may have read the SUBSCRIBE.
        if case .late = server { becomeUnknown(isOlder: false) }
    }

    /// The server may hold it after all: somebody asks to unsubscribe it.
    mutating func doubt() { server = .unknown(isOlder: true, mayLackIdentifier: true) }

    /// The client stops: what the server holds may be wanted again. What was only asked for is not wanted any more.
    mutating func stop() {
        switch server {
        case .holds, .unknown(isOlder: true, _), .late:
            wanted = .unclaimed
            asking = nil
        case .absent, .unknown(isOlder: false, _): unwant(MQTTProperties())
        }
    }

    // MARK: The store

    /// The store was given a record of it.
    mutating func setNoted(_ note: Note, ticket: UInt64) { (noted, self.ticket) = (note, ticket) }

    /// The store was opened again, perhaps after another client has used it.
    ///
    /// - Parameter persistedTicket: that of the newest record that was stored before.
    mutating func reopened(_ stored: Note, persistedTicket: UInt64) {
        switch wanted {
        case .options: break
        // The store was not given this end, or has failed.
        case .none where noted != .ended || ticket > persistedTicket: break
        case .none, .unclaimed:
            wanted = stored == .wanted ? .unclaimed : .none
            if stored == .nothing { server = .absent }
        }
        switch (server, stored) {
        case (.absent, .nothing): break
        case (.holds(var holding), .wanted):
            // The other client may have asked for it without this identifier.
            holding.asked.identifier = 0
            server = .holds(holding)
        case (.holds, .nothing), (.holds, .ended), (.absent, .wanted), (.absent, .ended), (.unknown, _), (.late, _):
            doubt()
        }
        setNoted(stored, ticket: 0)
    }

    // MARK: What happened

    mutating func written(_ packet: Packet, _ terms: Terms, token: UInt64) {
        assert(inFlight == .none, "Two requests in flight name a filter.")
        switch (packet, wanted) {
        case (.subscribe, .options(var options)):
            if terms != .identifiers { options.identifier = 0 }
            inFlight = .subscribe(asked: options, asking, token: token)
            asking = nil
        case (.unsubscribe, .none): inFlight = .unsubscribe(token: token)
        case (.subscribe, .none), (.subscribe, .unclaimed), (.unsubscribe, .unclaimed), (.unsubscribe, .options):
            assert(false, "A request asks for what is not wanted.")
        }
    }

    /// The packet cannot be written: what is wanted is refused, or the server keeps what it has.
    mutating func notWritten(_ packet: Packet) {
        switch (packet, wanted) {
        case (.subscribe, .options(let options)):
            asking = nil
            refuse(options)
        case (.unsubscribe, .none): server = .late(mayLackIdentifier: mayLackIdentifier)
        case (.subscribe, .none), (.subscribe, .unclaimed), (.unsubscribe, .unclaimed), (.unsubscribe, .options):
            assert(false, "A request asks for what is not wanted.")
        }
    }

    mutating func subscribeAnswered(_ code: MQTTReasonCode) {
        guard case .subscribe(let asked, _, _) = inFlight else {
            return assert(false, "SUBACK has come for a filter that was not asked for.")
        }
        inFlight = .none
        if code.isError { return refuse(asked) }
        server = .holds(Holding(asked: asked, granted: code))
        refused = nil
    }

    /// What this connection has granted is there still. What an earlier one has may be.
    private mutating func refuse(_ asked: Options) {
        refused = asked
        switch server {
        case .holds(let holding) where holding.isConfirmed: break
        case .absent: break
        case .holds, .late: becomeUnknown(isOlder: true)
        case .unknown(let isOlder, _): becomeUnknown(isOlder: isOlder)
        }
    }

    /// UNSUBACK, whatever its codes.
    mutating func unsubscribeAnswered() {
        guard case .unsubscribe = inFlight else {
            return assert(false, "UNSUBACK has come for a filter that was not unsubscribed.")
        }
        inFlight = .none
        server = .absent
        refused = nil
    }

    /// The answer did not come in time, and is ignored if it comes.
    mutating func late() {
        switch (inFlight, wanted) {
        case (.none, _): assert(false, "An answer is late that is not awaited.")
        // Nobody wants what the server may hold now: UNSUBSCRIBE follows.
        case (.subscribe, .none): becomeUnknown(isOlder: false)
        case (.subscribe, .unclaimed), (.subscribe, .options), (.unsubscribe, _):
            server = .late(mayLackIdentifier: mayLackIdentifier)
        }
        inFlight = .none
    }

    /// - Parameter isRefused: whether the connection has ended because of the SUBSCRIBE in flight.
    mutating func connectionLost(isRefused: Bool = false) {
        if case .holds(let holding) = server {
            server = .holds(Holding(asked: holding.asked, granted: holding.granted, isConfirmed: false))
            refused = nil
        }
        defer { inFlight = .none }
        switch inFlight {
        case .none: break
        case .unsubscribe: loseSight()
        case .subscribe(let asked, _, _) where isRefused: refuse(asked)
        case .subscribe(_, let handling, _):
            loseSight()
            // The callers that waited for the answer await the next one.
            if case .options = wanted { asking = Self.strongest(asking, handling) }
        }
    }

    /// It is not known any more whether the server has the filter.
    private mutating func loseSight() {
        switch server {
        case .absent: becomeUnknown(isOlder: false)
        case .holds, .late: becomeUnknown(isOlder: true)
        case .unknown(let isOlder, _): becomeUnknown(isOlder: isOlder)
        }
    }

    private mutating func becomeUnknown(isOlder: Bool) {
        server = .unknown(isOlder: isOlder, mayLackIdentifier: mayLackIdentifier)
    }

    /// CONNACK, or the client has discarded the session.
    mutating func sessionIsAbsent() {
        assert(inFlight == .none, "A request is in flight without a connection.")
        server = .absent
        refused = nil
        if case .unclaimed = wanted { wanted = .none }
    }

    /// CONNACK: the session continues.
    ///
    /// - Parameters:
    ///   - isInDoubt: whether the server may have lost the filter nevertheless.
    ///   - allowed: the server's Maximum QoS; nil if that is not known.
    mutating func sessionContinues(isInDoubt: Bool, allowed: QoS?) {
        assert(inFlight == .none, "A request is in flight without a connection.")
        // User properties are those of the call that waited for the packet.
        if case .none = wanted { properties = MQTTProperties() }
        if isInDoubt { becomeUnknown(isOlder: true) }
        switch server {
        case .absent, .unknown: break
        case .late: loseSight()
        case .holds(var holding):
            guard let allowed, holding.granted.rawValue < min(allowed, holding.asked.qos).rawValue else { return }
            // It would grant more now.
            holding.asked.qos = QoS(rawValue: holding.granted.rawValue) ?? .atMostOnce
            server = .holds(holding)
        }
    }
}
