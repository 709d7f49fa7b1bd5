/// Turns values into payloads and back, in one format. ``JSONPayload`` and ``PropertyListPayload`` are two; another format
/// needs a content type and two methods.
public protocol PayloadCoding: Sendable {
    /// The MIME type that tells receivers the format.
    var contentType: String { get }
    /// The payload for a value.
    func encode(_ value: some Encodable) throws -> [UInt8]
    /// The value in a payload.
    func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value
    /// Whether payloads of that type and subtype, in lower case and without parameters, may be decoded. Default: only the
    /// media type of ``contentType``.
    func accepts(mediaType: String) -> Bool
}

extension PayloadCoding {
    public func accepts(mediaType: String) -> Bool {
        contentType.utf8.prefix { $0 != UInt8(ascii: ";") }.elementsEqual(mediaType.utf8)
    }
}

extension PayloadCoding {
    /// Encodes a value for sending.
    ///
    /// - Throws: an error with the code `invalidRequest` if it cannot be encoded.
    package func payload<Failure: ClientError>(
        of value: some Encodable, throwing: Failure.Type
    ) throws(Failure) -> [UInt8] {
        do {
            return try encode(value)
        } catch {
            throw Failure(
                .invalidRequest, "The \(type(of: value)) cannot be encoded as \(contentType): \(error)", answer: nil,
                underlying: error)
        }
    }

    /// Decodes a payload.
    ///
    /// - Parameter mediaType: the type that the message declares; nil if it declares none.
    package func value<Value: Decodable>(
        of type: Value.Type, from payload: ArraySlice<UInt8>, mediaType: String?
    ) -> Result<Value, DecodeFailure> {
        if let mediaType, !accepts(mediaType: mediaType) {
            return .failure(DecodeFailure(expected: type, as: contentType, received: mediaType))
        }
        return DecodeFailure.result(of: { try decode(type, from: $0) }, payload, payload)
    }
}

/// A payload that is not what was expected. It is an element of its sequence, not the end of it.
public struct DecodeFailure: Error, Sendable, CustomStringConvertible {
    /// What was expected, and why the payload is not that.
    public let message: String
    /// The error of the decoder; nil if the payload was not decoded.
    public let underlying: (any Error)?

    /// Makes a failure with its message and the error of the decoder.
    public init(_ message: String, underlying: (any Error)? = nil) {
        self.message = message
        self.underlying = underlying
    }

    /// The decoder threw.
    package init<Value>(_ payload: ArraySlice<UInt8>, isNot type: Value.Type, _ error: any Error) {
        self.init("\(payload.count) bytes are not a valid \(type): \(error)", underlying: error)
    }

    /// Decodes a message with a closure of the application.
    package static func result<Message, Value>(
        of decode: (Message) throws -> Value, _ message: Message, _ payload: ArraySlice<UInt8>
    ) -> Result<Value, DecodeFailure> {
        do {
            return .success(try decode(message))
        } catch {
            return .failure(DecodeFailure(payload, isNot: Value.self, error))
        }
    }

    /// The message declares another type than the expected one.
    package init<Value>(expected type: Value.Type, as expected: String, received: String) {
        self.init("A \(type) was expected as \(expected), but the message is \(received).")
    }

    public var description: String { message }
}
