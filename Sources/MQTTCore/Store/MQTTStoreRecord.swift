/// One step of a session, for a store that lets the session survive the process. Read in order, the records are a log:
/// replayed by ``MQTTSession/init(restoring:at:wallClockOffset:token:)`` and, for topic filters, by
/// ``MQTTEngine/restoreFilters(of:)`` they restore the session.
///
/// The engine appends them to ``MQTTEngine/storeRecords`` if ``MQTTEngineConfiguration/persists`` is on. Record number
/// *n* since the engine was made has ticket *n*. SUBSCRIBE, and PUBLISH, PUBREC, PUBREL and PUBCOMP of an exchange are sent
/// only after the caller has reported that the record behind them is stored: ``MQTTEngine/persisted(through:at:into:)``.
public enum MQTTStoreRecord: Sendable, Hashable {
    /// The server accepted a connection whose session outlives it: from now on it may hold a session for this client.
    case established
    /// A message of QoS 1 or 2 was accepted. Its `time` is when; its `packetID` is 0 if no identifier was free.
    case message(Message)
    /// A message received another packet identifier, because the server had lost the session.
    case identified(sequence: UInt64, packetID: UInt16)
    /// PUBREC arrived: from now on only PUBREL is sent.
    case released(sequence: UInt64)
    /// The message was acknowledged or discarded.
    case finished(sequence: UInt64)
    /// The application accepted a QoS 2 message: its identifier is not delivered again.
    case received(packetID: UInt16)
    /// PUBREL arrived: the identifier is free again.
    case receivedReleased(packetID: UInt16)
    /// A QoS 2 message was abandoned although the peer may know its identifier, which is not used again in this
    /// session.
    case retired(packetID: UInt16)
    /// The peer no longer has a session: all received and all retired identifiers are free.
    case receivedForgotten
    /// The session was discarded.
    case discarded
    /// The client retains a received message until a subscription takes it, and may acknowledge it; for QoS 2 this record
    /// includes ``received(packetID:)``. The message's `time` is when it expires.
    case kept(Message)
    /// A retained message was delivered or discarded.
    case keptFinished(sequence: UInt64)
    /// The server may have this topic filter for a subscription.
    case filterWanted(String)
    /// The subscription with this topic filter has ended, and the server may have it still.
    case filterEnded(String)
    /// The server does not have this topic filter any more.
    case filterForgotten(String)

    /// The number that precedes those of a process which begins to number messages now.
    ///
    /// A client that cannot store the end of a message does so later, and names the message by its number. Another process may
    /// have finished that message since, and must not have given its number to another one. At most one message in a microsecond
    /// is numbered.
    package static func sequence(at now: Int64) -> UInt64 { UInt64(max(0, now)) / 1000 }

    /// A message as a store holds it.
    public struct Message: Sendable, Hashable {
        /// The number under which later records name the message.
        public var sequence: UInt64
        /// The packet identifier; 0 for none.
        public var packetID: UInt16
        /// The topic name.
        public var topic: String
        /// The payload.
        public var payload: [UInt8]
        /// The quality of service, 1 or 2.
        public var qos: QoS
        /// Whether RETAIN is set.
        public var retain: Bool
        /// The properties of the message.
        public var properties: MQTTProperties
        /// A time in milliseconds since 1970; 0 for unknown.
        public var time: Int64

        /// A message with the values of its fields.
        public init(
            sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
            properties: MQTTProperties, time: Int64 = 0
        ) {
            self.sequence = sequence
            self.packetID = packetID
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.retain = retain
            self.properties = properties
            self.time = time
        }
    }
}
