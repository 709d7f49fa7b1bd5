import MessagingWire

#if canImport(FoundationEssentials)
    import protocol FoundationEssentials.LocalizedError
#else
    import protocol Foundation.LocalizedError
#endif

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
    /// The value in a payload whose type and subtype are `mediaType`, in lower case and without parameters; nil if the
    /// message declares none. Default: ``decode(_:from:)``.
    func decode<Value: Decodable>(
        _ type: Value.Type, from payload: ArraySlice<UInt8>, mediaType: String?
    ) throws -> Value
}

extension PayloadCoding {
    public func accepts(mediaType: String) -> Bool {
        // Most formats declare their type as it is compared, and need no copy of it.
        contentType.utf8.elementsEqual(mediaType.utf8) || MediaType.name(in: contentType).hasSameBytes(as: mediaType)
    }

    public func decode<Value: Decodable>(
        _ type: Value.Type, from payload: ArraySlice<UInt8>, mediaType: String?
    ) throws -> Value {
        try decode(type, from: payload)
    }
}

/// Several formats at once; made by `.anyOf(.json, .propertyList)`.
///
/// Values are encoded in the first. A payload is decoded in the first format that accepts its content type; without a
/// content type, as before MQTT 5.0, in the first format in which it can be decoded.
public struct PayloadCodings: PayloadCoding {
    private let first: any PayloadCoding
    private let others: [any PayloadCoding]

    /// Makes one format of several; `.anyOf` is the same.
    public init(_ first: any PayloadCoding, _ others: [any PayloadCoding]) {
        self.first = first
        self.others = others
    }

    /// The content type of the first format.
    public var contentType: String { first.contentType }

    public func encode(_ value: some Encodable) throws -> [UInt8] { try first.encode(value) }

    public func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
        try decode(type, from: payload, mediaType: nil)
    }

    public func decode<Value: Decodable>(
        _ type: Value.Type, from payload: ArraySlice<UInt8>, mediaType: String?
    ) throws -> Value {
        let all = [first] + others
        if let mediaType, let coding = all.first(where: { $0.accepts(mediaType: mediaType) }) {
            return try coding.decode(type, from: payload, mediaType: mediaType)
        }
        do {
            return try first.decode(type, from: payload, mediaType: nil)
        } catch {
            for other in others {
                if let value = try? other.decode(type, from: payload, mediaType: nil) { return value }
            }
            throw error
        }
    }

    public func accepts(mediaType: String) -> Bool {
        first.accepts(mediaType: mediaType) || others.contains { $0.accepts(mediaType: mediaType) }
    }
}

extension PayloadCoding where Self == PayloadCodings {
    /// Several formats at once, chosen by the content type of each message; one that names none is decoded in the first format
    /// in which it can be. Values are encoded in the first.
    public static func anyOf<each Other: PayloadCoding>(
        _ first: some PayloadCoding, _ others: repeat each Other
    ) -> PayloadCodings {
        var list: [any PayloadCoding] = []
        repeat list.append(each others)
        return PayloadCodings(first, list)
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
                .invalidRequest,
                "The \(type(of: value)) cannot be encoded as \(contentType): \(sentences(about: error))", answer: nil,
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
        return DecodeFailure.result(of: { try decode(type, from: $0, mediaType: mediaType) }, payload, payload)
    }
}

/// A payload that is not what was expected. It is an element of its sequence, not the end of it.
public struct DecodeFailure: DescribedError, Sendable {
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
        self.init(
            "The payload (\(OneLine.bytes(payload.count))) is not a valid \(type): \(sentences(about: error))",
            underlying: error
        )
    }

    /// The payload is not UTF-8.
    package init(notText payload: ArraySlice<UInt8>) {
        self.init("The payload (\(OneLine.bytes(payload.count))) is not text in UTF-8. Check what the sender sends.")
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
        self.init(
            "The message is declared as \(received), but a \(type) as \(expected) was expected. Correct the content type at the sender, or accept both formats with .anyOf."
        )
    }

    public var description: String { message }
}

/// What an encoder or decoder reports, for people: which value it is about, then what to do.
func sentences(about error: any Error) -> String {
    switch error {
    case DecodingError.keyNotFound(let key, let context):
        "\(name(of: context.codingPath + [key])) is missing. Make the property optional, if senders may leave it out."
    case DecodingError.valueNotFound(let type, let context):
        "\(name(of: context.codingPath)) is null instead of a \(type). Make the property optional, if senders may send null."
    case DecodingError.typeMismatch(let type, let context):
        "\(name(of: context.codingPath)) is not a \(type). Use the same type at the sender and here."
    case DecodingError.dataCorrupted(let context):
        "\(place(context.codingPath))\(sentence(context.debugDescription)) Check what the sender sends."
    case EncodingError.invalidValue(_, let context):
        "\(place(context.codingPath))\(sentence(context.debugDescription)) Change the value, or how its type is encoded."
    case let error as any LocalizedError where error.errorDescription != nil: sentence(error.errorDescription ?? "")
    default: sentence("\(error)")
    }
}

/// A value by the keys that lead to it: `the value of 'vehicles[2].speed'`.
private func name(of path: [any CodingKey]) -> String {
    if path.isEmpty { return "it" }
    let text = path.reduce(into: "") { text, key in
        text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? "" : ".") + key.stringValue
    }
    return "the value of '\(text)'"
}

private func place(_ path: [any CodingKey]) -> String { path.isEmpty ? "" : "\(name(of: path)): " }

private func sentence(_ text: String) -> String { text.hasSuffix(".") ? text : text + "." }
