public import MessagingWire
import Transport

extension ErrorCode where Failure: ClientErrorCodes {
    /// There is no connection at the moment.
    public static var notConnected: Self { Self("notConnected") }
    /// The connection could not be opened, for a reason that has no code of its own; `underlying` is a `TransportError`. The
    /// usual reasons have the codes of `TransportError`: `unknownHost`, `connectionRefused`, `certificateExpired`.
    public static var connectFailed: Self { Self("connectFailed") }
    /// The server refused the user name or password.
    public static var badCredentials: Self { Self("badCredentials") }
    /// The closure for credentials threw `underlying`. It is called again for the next attempt.
    public static var noCredentials: Self { Self("noCredentials") }
    /// The server refused the connection or a request; the error has the server's answer.
    public static var refused: Self { Self("refused") }
    /// The server supports none of the versions of the protocol that were offered.
    public static var unsupportedVersion: Self { Self("unsupportedVersion") }
    /// The peer broke the protocol, or does not speak it.
    public static var protocolError: Self { Self("protocolError") }
    /// The user disconnected the client.
    public static var disconnected: Self { Self("disconnected") }
    /// The request cannot be sent as it is; nothing was sent.
    public static var invalidRequest: Self { Self("invalidRequest") }
    /// A queue is full.
    public static var queueFull: Self { Self("queueFull") }

    /// The code of an attempt to connect that failed below the protocol.
    package init(connecting code: TransportError.Code) {
        // These are about a connection that was open.
        let hasCode = code != .closedByPeer && code != .connectionLost && code != .cancelled
        self.init(hasCode ? code.name : "connectFailed")
    }
}
