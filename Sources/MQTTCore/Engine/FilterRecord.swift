import MessagingWire

/// A topic filter of a client: what is wanted of it, what the server has of it, and which request is in flight for it.
///
/// Events only assign; which packet follows from them is computed (``next(hasOptions:)``). At most one request in flight
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
        func exceeds(_ asked: Options, hasOptions: Bool) -> Bool {
            if qos > asked.qos { return true }
            guard hasOptions else { return false }
            return noLocal != asked.noLocal || retainAsPublished != asked.retainAsPublished
                || identifier != asked.identifier
        }
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
        /// It refused these options; it may still hold what an earlier connection was granted.
        case refused(asked: Options, mayHold: Bool)
        case unknown
        /// The answer to the last request did not come in time. Nothing follows on this connection by itself.
        case late
    }

    /// What the server has granted.
    struct Holding: Sendable, Equatable {
        var asked: Options
        var granted: MQTTReasonCode
        /// Whether this connection has granted it.
        var isConfirmed = true
        /// What this connection has refused since.
        var refused: Options?
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

    typealias RetainHandling = MQTTSubscriptionRequest.RetainHandling

    private(set) var wanted = Wanted.none
    private(set) var server: Server
    private(set) var inFlight = InFlight.none
    /// The strongest Retain Handling of the callers that wait for a SUBSCRIBE which is not written; nil if none waits.
    private(set) var asking: RetainHandling?
    /// The Retain Handling for a server that does not hold the filter.
    private(set) var handling = RetainHandling.sendAtSubscribe
    /// The properties of the next packet, without an identifier of this client.
    private(set) var properties = MQTTProperties()
    /// Increases with each filter that is wanted anew; filters are subscribed in this order.
    var number: UInt64 = 0

    /// - Parameter mayBeHeld: whether the server may hold it in a session that an earlier process has begun.
    init(mayBeHeld: Bool) { server = mayBeHeld ? .unknown : .absent }

    // MARK: What follows

    /// The packet that is due while there is a connection.
    func next(hasOptions: Bool) -> Packet? {
        guard case .none = inFlight else { return nil }
        switch wanted {
        case .unclaimed: return nil
        case .none:
            switch server {
            case .holds, .unknown, .refused(_, mayHold: true): return .unsubscribe
            case .absent, .late, .refused(_, mayHold: false): return nil
            }
        case .options(let wanted):
            if asking != nil { return .subscribe }
            switch server {
            case .absent, .unknown: return .subscribe
            case .late: return nil
            case .holds(let holding):
                guard wanted != holding.refused else { return nil }
                return wanted.exceeds(holding.asked, hasOptions: hasOptions) ? .subscribe : nil
            case .refused(let asked, _): return Self.differ(wanted, asked, hasOptions) ? .subscribe : nil
            }
        }
    }

    private static func differ(_ wanted: Options, _ asked: Options, _ hasOptions: Bool) -> Bool {
        wanted.qos != asked.qos || wanted.exceeds(asked, hasOptions: hasOptions)
    }

    /// Whether the server has refused what is wanted, and nothing else is asked for.
    func isRefused(hasOptions: Bool) -> Bool {
        guard case .refused = server, case .options = wanted, case .none = inFlight else { return false }
        return next(hasOptions: hasOptions) == nil
    }

    /// Whether there is nothing to remember.
    var isOver: Bool {
        guard case .none = wanted, case .none = inFlight else { return false }
        switch server {
        case .absent, .refused(_, mayHold: false): return true
        case .holds, .unknown, .late, .refused(_, mayHold: true): return false
        }
    }

    /// The Retain Handling of the SUBSCRIBE that is due. A server that holds the filter repeats its retained messages only if
    /// a caller wants them. A server that may hold it sends them if it does not.
    var nextHandling: RetainHandling {
        switch server {
        case .absent, .refused(_, mayHold: false): handling
        case .holds(let holding) where holding.isConfirmed: asking ?? .doNotSend
        case .holds, .refused(_, mayHold: true), .unknown, .late:
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

    /// The strongest handling of the callers that wait for a SUBSCRIBE which is not written; nil if none waits.
    mutating func ask(_ handling: RetainHandling?) { asking = handling }

    mutating func unwant(_ properties: MQTTProperties) {
        wanted = .none
        asking = nil
        self.properties = properties
        // The server may have read the SUBSCRIBE.
        if case .late = server { server = .unknown }
    }

    /// The client stops: what the server holds may be wanted again.
    mutating func unclaim() {
        wanted = .unclaimed
        asking = nil
    }

    // MARK: What happened

    mutating func written(_ packet: Packet, token: UInt64) {
        assert(inFlight == .none, "Two requests in flight name a filter.")
        switch (packet, wanted) {
        case (.subscribe, .options(let options)):
            inFlight = .subscribe(asked: options, asking, token: token)
            asking = nil
        case (.unsubscribe, .none): inFlight = .unsubscribe(token: token)
        case (.subscribe, .none), (.subscribe, .unclaimed), (.unsubscribe, .unclaimed), (.unsubscribe, .options):
            assert(false, "A request asks for what nobody wants.")
        }
    }

    /// The packet cannot be written: what is wanted is refused, or the server keeps what it has.
    mutating func notWritten(_ packet: Packet) {
        switch (packet, wanted) {
        case (.subscribe, .options(let options)):
            asking = nil
            refuse(options)
        case (.unsubscribe, .none): server = .late
        case (.subscribe, .none), (.subscribe, .unclaimed), (.unsubscribe, .unclaimed), (.unsubscribe, .options):
            assert(false, "A request asks for what nobody wants.")
        }
    }

    mutating func subscribeAnswered(_ code: MQTTReasonCode) {
        guard case .subscribe(let asked, _, _) = inFlight else {
            return assert(false, "SUBACK has come for a filter that was not asked for.")
        }
        inFlight = .none
        if code.isError { return refuse(asked) }
        server = .holds(Holding(asked: asked, granted: code))
    }

    private mutating func refuse(_ asked: Options) {
        switch server {
        case .holds(var holding) where holding.isConfirmed:
            holding.refused = asked
            server = .holds(holding)
        case .absent, .refused(_, mayHold: false): server = .refused(asked: asked, mayHold: false)
        case .holds, .refused(_, mayHold: true), .unknown, .late:
            server = .refused(asked: asked, mayHold: true)
        }
    }

    /// UNSUBACK, whatever its codes.
    mutating func unsubscribeAnswered() {
        guard case .unsubscribe = inFlight else {
            return assert(false, "UNSUBACK has come for a filter that was not unsubscribed.")
        }
        inFlight = .none
        server = .absent
    }

    /// The answer did not come in time, and is ignored if it comes.
    mutating func late() {
        switch (inFlight, wanted) {
        case (.none, _): assert(false, "An answer is late that is not awaited.")
        // Nobody wants what the server may hold now: UNSUBSCRIBE follows.
        case (.subscribe, .none): server = .unknown
        case (.subscribe, .unclaimed), (.subscribe, .options), (.unsubscribe, _): server = .late
        }
        inFlight = .none
    }

    /// The request was not written, and will not be.
    mutating func withdrawn() {
        assert(inFlight != .none, "A request is withdrawn that there is not.")
        inFlight = .none
    }

    mutating func connectionLost() {
        if case .holds(let holding) = server {
            server = .holds(Holding(asked: holding.asked, granted: holding.granted, isConfirmed: false))
        }
        guard inFlight != .none else { return }
        // The callers that waited for the answer await the next one.
        if case .subscribe(_, let asked, _) = inFlight, case .options = wanted {
            asking = Self.strongest(asking, asked)
        }
        inFlight = .none
        server = .unknown
    }

    /// The last connection has ended because of the SUBSCRIBE.
    mutating func connectionEndRefused() {
        if case .options(let asked) = wanted { refuse(asked) }
    }

    /// CONNACK, or the client has discarded the session.
    mutating func sessionIsAbsent() {
        assert(inFlight == .none, "A request is in flight without a connection.")
        server = .absent
        if case .unclaimed = wanted { wanted = .none }
    }

    /// CONNACK: the session continues.
    ///
    /// - Parameters:
    ///   - isInDoubt: whether the server may have lost the filter nevertheless.
    ///   - allowed: the server's Maximum QoS; nil if that is not known.
    mutating func sessionContinues(isInDoubt: Bool, allowed: QoS?) {
        assert(inFlight == .none, "A request is in flight without a connection.")
        if isInDoubt { server = .unknown }
        switch server {
        case .absent, .refused, .unknown: break
        case .late: server = .unknown
        case .holds(var holding):
            guard let allowed, holding.granted.rawValue < min(allowed, holding.asked.qos).rawValue else { return }
            // It would grant more now.
            holding.asked.qos = QoS(rawValue: holding.granted.rawValue) ?? .atMostOnce
            server = .holds(holding)
        }
    }
}
