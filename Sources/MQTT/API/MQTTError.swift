public import MQTTCore
public import MessagingShell
public import MessagingWire
import Transport

/// Everything that can go wrong for a user of ``MQTTClient``: a code, and a sentence that says what happened and what to
/// do about it.
public struct MQTTError: ClientError, Equatable {
    /// What kind of failure it is. More codes may come, so give a `switch` over it a `default`.
    public typealias Code = ErrorCode<MQTTError>

    /// What kind of failure it is.
    public let code: Code
    /// What happened, then what to do, in English.
    public let message: String
    /// The server's reason code, where it sent one.
    public let reasonCode: MQTTReasonCode?
    /// What the server added to its reason code: Reason String, user properties; 5.0 only.
    public let properties: MQTTProperties
    /// The error below, where there is one.
    public let underlying: (any Error)?

    /// Makes an error, for tests and for closures that throw one.
    public init(
        _ code: Code, _ message: String, reasonCode: MQTTReasonCode? = nil, properties: MQTTProperties = [],
        underlying: (any Error)? = nil
    ) {
        (self.code, self.message, self.underlying) = (code, message, underlying)
        (self.reasonCode, self.properties) = (reasonCode, properties)
    }

    @usableFromInline
    package init(_ code: Code, _ message: String, answer: MQTTError?, underlying: (any Error)?) {
        self.init(
            code, message, reasonCode: answer?.reasonCode, properties: answer?.properties ?? [], underlying: underlying)
    }

    /// Whether code, message and the server's answer are equal; `underlying` is not compared.
    public static func == (one: MQTTError, other: MQTTError) -> Bool {
        one.code == other.code && one.message == other.message && one.reasonCode == other.reasonCode
            && one.properties == other.properties
    }

    /// A QoS 0 message of an array, without the connection that the array was published over.
    static let unsentAtMostOnce = MQTTError(
        .notConnected,
        "The connection was gone before this QoS 0 message of the array could be sent. Publish it again when the client is connected, or set queuesQoS0WhileOffline."
    )
}

extension MQTTError.Code {
    /// Another client connected with the same client identifier; servers say so with MQTT 5.0, and hardly any before.
    public static var takenOver: Self { Self("takenOver") }
    /// The server's limits do not allow it; nothing was sent.
    public static var notAllowed: Self { Self("notAllowed") }
    /// The server lost the session, so that it is not known whether the message arrived.
    public static var sessionLost: Self { Self("sessionLost") }
    /// The server sends the same packet that breaks the protocol each time that the client connects: it is in the session, or
    /// is sent for a subscription, as a retained message is.
    public static var sessionBlocked: Self { Self("sessionBlocked") }
    /// The session store cannot be read or written; `underlying` is the reason.
    public static var storeFailed: Self { Self("storeFailed") }
    /// The message expired before it could be sent.
    public static var expired: Self { Self("expired") }
}

extension MQTTProtocolError: DescribedError {}
extension SessionStoreError: DescribedError {}
