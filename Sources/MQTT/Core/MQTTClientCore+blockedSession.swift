import MQTTCore
import Messaging

/// The same packet that breaks the protocol each time that a session is resumed; on the loop's thread.
struct MQTTBlockedSession {
    /// Connections in a row that such a packet may end.
    static let maximumRepetitions = 3

    /// Whether the connection that is open resumed a session.
    var isResumed = false
    /// What broke the protocol on this connection.
    var packet: MQTTRefusedPacket?
    private var last: (packet: MQTTRefusedPacket, violation: MQTTProtocolError)?
    private var repetitions = 0

    /// The connection failed; returns whether this packet has ended enough of them.
    mutating func failed(_ violation: MQTTProtocolError) -> Bool {
        guard isResumed, let packet else { return false }
        let isSame = last.map { $0.packet == packet && $0.violation == violation } ?? false
        repetitions = isSame ? repetitions + 1 : 1
        last = (packet, violation)
        guard repetitions >= Self.maximumRepetitions else { return false }
        repetitions = 0
        return true
    }

    /// The connection is gone. One that resumed the session and ended for another reason starts the count anew.
    mutating func connectionClosed() {
        if isResumed, packet == nil { last = nil }
        isResumed = false
        packet = nil
    }
}

extension MQTTClientCore {
    /// The error that ends the attempts, if the same packet has ended every connection that resumed the session.
    func sessionIsBlocked(by failure: MQTTConnectionFailure) -> MQTTError? {
        guard case .violation(let violation) = failure, blockedSession.failed(violation) else { return nil }
        let packet = blockedSession.packet
        let what =
            packet?.type == .publish ? "a message to the topic '\(packet?.topic ?? "")'" : "\(packet?.type as Any)"
        let broker = opener.server.map { "\($0)" } ?? "the server"
        return MQTTError(
            .sessionBlocked,
            "\(broker) resumed the session \(MQTTBlockedSession.maximumRepetitions) times with \(what) that breaks the protocol: \(violation.message). Set dropsInvalidMessages to acknowledge and drop messages with invalid topics, or give the session up with discardSession() or cleanStart.",
            reasonCode: violation.reasonCode, underlying: violation)
    }
}
