import MessagingWire

/// The MQTT protocol as a state machine, for either end of a connection and for 3.1, 3.1.1 and 5.0.
///
/// # Theory of operation
///
/// An engine does no input or output, reads no clock and calls nothing back. It lives as long as a client: it holds the
/// session (packet identifiers, messages in flight, the queue behind them, identifiers of received QoS 2 messages), and
/// connections come and go on it. The caller owns the socket and the lock.
///
/// There are three kinds of methods, and one order of draining:
///
/// 1. *What happened*, named in the past tense, and operations of the caller: ``connectionOpened(at:deadline:)``,
///    ``receive(_:at:into:)``, ``publish(topic:payload:qos:retain:properties:token:at:)``, ``handleTimeout(at:progress:into:)``.
///    Each takes the time, in nanoseconds of a monotonic clock of the caller. Operations that cannot be carried out throw
///    ``MQTTUsageError`` before anything is written; what the *peer* does wrong is never thrown but reported as
///    ``MQTTEngineEvent/Kind/connectionFailed(_:)``.
/// 2. *What to do*: bytes appended to ``output``, which the caller swaps out and writes; ``MQTTEffects``, plain arrays
///    that the caller performs outside its lock and clears; and one ``nextDeadline``.
/// 3. *Questions*, which change nothing.
///
/// After any call: write ``output``, perform the effects, arm the timer if ``nextDeadline`` is earlier than what is
/// armed. Late, early and repeated timeouts are harmless. When ``shouldClose`` is true, close the connection
/// once ``output`` is written, and report ``connectionClosed(at:into:)``.
///
/// The token of a publish is an integer of the caller's choice. A publish of QoS 1 or 2 ends with exactly one
/// ``MQTTPublishCompletion``, over however many connections; a SUBSCRIBE or UNSUBSCRIBE ends with its completion, or with one of
/// the events that it is late, cannot be written, is refused, or has failed with its connection. A caller that no longer waits does nothing: the packet
/// identifier stays taken until the acknowledgement [MQTT 5.0 2.2.1-3].
public struct MQTTEngine: ~Copyable, Sendable {
    /// The state of a connection.
    public enum Phase: UInt8, Sendable {
        /// There is no connection.
        case closed
        /// A client awaits CONNACK, a server awaits CONNECT.
        case connecting
        /// A server received CONNECT and has not answered yet.
        case deciding
        /// The connection is accepted.
        case connected
        /// A client finishes QoS 2 exchanges before it writes DISCONNECT; nothing new is begun.
        case leaving
        /// The last packet is written; whatever arrives is ignored.
        case closing

        /// Whether the connection is accepted, and its final packet has not been written.
        package var isOpen: Bool { self == .connected || self == .leaving }
    }

    /// What waits for ``reconcile(at:into:)``.
    enum Reconciling: UInt8, Sendable {
        case nothing
        /// What is asked for, and messages meanwhile.
        case requests
        /// The same, and messages wait for the answers too.
        case answers
    }

    /// What the next connection uses; while one is open, a change waits for the next, but for the limits of what may be
    /// published in a second, which count at once.
    public var configuration: MQTTEngineConfiguration {
        get { options.value.with(clientID: clientID, cleanStart: cleanStart) }
        set {
            options = MQTTEngineOptions(newValue)
            (clientID, cleanStart) = (newValue.clientID, newValue.cleanStart)
        }
    }

    /// The configuration, except for the two fields below. Engines with equal options share it; read single options
    /// here, since ``configuration`` makes a copy.
    package private(set) var options: MQTTEngineOptions {
        didSet {
            updateMessagesMayLeave()
            changePace()
        }
    }

    /// The client identifier of ``configuration``: differs for each client.
    package var clientID: String

    /// Clean Start of ``configuration``: a client that is to keep its session changes it after the first connection.
    package var cleanStart: Bool

    /// The state of the connection.
    public internal(set) var phase = Phase.closed {
        didSet { updateMessagesMayLeave() }
    }

    /// The version of the connection; for a server known once CONNECT arrived.
    public internal(set) var version: MQTTVersion

    /// What the peer of this connection accepts.
    public package(set) var limits = MQTTPeerLimits()

    // Small fields are next to each other to save memory: each connection has an engine, and most connections are idle.

    /// Counts connections from 1.
    public internal(set) var connection: UInt32 = 0
    /// The session expiry that CONNECT named.
    var connectSessionExpiry: UInt32 = 0
    /// Whether the session ends with the connection.
    var sessionEndsWithConnection = false
    /// What waits until the caller calls ``reconcile(at:into:)``.
    var reconciling = Reconciling.nothing {
        didSet { updateMessagesMayLeave() }
    }
    /// Whether some requests have to be sent alone; see ``Quarantine``.
    var isCareful = false {
        didSet { updateMessagesMayLeave() }
    }
    /// Whether any PUBLISH may be written: the connection is accepted, its first subscriptions are answered, no
    /// request has to be sent alone, and there is no limit to what leaves in a second.
    package private(set) var messagesMayLeave = false
    /// Whether each SUBSCRIBE has one filter, since a server did not answer all filters of one that had more.
    var asksSingly = false
    /// The server of this connection answered a QoS 2 message with PUBACK.
    var knowsQoS2IsMissing = false
    /// The server of this connection has sent more than Receive Maximum allows.
    var knowsReceiveMaximumIsExceeded = false
    /// A publish was refused because the queue was full: report when there is room.
    var owesRoom = false
    /// What the peer may have unacknowledged, and how large its packets may be, on this connection.
    var grantedReceiveMaximum: UInt16 = 65_535
    private var largestAcceptedPacket = UInt32(MQTTPacket.largestSize)
    /// The same for packets other than PUBLISH, and for the properties of a PUBLISH.
    var acceptedControlPacketSize = UInt32(MQTTPacket.largestSize)
    /// Payloads of at least so many bytes are left out of ``output``, one at a time: for callers that know ``largePayload``.
    package var leastPayloadLeftOut = Int.max
    var acceptedPacketSize: Int {
        get { Int(largestAcceptedPacket) }
        set { largestAcceptedPacket = UInt32(newValue) }
    }

    /// Bytes to write, in order. The caller takes them out and may leave an empty array with capacity in their place.
    public var output: [UInt8] = []
    /// A payload that belongs into ``output`` but is not there. A caller that takes one takes the other as well.
    package var largePayload: LargePayload?
    /// The bytes that wait to be taken.
    package var outputCount: Int { output.count &+ (largePayload?.bytes.count ?? 0) }
    /// How many of them are PUBLISH.
    var publishBytes = 0
    /// How many of them are our own messages; 0 if more of these have come in than are unacknowledged. Then the peer has
    /// acknowledged what it cannot have read, and each such acknowledgement lets another message in.
    package var ownBytes: Int { session.window.untakenCount > session.window.used ? 0 : publishBytes }

    /// Records for a session store, in order; the caller takes them out. Empty unless the configuration persists.
    public var storeRecords: [MQTTStoreRecord] = []

    /// The number of PUBLISH packets that were written over all connections, those that were sent again included.
    package internal(set) var publishesWritten = 0

    /// What outlives the connection.
    var session = MQTTSession()
    /// What a client wants to have subscribed. Also outlives the session.
    var filters = FilterTable() {
        didSet { updateMessagesMayLeave() }
    }
    package internal(set) var keepAlive = KeepAlive()
    var acknowledgementWait = AcknowledgementWait()
    var inboundAliases = InboundAliases()
    var outboundAliases = OutboundAliases()

    /// When CONNECT or CONNACK is late; `Int64.max` for never.
    var connectDeadline = Int64.max
    /// Whose turn it is to send AUTH.
    var authentication: MQTTAuthenticationTurns {
        get { authenticationTurns.value ?? MQTTAuthenticationTurns() }
        set { authenticationTurns.value = newValue == MQTTAuthenticationTurns() ? nil : newValue }
    }
    private(set) var authenticationTurns = Boxed<MQTTAuthenticationTurns>()
    /// What DISCONNECT will carry once the exchanges before it are finished.
    var leaving = Boxed<MQTTLeaving>()
    /// What is known from CONNECT until CONNACK.
    var opening = Boxed<MQTTOpening>()
    /// How this connection ends.
    var connectionEnd = MQTTConnectionEnd.unrelated
    /// See ``isHeldUp(at:)``.
    var wasHeldUp = false
    /// Nil as long as there is nothing to remember.
    var quarantineBox = Boxed<Quarantine>()
    /// What has left lately, where that is limited; see ``PublishPace``.
    var pace = Boxed<PublishPace>()
    /// When a message that waits for the pace, or a request that others pass, may leave; `Int64.max` if none does.
    var paceDeadline = Int64.max
    /// When a message in the queue may expire, or one that has left it would have; `Int64.max` if none does.
    private(set) var expiryDeadline = Int64.max
    /// The method that CONNECT named; AUTH is only allowed with it [MQTT 5.0 4.12.0-5].
    var authenticationMethod = Boxed<String>()
    /// The ticket of the newest record; right after a publish, the ticket with which that message is stored.
    public internal(set) var lastTicket: UInt64 = 0
    /// The ticket of the newest record that is stored.
    var persistedTicket: UInt64 = 0
    /// The ticket of the record that the server may hold the session: CONNECT waits for it.
    var establishedTicket: UInt64 = 0
    /// The ticket of the newest record of an identifier that was received or released. PUBREC and PUBCOMP that answer a
    /// repetition wait for it, because the record behind the first answer may not be stored yet.
    var receivedTicket: UInt64 = 0
    /// PUBREL and PUBCOMP that wait for their tickets, on this connection.
    var heldPackets: [HeldPacket] = []

    /// An engine without a connection and without a session.
    public init(configuration: MQTTEngineConfiguration) {
        self.init(MQTTEngineOptions(configuration), clientID: configuration.clientID)
    }

    /// An engine without a connection and without a session, whose options other engines may share.
    ///
    /// - Parameter clientID: replaces the client identifier of the options.
    package init(_ options: MQTTEngineOptions, clientID: String) {
        self.options = options
        self.clientID = clientID
        cleanStart = options.value.cleanStart
        version = options.value.version
    }

    /// A client's messages end when they expire. A server checks a message that it keeps for a client when the client
    /// gets it.
    mutating func expectExpiry(_ expiry: Int64) {
        if !isServer, expiry < expiryDeadline { expiryDeadline = expiry }
    }

    /// The same for all messages in the queue, which was changed; not before `time`.
    mutating func expectExpiry(after time: Int64 = .min) {
        expiryDeadline = .max
        expectExpiry(max(time, session.window.firstExpiry))
    }

    /// The client is gone: nothing waits for its messages. Returns whether ``nextDeadline`` may have changed.
    package mutating func forgetExpiry() -> Bool {
        defer { expiryDeadline = .max }
        return expiryDeadline != .max
    }

    private mutating func updateMessagesMayLeave() { messagesMayLeave = computedMessagesMayLeave }

    /// What ``messagesMayLeave`` notes.
    var computedMessagesMayLeave: Bool {
        phase == .connected && !messagesWait && !isCareful && !isPaced
    }

    /// An engine that resumes a session.
    public init(configuration: MQTTEngineConfiguration, session: MQTTSession) {
        self.init(configuration: configuration)
        self.session = session
    }
}

/// What became of an accepted publish.
public enum MQTTPublishOutcome: Sendable {
    /// It is in ``MQTTEngine/output``. QoS 0 is done; QoS 1 and 2 complete with ``MQTTPublishCompletion``.
    case written
    /// It waits for a connection or for room in the window, and completes with ``MQTTPublishCompletion``.
    case queued
}

// MARK: - Questions

extension MQTTEngine {
    /// The time at which ``handleTimeout(at:progress:into:)`` is to be called; `Int64.max` for never.
    public var nextDeadline: Int64 { findNextDeadline() }

    /// The same for a caller that asks after each message: a question to a value of this size copies it first, which an
    /// access in place does not.
    package mutating func nextDeadlineInPlace() -> Int64 { findNextDeadline() }

    @inline(__always)
    private borrowing func findNextDeadline() -> Int64 {
        min(
            phaseDeadline, awaitsAcknowledgements ? listening.moment(of: acknowledgementWait.deadline) : .max,
            phase.isOpen ? paceDeadline : .max, session.window.queue.count > 0 ? expiryDeadline : .max)
    }

    /// The deadlines that the phase decides.
    @inline(__always)
    private var phaseDeadline: Int64 {
        switch phase {
        case .closed, .closing: return .max
        case .leaving: return leaving.value?.deadline ?? .max
        case .connecting, .deciding: return min(connectDeadline, authenticationDue)
        case .connected: return min(keepAlive.deadline, requestDeadline, authenticationDue)
        }
    }

    /// Whether the connection is over: write ``output``, then close it and call ``connectionClosed(at:into:)``.
    public var shouldClose: Bool { phase == .closing }

    /// Whether the peer may know of the session in this engine: a connection was accepted before, and the session was
    /// to outlive it.
    public var holdsSession: Bool { session.isHeld }

    /// The number of messages in the queue.
    public var queuedCount: Int { session.window.queue.count }
    /// The bytes (topics, payloads and properties) in the queue.
    public var queuedBytes: Int { session.window.queuedBytes }
    /// Whether a message was refused for lack of room, so that ``MQTTEffects/queueHasRoom`` will report room.
    package var owesRoomNotice: Bool { owesRoom }
    /// The number of messages sent and not finally acknowledged.
    public var inFlightCount: Int { session.window.inFlightCount }

    /// Whether the peer keeps the session when this connection, which is accepted, ends.
    package var sessionOutlivesConnection: Bool { !sessionEndsWithConnection }

    /// The number of messages received on this connection whose PUBACK or PUBREC has not been written.
    package var unacknowledgedCount: Int { session.inbound.count }

    /// For how long nothing has been sent or received on the connection that is open, or was open last, in nanoseconds.
    package func silence(at now: Int64) -> Int64 { keepAlive.silence(at: now) }

    /// Whether the server may have got no whole packet for too long, because a long message was on its way; on the connection
    /// that is open, or was open last.
    package func isHeldUp(at now: Int64) -> Bool { phase == .closed ? wasHeldUp : keepAlive.isHeldUp(at: now) }

    /// The number of PINGREQ packets that were written.
    package var pingCount: UInt32 { keepAlive.pingCount }
}

// MARK: - For all files of the engine

extension MQTTEngine {
    /// The peer broke the protocol: send the reason where the version allows it, and close [MQTT 5.0 4.13.1].
    mutating func fail(_ violation: MQTTProtocolError, into effects: inout MQTTEffects) {
        fail(.violation(violation), violation.reasonCode, into: &effects)
    }

    mutating func fail(
        _ failure: MQTTConnectionFailure, _ reason: MQTTReasonCode?, into effects: inout MQTTEffects
    ) {
        if let reason {
            if isServer && (phase == .connecting || phase == .deciding) {
                writeRefusal(reason)
            } else if version.hasProperties {
                // A DISCONNECT of two or three bytes is smaller than any limit that lets a connection work.
                try? write(.disconnect(.init(reasonCode: reason)))
            }
        }
        effects.report(.connectionFailed(failure))
        switch failure {
        case .acknowledgementTimeout, .subscribeTimeout: connectionEnd = .unanswered
        default: connectionEnd = .unrelated
        }
        phase = .closing
    }

    /// Appends a packet that the peer can take.
    mutating func write(_ packet: borrowing MQTTPacket) throws(MQTTUsageError) {
        let bytes = try encode(packet)
        output += bytes
        countWritten(bytes.count)
    }

    /// The bytes of a packet that the peer can take.
    func encode(_ packet: borrowing MQTTPacket) throws(MQTTUsageError) -> [UInt8] {
        var bytes: [UInt8] = []
        do throws(MQTTEncodingError) {
            try packet.encode(into: &bytes, version: version, maximumPacketSize: acceptedByPeer)
            return bytes
        } catch {
            throw MQTTUsageError(error)
        }
    }
}
