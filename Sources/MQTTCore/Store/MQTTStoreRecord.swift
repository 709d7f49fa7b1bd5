import Wire

/// One step of a session, for a store that lets the session survive the process. Read in order, the records are a log:
/// replayed by ``MQTTSession/init(restoring:token:)`` they give the session back.
///
/// The engine emits them into ``MQTTEngine/storeRecords`` if ``MQTTEngineConfiguration/persists`` is on. Record number
/// *n* since the engine was made has ticket *n*. PUBLISH, PUBREC, PUBREL and PUBCOMP of an exchange leave only after
/// the caller said that the record behind them is stored: ``MQTTEngine/persisted(through:at:into:)``.
public enum MQTTStoreRecord: Sendable, Hashable {
    /// The server accepted a connection whose session outlives it: it may hold a session of ours from now on.
    case established
    /// A message of QoS 1 or 2 was accepted. `packetID` is 0 if none was free. `time` says when, in milliseconds since
    /// 1970, for messages that expire; 0 says nothing.
    case message(
        sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
        properties: MQTTProperties, time: Int64 = 0)
    /// A message got another packet identifier: the server had lost the session.
    case identified(sequence: UInt64, packetID: UInt16)
    /// PUBREC came: from now on only PUBREL is sent.
    case released(sequence: UInt64)
    /// The message is done, or given up.
    case finished(sequence: UInt64)
    /// A QoS 2 message was taken by the application: its identifier is not delivered again.
    case received(packetID: UInt16)
    /// PUBREL came: the identifier is free again.
    case receivedReleased(packetID: UInt16)
    /// The peer has no session any more: all received identifiers are free.
    case receivedForgotten
    /// The session was discarded.
    case discarded
    /// A received message is kept by the client until somebody subscribes to it, and may be acknowledged; of QoS 2 that
    /// is ``received(packetID:)`` too. `time` says until when it is kept, in milliseconds since 1970.
    case kept(
        sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
        properties: MQTTProperties,
        time: Int64)
    /// A kept message was handed over, or given up.
    case keptFinished(sequence: UInt64)
}
