/// The MQTT protocol as a state machine, for either end of a connection and for 3.1, 3.1.1 and 5.0.
///
/// # Theory of operation
///
/// An engine does no input or output, reads no clock and calls nobody back. It lives as long as a client: it holds the
/// session (packet identifiers, messages in flight, the queue behind them, identifiers of received QoS 2 messages), and
/// connections come and go on it. The caller owns the socket and the lock.
///
/// There are three kinds of methods, and one order of draining:
///
/// 1. *What happened*, named in the past tense or as an order of the caller: ``connectionOpened(at:)``,
///    ``receive(_:at:into:)``, ``publish(topic:payload:qos:retain:properties:token:at:)``, ``handleTimeout(at:into:)``.
///    Each takes the time, in nanoseconds of a monotonic clock of the caller. Orders that cannot be carried out throw
///    ``MQTTMisuse`` before anything is written; what the *peer* does wrong is never thrown but reported as
///    ``MQTTEngineEvent/Kind/connectionFailed(_:)``.
/// 2. *What to do*: bytes appended to ``output``, which the caller swaps out and writes; ``MQTTEffects``, plain arrays
///    that the caller performs outside its lock and clears; and one ``nextDeadline``.
/// 3. *Questions*, which change nothing.
///
/// After any call: write ``output``, perform the effects, arm the timer if ``nextDeadline`` is earlier than what is
/// armed. Late, early and repeated timeouts are harmless. When ``MQTTEffects/shouldClose`` is set, close the connection
/// once ``output`` is written, and report ``connectionClosed(at:into:)``.
///
/// Tokens are integers of the caller's choice. A publish of QoS 1 or 2 ends with exactly one
/// ``MQTTPublishCompletion``, over however many connections; a request ends with its completion or with
/// ``MQTTEngineEvent/Kind/requestFailed(token:)`` when its connection ends. A caller that no longer waits does nothing:
/// the packet identifier stays taken until the acknowledgement [MQTT 5.0 2.2.1-3].
public struct MQTTEngine: ~Copyable, Sendable {
    /// Where a connection stands.
    public enum Phase: UInt8, Sendable {
        /// There is no connection.
        case closed
        /// A client awaits CONNACK, a server awaits CONNECT.
        case connecting
        /// A server received CONNECT and has not answered yet.
        case deciding
        /// The connection is accepted.
        case connected
        /// The last packet is written; whatever arrives is ignored.
        case closing
    }

    /// What the next connection uses; while one is open, a change waits for the next.
    public var configuration: MQTTEngineConfiguration

    /// Where the connection stands.
    public internal(set) var phase = Phase.closed

    /// The version of the connection; for a server known once CONNECT arrived.
    public internal(set) var version: MQTTVersion

    /// What the peer of this connection accepts.
    public internal(set) var limits = MQTTPeerLimits()

    /// Bytes to write, in order. The caller takes them out and may leave an empty array with capacity in their place.
    public var output: [UInt8] = []

    /// The time at which ``handleTimeout(at:into:)`` wants to be called; `Int64.max` for never.
    public var nextDeadline: Int64 { .max }

    /// An engine without a connection and without a session.
    public init(configuration: MQTTEngineConfiguration) {
        self.configuration = configuration
        version = configuration.version
    }
}

/// What became of an accepted publish.
public enum MQTTPublishOutcome: Sendable {
    /// It is in ``MQTTEngine/output``. QoS 0 is done; QoS 1 and 2 complete with ``MQTTPublishCompletion``.
    case written
    /// It waits for a connection or for room in the window, and completes with ``MQTTPublishCompletion``.
    case queued
}

// MARK: - Connections

extension MQTTEngine {
    /// A connection to the peer is open. A client writes CONNECT; a server awaits it.
    ///
    /// - Throws: ``MQTTMisuse/Code/alreadyConnected``, or ``MQTTMisuse/Code/invalidConfiguration`` if the configuration
    ///   cannot be said in CONNECT.
    public mutating func connectionOpened(at now: Int64) throws(MQTTMisuse) {}

    /// The connection is gone, for whatever reason. Requests without an answer fail; messages in flight stay for the
    /// next connection.
    public mutating func connectionClosed(at now: Int64, into effects: inout MQTTEffects) {}

    /// Bytes arrived: `bytes` is everything that was not consumed before.
    ///
    /// - Returns: the number of bytes consumed. The caller presents the rest again, with more behind it.
    public mutating func receive(_ bytes: RawSpan, at now: Int64, into effects: inout MQTTEffects) -> Int { 0 }

    /// Time passed, perhaps beyond ``nextDeadline``.
    public mutating func handleTimeout(at now: Int64, into effects: inout MQTTEffects) {}

    /// The caller stopped or resumed reading by its own decision: silence of the peer then proves nothing, but we still
    /// write our pings.
    public mutating func setReadingPaused(_ paused: Bool, at now: Int64) {}

    /// Writes PINGREQ now, whether or not the keep alive asks for it; the answer is
    /// ``MQTTEngineEvent/Kind/pingAnswered(after:)``. Clients only.
    ///
    /// - Throws: ``MQTTMisuse/Code/notConnected``, ``MQTTMisuse/Code/wrongRole``.
    public mutating func ping(at now: Int64) throws(MQTTMisuse) {}

    /// Writes DISCONNECT as the last packet [MQTT 5.0 3.14.4-1]. Close the connection once ``output`` is written.
    ///
    /// Before 5.0 the reason and the properties are not sent, and a server writes nothing at all.
    /// - Throws: ``MQTTMisuse/Code/notConnected``; ``MQTTMisuse/Code/propertyNotAllowed`` for a session expiry although
    ///   CONNECT said 0 [MQTT 5.0 3.14.2.2.2].
    public mutating func disconnect(
        reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTMisuse) {}

    /// Writes AUTH with the method of the connection, in answer to
    /// ``MQTTEngineEvent/Kind/authenticationReceived(_:)``; 5.0 only [MQTT 5.0 4.12].
    ///
    /// - Parameter reason: `continueAuthentication`; `reauthenticate` for a client that starts it anew once connected;
    ///   `success` for a server that ends a re-authentication.
    public mutating func authenticate(
        reason: MQTTReasonCode = .continueAuthentication, data: [UInt8]?, properties: MQTTProperties = [],
        at now: Int64
    ) throws(MQTTMisuse) {}
}

// MARK: - Messages

extension MQTTEngine {
    /// Publishes a message: at once if it may be, otherwise when a connection or the peer's window has room.
    ///
    /// Order is kept among messages of the same QoS; a QoS 0 message may overtake queued ones of QoS 1 and 2.
    /// The topic, payload and properties of QoS 1 and 2 are kept by reference until the acknowledgement.
    ///
    /// - Parameter token: given back in ``MQTTPublishCompletion``.
    /// - Throws: before anything is written: ``MQTTMisuse/Code/notConnected`` (QoS 0 without a connection),
    ///   ``MQTTMisuse/Code/invalidTopic``, ``MQTTMisuse/Code/packetTooLarge``, ``MQTTMisuse/Code/qosNotSupported``,
    ///   ``MQTTMisuse/Code/retainNotAvailable``, ``MQTTMisuse/Code/queueFull``, ``MQTTMisuse/Code/closing``,
    ///   ``MQTTMisuse/Code/propertyNotAllowed``.
    public mutating func publish(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = [], token: UInt64 = 0, at now: Int64
    ) throws(MQTTMisuse) -> MQTTPublishOutcome { .written }

    /// Takes the oldest message that was never sent out of the queue and returns its token; nil if there is none. For
    /// callers whose policy is to drop the oldest when the queue is full.
    public mutating func dropOldestQueued() -> UInt64? { nil }

    /// The number of messages in the queue.
    public var queuedCount: Int { 0 }
    /// The bytes (topics and payloads) in the queue.
    public var queuedBytes: Int { 0 }
    /// The number of messages sent and not finally acknowledged.
    public var inFlightCount: Int { 0 }

    /// Acknowledges one received message of QoS 1 or 2.
    ///
    /// PUBACK and PUBREC are written in the order of arrival, so that an answer given early waits for those before it
    /// [MQTT 5.0 4.6.0-2]. A token of an earlier connection does no harm.
    /// - Parameter reason: a code of PUBACK or PUBREC; only 5.0 says it to the peer.
    public mutating func acknowledge(_ delivery: UInt64, reason: MQTTReasonCode = .success, at now: Int64) {}

    /// Acknowledges every message up to and including a token with success.
    public mutating func acknowledgeAll(through delivery: UInt64, at now: Int64) {}

    /// The topic of a message of the current effects.
    public func topic(at index: UInt32) -> String { "" }

    /// A number that changes whenever the index is given to another topic; never 0 for an index in use. Indexes are
    /// small, so that a caller may keep what it knows of each (a route) in an array beside this number.
    public func topicGeneration(at index: UInt32) -> UInt64 { 0 }
}

// MARK: - Requests of a client

extension MQTTEngine {
    /// Writes SUBSCRIBE; the answer is ``MQTTEngineEvent/Kind/subscribeCompleted(token:codes:properties:)``.
    ///
    /// - Parameter properties: Subscription Identifier, user properties; 5.0 only.
    /// - Throws: ``MQTTMisuse/Code/notConnected``, ``MQTTMisuse/Code/noFilters``, ``MQTTMisuse/Code/invalidFilter``,
    ///   ``MQTTMisuse/Code/subscriptionNotSupported``, ``MQTTMisuse/Code/packetTooLarge``,
    ///   ``MQTTMisuse/Code/noPacketIdentifier``.
    public mutating func subscribe(
        _ subscriptions: [MQTTSubscriptionRequest], properties: MQTTProperties = [], token: UInt64, at now: Int64
    ) throws(MQTTMisuse) {}

    /// Writes UNSUBSCRIBE; the answer is ``MQTTEngineEvent/Kind/unsubscribeCompleted(token:codes:properties:)``.
    public mutating func unsubscribe(
        _ filters: [String], properties: MQTTProperties = [], token: UInt64, at now: Int64
    ) throws(MQTTMisuse) {}

    /// Forgets the session and every message in flight or queued, each with a completion
    /// ``MQTTPublishCompletion/Outcome/discarded``. Only without a connection; the server keeps its side until a
    /// connection with Clean Start.
    public mutating func discardSession(into effects: inout MQTTEffects) throws(MQTTMisuse) {}
}

// MARK: - Answers of a server

extension MQTTEngine {
    /// Writes CONNACK with success, and then what a resumed session has to send again.
    ///
    /// Receive Maximum, Maximum Packet Size, Topic Alias Maximum, Maximum QoS and Retain Available are taken from the
    /// configuration; `properties` adds others (Assigned Client Identifier, Server Keep Alive, …).
    /// - Parameter sessionPresent: whether the session in this engine is the client's and goes on; see
    ///   ``replaceSession(_:)``. False forgets it.
    public mutating func acceptConnection(
        sessionPresent: Bool, properties: MQTTProperties = [], at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTMisuse) {}

    /// Writes CONNACK with a failure as the last packet. Close the connection once ``output`` is written.
    ///
    /// A code that 3.1 and 3.1.1 cannot say closes without CONNACK [MQTT 3.1.1 3.2.2-6].
    public mutating func refuseConnection(
        _ reason: MQTTReasonCode, properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTMisuse) {}

    /// Writes SUBACK: a code for each filter, in their order [MQTT 5.0 3.9.3-1].
    public mutating func acknowledgeSubscribe(
        _ packetID: UInt16, codes: [MQTTReasonCode], properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTMisuse) {}

    /// Writes UNSUBACK: a code for each filter, in their order; before 5.0 the codes are not sent.
    public mutating func acknowledgeUnsubscribe(
        _ packetID: UInt16, codes: [MQTTReasonCode], properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTMisuse) {}
}
