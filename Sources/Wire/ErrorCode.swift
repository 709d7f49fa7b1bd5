/// The kind of an error: an open set of names, because later versions may add some. Switch over it with a default.
///
///     public struct Code: ErrorCode {
///         public let rawValue: String
///         public init(rawValue: String) { self.rawValue = rawValue }
///
///         /// The peer did not answer in time.
///         public static let timedOut = Self("timedOut")
///     }
public protocol ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    init(rawValue: String)
    var rawValue: String { get }
}

extension ErrorCode {
    @inlinable package init(_ name: String) { self.init(rawValue: name) }

    public var description: String { rawValue }
}
