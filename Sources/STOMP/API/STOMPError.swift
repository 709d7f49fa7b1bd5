public import MessagingShell
public import MessagingWire
public import STOMPCore
import Transport

/// Everything that can go wrong for a user of ``STOMPClient``: a code, and a sentence that says what happened and what to
/// do about it.
public struct STOMPError: ClientError, Equatable {
    /// What kind of failure it is. More codes may come, so give a `switch` over it a `default`.
    public typealias Code = ErrorCode<STOMPError>

    /// What kind of failure it is.
    public let code: Code
    /// What happened, then what to do, in English.
    public let message: String
    /// The ERROR frame, where there was one.
    public let serverError: STOMPServerError?
    /// The error below, where there is one.
    public let underlying: (any Error)?

    /// Makes an error, for tests and for closures that throw one.
    public init(
        _ code: Code, _ message: String, serverError: STOMPServerError? = nil, underlying: (any Error)? = nil
    ) {
        (self.code, self.message, self.serverError) = (code, message, serverError)
        self.underlying = underlying
    }

    @usableFromInline
    package init(_ code: Code, _ message: String, answer: STOMPError?, underlying: (any Error)?) {
        self.init(code, message, serverError: answer?.serverError, underlying: underlying)
    }

    /// Whether code, message and the ERROR frame are equal; `underlying` is not compared.
    public static func == (one: STOMPError, other: STOMPError) -> Bool {
        one.code == other.code && one.message == other.message && one.serverError == other.serverError
    }
}

extension STOMPError.Code {
    /// The message or the transaction belongs to a connection that is gone.
    public static var stale: Self { Self("stale") }
    /// The broker, as far as it is known, cannot do this; nothing was sent.
    public static var unsupportedByBroker: Self { Self("unsupportedByBroker") }
}

extension STOMPConnectionFailure: DescribedError {}
