import MQTTCore
import MessagingShell

/// Recognises a packet that breaks the protocol and comes again on each connection, because the server resumes a session
/// that has it, or sends it again for each subscription. On the loop's thread only.
struct MQTTBlockedSession {
    /// Connections in a row that such a packet may end.
    static let maximumRepetitions = 3

    /// Made for the first such packet; few clients ever receive one.
    private final class Record {
        /// The packet that broke the protocol on this connection.
        var refused: MQTTRefusedPacket?
        var last: (packet: MQTTRefusedPacket, violation: MQTTProtocolError)?
        var repetitions = 0
    }

    private var record: Record?
    /// Whether the open connection resumed a session.
    var isResumed = false

    /// The packet that broke the protocol on this connection.
    var refused: MQTTRefusedPacket? { record?.refused }

    mutating func refused(_ packet: MQTTRefusedPacket) {
        let record = record ?? Record()
        record.refused = packet
        self.record = record
    }

    /// The server broke the protocol on a connection that it had accepted. Returns the error that ends the attempts, if the
    /// same packet has ended enough connections.
    ///
    /// - Parameters:
    ///   - server: the server, which the error names.
    ///   - isShort: whether the connection ends soon. Without a session only such ends count: a message that is
    ///     published from time to time ends one connection each time, and the connections between are useful.
    func failed(_ violation: MQTTProtocolError, server: BrokerURL?, isShort: Bool) -> MQTTError? {
        guard let record, let refused = record.refused else { return nil }
        guard isResumed || isShort else {
            record.repetitions = 0
            return nil
        }
        let isSame = record.last.map { $0.packet == refused && $0.violation == violation } ?? false
        record.repetitions = isSame ? record.repetitions + 1 : 1
        record.last = (refused, violation)
        guard record.repetitions >= Self.maximumRepetitions else { return nil }
        record.repetitions = 0
        return MQTTError(violation, refused, repeatedBy: MQTTError.name(of: server), isResumed: isResumed)
    }

    /// The connection has closed. If the server had accepted it and it ended for another reason, the count starts again.
    mutating func connectionClosed(wasAccepted: Bool) {
        if wasAccepted, record?.refused == nil { record = nil }
        isResumed = false
        record?.refused = nil
    }
}
