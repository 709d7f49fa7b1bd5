/// Why a connection was closed (section 7.4).
package struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Done, nothing wrong.
    package static let normal = WebSocketCloseCode(rawValue: 1000)
    /// The server stops, or the user left the page.
    package static let goingAway = WebSocketCloseCode(rawValue: 1001)
    package static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// A kind of message that this side does not take, such as text where binary is spoken.
    package static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// The peer's Close frame gave no code; never on the wire.
    package static let noStatus = WebSocketCloseCode(rawValue: 1005)
    /// The stream ended without a Close frame; never on the wire.
    package static let abnormal = WebSocketCloseCode(rawValue: 1006)
    /// Content that contradicts its kind, such as text that is not UTF-8.
    package static let invalidData = WebSocketCloseCode(rawValue: 1007)
    package static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    package static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    package static let extensionMissing = WebSocketCloseCode(rawValue: 1010)
    package static let internalError = WebSocketCloseCode(rawValue: 1011)
    package static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
    package static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)
    package static let badGateway = WebSocketCloseCode(rawValue: 1014)

    /// Whether a Close frame may carry this code: 1000–1003, 1007–1014 and 3000–4999 (section 7.4.2 and its registry).
    package var isAllowedOnWire: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

extension WebSocketCloseCode: CustomStringConvertible {
    package var description: String {
        let name: String? =
            switch self {
            case .normal: "normal closure"
            case .goingAway: "going away"
            case .protocolError: "protocol error"
            case .unsupportedData: "unsupported data"
            case .noStatus: "no status"
            case .abnormal: "abnormal closure"
            case .invalidData: "invalid data"
            case .policyViolation: "policy violation"
            case .messageTooBig: "message too big"
            case .extensionMissing: "extension missing"
            case .internalError: "internal error"
            case .serviceRestart: "service restart"
            case .tryAgainLater: "try again later"
            case .badGateway: "bad gateway"
            default: nil
            }
        return name.map { "\(rawValue) (\($0))" } ?? "\(rawValue)"
    }
}
