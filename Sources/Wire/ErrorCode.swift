/// The kind of an error: an open set of names for each type of error. Later versions may add codes, so give a `switch`
/// over one a `default`.
///
/// An error has a code, a sentence in English that says what happened and then what to do, and the error below if there
/// is one:
///
///     public struct TransportError: Error {
///         public typealias Code = ErrorCode<TransportError>
///         public let code: Code
///         public let message: String
///     }
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
}
