import MQTTCore
import Messaging

/// The same packet that breaks the protocol each time that a session is resumed; on the loop's thread.
struct MQTTBlockedSession {
    /// Connections in a row that such a packet may end.
    static let maximumRepetitions = 3

    /// What a client remembers that has met such a packet; few ever do.
    private final class Record {
        /// What broke the protocol on this connection.
        var packet: MQTTRefusedPacket?
        var last: (packet: MQTTRefusedPacket, violation: MQTTProtocolError)?
        var repetitions = 0
    }

    /// Whether the connection that is open resumed a session.
    var isResumed = false
    private var record: Record?

    /// What broke the protocol on the connection that is open.
    var packet: MQTTRefusedPacket? { record?.packet }

    mutating func refused(_ packet: MQTTRefusedPacket) {
        let record = record ?? Record()
        record.packet = packet
        self.record = record
    }

    /// The connection failed; returns whether this packet has ended enough of them.
    func failed(_ violation: MQTTProtocolError) -> Bool {
        guard isResumed, let record, let packet = record.packet else { return false }
        let isSame = record.last.map { $0.packet == packet && $0.violation == violation } ?? false
        record.repetitions = isSame ? record.repetitions + 1 : 1
        record.last = (packet, violation)
        guard record.repetitions >= Self.maximumRepetitions else { return false }
        record.repetitions = 0
        return true
    }

    /// The connection is gone. One that resumed the session and ended for another reason starts the count anew.
    mutating func connectionClosed() {
        if isResumed, packet == nil { record = nil }
        isResumed = false
        record?.packet = nil
    }
}

extension MQTTClientCore {
    /// The error that ends the attempts, if the same packet has ended every connection that resumed the session.
    func sessionIsBlocked(by failure: MQTTConnectionFailure) -> MQTTError? {
        guard case .violation(let violation) = failure, blockedSession.failed(violation),
            let packet = blockedSession.packet
        else { return nil }
        let what = packet.type == .publish ? "a message to the topic '\(packet.topic)'" : "\(packet.type)"
        let broker = opener.server.map { "\($0)" } ?? "the server"
        return MQTTError(
            .sessionBlocked,
            "\(broker) resumed the session \(MQTTBlockedSession.maximumRepetitions) times with \(what) that breaks the protocol: \(violation.message). Set dropsInvalidMessages to acknowledge and drop messages with invalid topics, or give the session up with discardSession() or cleanStart.",
            reasonCode: violation.reasonCode, underlying: violation)
    }
}
