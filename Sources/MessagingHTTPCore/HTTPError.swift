// Exported, so that the members of these errors can be used wherever this module is imported.
@_exported public import struct MessagingWire.CodedError

/// Bytes that are not an HTTP/1 head, or a head of our own that cannot be written.
package typealias HTTPError = CodedError<HTTPSyntax>

extension HTTPError.Code {
    /// The first line is not one of HTTP/1.
    package static var notHTTP: Self { Self("notHTTP") }
    /// A line of the head has a control character, a wrong line end or no proper field name.
    package static var malformedHead: Self { Self("malformedHead") }
    /// The head exceeds `HTTPHeadLimits`.
    package static var headTooLarge: Self { Self("headTooLarge") }
    /// Ours: the host cannot be written into a Host field.
    package static var invalidHost: Self { Self("invalidHost") }
    /// Ours: a header field is not allowed here, or its name or value is malformed.
    package static var invalidField: Self { Self("invalidField") }
}
