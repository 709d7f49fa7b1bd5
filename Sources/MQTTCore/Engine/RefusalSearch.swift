import MessagingWire

/// Finds the request that a server answers by ending the connection, as it may when it does not authorize a message
/// [MQTT-3.3.5-2], or never answers. Otherwise the client would repeat it first on each connection, and nothing else
/// would get through.
///
/// 1. After three connections in a row that ended while the same messages, or a SUBSCRIBE, were unanswered, requests are
///    sent one at a time (``sendsSingly``), until all that were unanswered have their answers.
/// 2. Each connection then begins with PINGREQ, and requests wait for its answer: a connection that ends before that did
///    not end because of a request. Once a request is accused, PINGREQ has to be answered many times, so that connections
///    that break all the time do not convict it.
/// 3. Each request is followed by PINGREQ. A server that answers this, and ends the connection much later, has not refused
///    the request.
/// 4. The request that ends two connections while it alone is unanswered is the culprit. Later ones to its topic or with
///    its filters are sent alone as well, and the first connection that they end is enough.
struct RefusalSearch: Sendable {
    /// A request that may end a connection.
    struct Request: Sendable {
        enum Name: Sendable, Equatable {
            /// A PUBLISH, by its place among all messages of the session.
            case message(UInt64)
            case subscription([ByteKey])
        }

        var name: Name
        /// The topic of a message, or the filters.
        var texts: [String]
        var isExactlyOnce: Bool
    }

    /// A request that was written, and PINGREQ behind it, while no other one was unanswered.
    struct Alone: Sendable {
        /// Nil if it cannot be a culprit.
        var request: Request?
        var time: Int64
        /// The number of PINGREQ.
        var ping: UInt32
        /// How long PINGREQ took to be answered.
        var pingDuration: Int64?

        /// Whether a connection that ends now has lasted for much longer than its server takes to answer.
        func isPassed(at now: Int64) -> Bool { pingDuration.map { now - time > 4 * $0 } ?? false }
    }

    /// What was unanswered when a connection ended.
    struct Unanswered {
        var hasSubscription: Bool
        /// The places of the first and the last message among those of the session; nil for none.
        var messages: ClosedRange<UInt64>?

        /// Whether some of it may have been unanswered when an earlier connection ended.
        func continues(_ earlier: Unanswered) -> Bool {
            if hasSubscription, earlier.hasSubscription { return true }
            guard let messages, let before = earlier.messages else { return false }
            return messages.lowerBound <= before.upperBound
        }
    }

    /// SUBSCRIBE or UNSUBSCRIBE that waits for its turn.
    struct HeldRequest: Sendable {
        var kind: OutboundSlot.Kind
        var packetID: UInt16
        var token: UInt64
        var filters: [String]
        var isExactlyOnce: Bool
        var comesFirst: Bool
        var bytes: [UInt8]
        /// When the answer is late, whether or not the request has been written by then.
        var deadline: Int64
        /// How often it was waited for once more, because bytes kept arriving.
        var postponements: UInt8 = 0
    }

    /// Connections in a row that may end without an answer before requests are sent one at a time.
    private static let maximumEnds = 3
    /// How often a connection has to answer PINGREQ before an accused request is sent, and how long that may take.
    private static let (maximumProbes, maximumProbeTime) = (20, Int64(2_000_000_000))
    /// Topics, and filters, that are remembered.
    private static let maximumRefused = 100

    /// What was unanswered at the first of the ends that are counted.
    private var suspects: Unanswered?
    /// Connections in a row that ended so.
    private(set) var ends = 0
    /// Requests are sent one at a time until no message up to this place is unanswered; nil if they are not.
    private(set) var singlyThrough: UInt64?
    /// The request that has ended one connection while it alone was unanswered.
    private var accused: Request.Name?
    private var refusedTopics: [ByteKey] = []
    private var refusedFilters: [ByteKey] = []

    // Of the connection.

    /// The number of the last PINGREQ that was answered.
    private var answeredPing: UInt32 = 0
    /// The number of the PINGREQ whose answer requests wait for.
    private var awaitedPing: UInt32?
    /// How many of them there were, and when the first one was written.
    private var probeCount = 0
    private var probeStart: Int64 = 0
    /// The request that alone is unanswered.
    private(set) var alone: Alone?
    var held: [HeldRequest] = []

    var sendsSingly: Bool { singlyThrough != nil }
    /// Whether any request is sent otherwise than usual.
    var isCareful: Bool { sendsSingly || !refusedTopics.isEmpty || !refusedFilters.isEmpty }
    /// Whether there is nothing to remember.
    var isEmpty: Bool { suspects == nil && !isCareful && held.isEmpty }
    /// Whether nothing may be sent now.
    var isWaiting: Bool { awaitedPing != nil || alone != nil }

    func sendsAlone(topic: String) -> Bool { sendsSingly || refusedTopics.contains(ByteKey(topic)) }

    func sendsAlone(filters: [String]) -> Bool {
        sendsSingly || filters.contains { refusedFilters.contains(ByteKey($0)) }
    }

    // MARK: What happened

    mutating func sentAlone(_ request: Request?, ping: UInt32, at now: Int64) {
        alone = Alone(request: request, time: now, ping: ping)
    }

    /// PINGREQ was written, and requests wait for its answer.
    mutating func probed(_ ping: UInt32, at now: Int64) {
        if probeCount == 0 { (probeStart, answeredPing) = (now, ping &- 1) }
        probeCount += 1
        awaitedPing = ping
    }

    /// Whether the connection has not proved yet that it lasts without the accused request.
    func needsProbe(at now: Int64) -> Bool {
        !isWaiting && accused != nil && (1..<Self.maximumProbes).contains(probeCount)
            && now - probeStart < Self.maximumProbeTime
    }

    /// PINGRESP arrived; `last` is the number of the last PINGREQ that was written.
    mutating func pingAnswered(writtenUpTo last: UInt32, at now: Int64) {
        if answeredPing != last { answeredPing &+= 1 }
        func includes(_ ping: UInt32) -> Bool { Int32(bitPattern: answeredPing &- ping) >= 0 }
        if let ping = awaitedPing, includes(ping) { awaitedPing = nil }
        if let alone, alone.pingDuration == nil, includes(alone.ping) { self.alone?.pingDuration = now - alone.time }
    }

    /// It has its answer: the server refuses it no more.
    mutating func answeredAlone() {
        if let request = alone?.request {
            if accused == request.name { accused = nil }
            let keys = request.texts.map { ByteKey($0) }
            if case .message = request.name {
                refusedTopics.removeAll { keys.contains($0) }
            } else {
                refusedFilters.removeAll { keys.contains($0) }
            }
        }
        alone = nil
    }

    /// Everything that was unanswered has its answer.
    mutating func finish() { (suspects, ends, singlyThrough, accused) = (nil, 0, nil, nil) }

    /// An accepted connection has ended. Returns the request because of which it did, if that is certain.
    mutating func connectionEnded(_ end: MQTTConnectionEnd, unanswered: Unanswered?, at now: Int64) -> Request? {
        if case .unrelated = end { return nil }
        guard let unanswered else {
            finish()
            return nil
        }
        if let alone { return judge(alone.request, end, isPassed: alone.isPassed(at: now)) }
        // It ends although no request is under way.
        if sendsSingly {
            finish()
            return nil
        }
        count(unanswered)
        return nil
    }

    /// - Parameter isPassed: whether the server has answered PINGREQ behind the request long before.
    private mutating func judge(_ request: Request?, _ end: MQTTConnectionEnd, isPassed: Bool) -> Request? {
        ends += 1
        guard let request, end.mayAnswer(request, isPassed: isPassed) else {
            accused = nil
            return nil
        }
        let keys = request.texts.map { ByteKey($0) }
        let isMessage = if case .message = request.name { true } else { false }
        let isKnown = keys.contains { (isMessage ? refusedTopics : refusedFilters).contains($0) }
        guard accused == request.name || isKnown else {
            accused = request.name
            return nil
        }
        (accused, suspects, ends) = (nil, nil, 0)
        guard !isKnown else { return request }
        if isMessage {
            refusedTopics = (refusedTopics + keys).suffix(Self.maximumRefused)
        } else {
            refusedFilters = (refusedFilters + keys).suffix(Self.maximumRefused)
        }
        return request
    }

    private mutating func count(_ unanswered: Unanswered) {
        if let suspects, unanswered.continues(suspects) {
            ends += 1
        } else {
            (suspects, ends) = (unanswered, 1)
        }
        if ends >= Self.maximumEnds { singlyThrough = unanswered.messages?.upperBound ?? 0 }
    }

    /// What belonged to the connection is forgotten. Returns the requests that were not sent.
    mutating func connectionClosed() -> [HeldRequest] {
        defer { (awaitedPing, probeCount, alone, held) = (nil, 0, nil, []) }
        return held
    }
}

/// How an accepted connection ends, as far as that may be an answer.
enum MQTTConnectionEnd: Sendable {
    /// We end it, or the reason has nothing to do with a request.
    case unrelated
    /// It just ends.
    case closed
    /// The server sends DISCONNECT.
    indirect case disconnected(MQTTPacket.Disconnect)
    /// We end it because an answer is missing.
    case unanswered

    /// DISCONNECT arrived.
    init(_ packet: MQTTPacket.Disconnect) {
        switch packet.reasonCode {
        case .serverShuttingDown, .serverBusy, .serverUnavailable, .keepAliveTimeout, .sessionTakenOver,
            .useAnotherServer, .serverMoved, .connectionRateExceeded, .maximumConnectTime, .messageRateTooHigh,
            .administrativeAction:
            self = .unrelated
        default: self = .disconnected(packet)
        }
    }

    /// Whether it may be the answer to the only request without one.
    ///
    /// Some servers never answer QoS 2. One that answers nothing else is at fault itself.
    func mayAnswer(_ request: RefusalSearch.Request, isPassed: Bool) -> Bool {
        switch self {
        case .unrelated: false
        case .closed: !isPassed
        case .unanswered: request.isExactlyOnce
        case .disconnected(let packet): !isPassed || Self.namesRequest(packet.reasonCode)
        }
    }

    private static func namesRequest(_ reason: MQTTReasonCode) -> Bool {
        switch reason {
        case .malformedPacket, .protocolError, .notAuthorized, .topicFilterInvalid, .topicNameInvalid, .packetTooLarge,
            .quotaExceeded, .payloadFormatInvalid, .retainNotSupported, .qosNotSupported,
            .sharedSubscriptionsNotSupported, .subscriptionIdentifiersNotSupported,
            .wildcardSubscriptionsNotSupported:
            true
        default: false
        }
    }
}

/// A request that was given up, because the server ended connections instead of answering it, or never answered it.
public struct MQTTRefusal: Sendable {
    /// What was requested.
    public enum Request: Sendable, Equatable {
        /// PUBLISH to this topic.
        case message(topic: String, QoS)
        /// SUBSCRIBE with these filters.
        case subscription(filters: [String])
    }

    /// What the request is.
    public var request: Request
    /// What the server sent when it ended the last connection; nil if it sent nothing.
    public var disconnect: MQTTPacket.Disconnect?
    /// Whether the server did not end the connections, but never answered.
    public var isSilence: Bool
    /// The bytes of a message's topic and payload together; 0 for SUBSCRIBE.
    public var byteCount: Int

    init(_ request: Request, disconnect: MQTTPacket.Disconnect?, isSilence: Bool, byteCount: Int = 0) {
        self.request = request
        self.disconnect = disconnect
        self.isSilence = isSilence
        self.byteCount = byteCount
    }
}
