/// The kind of an error: an open set of names for each type of error. Later versions may add codes, so give a `switch`
/// over one a `default`.
///
///     extension TransportError.Code {
///         /// The peer did not answer in time.
///         public static var timedOut: Self { Self("timedOut") }
///     }
public struct ErrorCode<Failure>: Hashable, Sendable, CustomStringConvertible {
    /// The name of the code as it is written in Swift.
    public let name: String
    public var description: String { name }

    package init(_ name: String) {
        self.name = name
    }

    // By their bytes: names are ASCII, and a small program is spared Unicode's tables.
    public static func == (one: Self, other: Self) -> Bool { one.name.hasSameBytes(as: other.name) }
    public func hash(into hasher: inout Hasher) { ByteKey(name).hash(into: &hasher) }
}

/// An error that consists of a code and a message. `Domain` is a type without values that tells the errors of one module
/// from those of another:
///
///     public enum STOMPUsage {}
///     public typealias STOMPUsageError = CodedError<STOMPUsage>
public struct CodedError<Domain>: Error, Hashable, CustomStringConvertible {
    /// What kind of error it is. More codes may come, so give a `switch` over it a `default`.
    public typealias Code = ErrorCode<CodedError<Domain>>

    /// What kind of error it is.
    public let code: Code
    /// What happened, with the limit or value, then what to do: sentences in English.
    public let message: String

    /// Makes an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The error of another module, with the name of its code and its message.
    package init<Other>(relabelling error: CodedError<Other>) {
        self.init(Code(error.code.name), error.message)
    }

    /// The message on one line: a peer's text in it cannot forge further lines of a log.
    public var description: String { OneLine.escaped(message) }
}
