import MessagingWire

/// How an accepted connection ends, as far as that may be an answer.
enum MQTTConnectionEnd: Sendable {
    /// We end it, or the reason has nothing to do with a request.
    case unrelated
    /// It just ends.
    case closed
    /// The server sends DISCONNECT.
    indirect case disconnected(MQTTPacket.Disconnect)
    /// The server sends a second CONNACK.
    case refused
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

    /// Whether we ended it.
    var isOurs: Bool {
        switch self {
        case .unrelated, .unanswered: true
        case .closed, .disconnected, .refused: false
        }
    }

    /// Whether a broken link cannot have caused this end: it is the server's answer to the only request without one.
    ///
    /// Some servers never answer QoS 2. One that answers nothing else is at fault itself.
    func isAnswer(toQoS2 isExactlyOnce: Bool) -> Bool {
        switch self {
        case .unrelated, .closed: false
        case .unanswered: isExactlyOnce
        case .disconnected, .refused: true
        }
    }
}

/// A request that the server did not answer, but ended connections, or never answered: given up, or passed by others.
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
    /// The token of the message or of the ``MQTTFilterRequest``.
    package var token: UInt64

    init(_ request: Request, token: UInt64, disconnect: MQTTPacket.Disconnect?, isSilence: Bool, byteCount: Int = 0) {
        self.request = request
        self.token = token
        self.disconnect = disconnect
        self.isSilence = isSilence
        self.byteCount = byteCount
    }
}
