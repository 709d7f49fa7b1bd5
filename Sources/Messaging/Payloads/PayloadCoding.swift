/// Turns values into payloads and back, in one format. ``JSONPayload`` and ``PropertyListPayload`` are two; others take
/// two methods.
public protocol PayloadCoding: Sendable {
    /// The MIME type that says to a receiver what a payload holds.
    var contentType: String { get }
    /// The payload for a value.
    func encode(_ value: some Encodable) throws -> [UInt8]
    /// The value in a payload.
    func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value
    /// Whether payloads of that type and subtype, in small letters and without parameters, may be decoded. The default
    /// takes the media type of ``contentType`` alone.
    func accepts(mediaType: String) -> Bool
}

extension PayloadCoding {
    public func accepts(mediaType: String) -> Bool {
        contentType.utf8.prefix { $0 != UInt8(ascii: ";") }.elementsEqual(mediaType.utf8)
    }
}

/// A payload that is not what was expected. It is an element of its sequence, not the end of it.
public struct DecodeFailure: Error, Sendable, CustomStringConvertible {
    /// What was expected, and why it is not that.
    public let message: String
    /// What the decoder said; nil where it was not asked.
    public let underlying: (any Error)?

    public init(_ message: String, underlying: (any Error)? = nil) {
        self.message = message
        self.underlying = underlying
    }

    public var description: String { message }
}

extension PayloadCoding {
    /// Decodes a payload that says its type, or does not.
    package func value<Value: Decodable>(
        of type: Value.Type, from payload: ArraySlice<UInt8>, mediaType: String?
    ) -> Result<Value, DecodeFailure> {
        if let mediaType, !accepts(mediaType: mediaType) {
            return .failure(DecodeFailure("a \(Value.self) was expected as \(contentType), and \(mediaType) came"))
        }
        do {
            return .success(try decode(type, from: payload))
        } catch {
            return .failure(
                DecodeFailure("\(payload.count) bytes do not hold a \(Value.self): \(error)", underlying: error))
        }
    }
}
