import MQTTCore
import Messaging

/// Recognises a session that cannot be used: the server resumes it, again and again, with the same packet that breaks
/// the protocol. On the loop's thread only.
struct MQTTBlockedSession {
    /// Connections in a row that such a packet may end.
    static let maximumRepetitions = 3

    /// Made for the first such packet; few clients ever receive one.
    private final class Record {
        /// The packet that broke the protocol on this connection.
        var packet: MQTTRefusedPacket?
        var last: (packet: MQTTRefusedPacket, violation: MQTTProtocolError)?
        var repetitions = 0
    }

    /// Whether the open connection resumed a session.
    var isResumed = false
    private var record: Record?

    mutating func refused(_ packet: MQTTRefusedPacket) {
        let record = record ?? Record()
        record.packet = packet
        self.record = record
    }

    /// The connection failed. Returns the error that ends the attempts, if the same packet has ended enough connections.
    ///
    /// - Parameter server: the server's name for the error.
    func failed(_ failure: MQTTConnectionFailure, server: String) -> MQTTError? {
        guard case .violation(let violation) = failure, isResumed, let record, let packet = record.packet else {
            return nil
        }
        let isSame = record.last.map { $0.packet == packet && $0.violation == violation } ?? false
        record.repetitions = isSame ? record.repetitions + 1 : 1
        record.last = (packet, violation)
        guard record.repetitions >= Self.maximumRepetitions else { return nil }
        record.repetitions = 0
        let what = packet.type == .publish ? "a message to the topic '\(packet.topic)'" : "\(packet.type)"
        return MQTTError(
            .sessionBlocked,
            "\(server) resumed the session \(Self.maximumRepetitions) times with \(what) that breaks the protocol: \(violation.message). Set dropsInvalidMessages to acknowledge and drop messages with invalid topics, or discard the session with discardSession() or cleanStart.",
            reasonCode: violation.reasonCode, underlying: violation)
    }

    /// The connection has closed. If it resumed the session and ended for another reason, the count starts again.
    mutating func connectionClosed() {
        if isResumed, record?.packet == nil { record = nil }
        isResumed = false
        record?.packet = nil
    }
}
