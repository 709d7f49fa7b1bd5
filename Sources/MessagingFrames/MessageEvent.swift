import MessagingWire
import Transport

/// One step of one message: it was sent, acknowledged or received.
public struct MessageEvent: Sendable, Equatable {
    /// The steps of a message.
    public enum Step: Sendable {
        /// It left the outbox.
        case sent
        /// The server has finally acknowledged it; with STOMP a receipt arrived, also for frames that are no messages.
        case acknowledged
        /// It arrived.
        case received
    }

    /// What happened.
    public let step: Step
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The topic or destination; nil for an acknowledgement, and for a message whose topic alias was set before the sequence
    /// began.
    public let destination: String?
    /// The packet identifier, or the receipt: an acknowledgement has that of its message. Nil without one.
    public let identifier: String?
    /// The bytes of the payload.
    public let payloadCount: Int

    package init(_ step: Step, time: Int64, destination: String? = nil, identifier: String?, payloadCount: Int = 0) {
        self.step = step
        self.time = time
        self.destination = destination
        self.identifier = identifier
        self.payloadCount = payloadCount
    }
}

extension MessageEvent: CustomStringConvertible {
    public var description: String {
        let place = destination.map { " \($0)" } ?? ""
        return "\(time) \(step)\(place)" + (identifier.map { " (\($0))" } ?? "")
            + (step == .acknowledged ? "" : ", \(OneLine.bytes(payloadCount))")
    }
}
