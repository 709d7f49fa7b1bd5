/// How values of one type are encoded in payloads and decoded: what the typed topics and destinations of the clients share.
package struct ValueFormat<Value: Sendable>: Sendable {
    /// The MIME type that messages declare and may declare; nil declares none and accepts every type.
    package let contentType: String?
    /// Whether payloads are UTF-8.
    package let isText: Bool
    private let encode: @Sendable (Value) throws -> [UInt8]
    private let decode: @Sendable (ArraySlice<UInt8>, _ mediaType: String?) -> Result<Value, DecodeFailure>

    /// A format of the application's own.
    package init(
        contentType: String?, encode: @escaping @Sendable (Value) throws -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        self.init(contentType: contentType, isText: false, encode: encode) { payload, mediaType in
            if let contentType, let mediaType, mediaType != MediaType.name(in: contentType) {
                return .failure(DecodeFailure(expected: Value.self, as: contentType, received: mediaType))
            }
            return DecodeFailure.result(of: { try decode(Array($0)) }, payload, payload)
        }
    }

    private init(
        contentType: String?, isText: Bool, encode: @escaping @Sendable (Value) throws -> [UInt8],
        decode: @escaping @Sendable (ArraySlice<UInt8>, _ mediaType: String?) -> Result<Value, DecodeFailure>
    ) {
        self.contentType = contentType
        self.isText = isText
        self.encode = encode
        self.decode = decode
    }

    /// Encodes a value for sending.
    ///
    /// - Parameter name: the topic or destination.
    /// - Throws: an error with the code `invalidRequest` if it cannot be encoded.
    package func payload<Failure: ClientError>(
        of value: Value, for name: String, throwing: Failure.Type
    ) throws(Failure) -> [UInt8] {
        do {
            return try encode(value)
        } catch {
            throw Failure(
                .invalidRequest, "The \(Value.self) cannot be encoded for '\(name)': \(sentences(about: error))",
                answer: nil, underlying: error)
        }
    }

    /// Decodes a payload.
    ///
    /// - Parameter mediaType: the type that the message declares; nil if it declares none.
    package func value(in payload: ArraySlice<UInt8>, mediaType: @autoclosure () -> String?)
        -> Result<Value, DecodeFailure>
    {
        decode(payload, contentType == nil ? nil : mediaType())
    }
}

extension ValueFormat where Value: Codable {
    /// A format that other values use too, such as JSON.
    package init(_ coding: some PayloadCoding) {
        self.init(contentType: coding.contentType, isText: false) { value in
            try coding.encode(value)
        } decode: { payload, mediaType in
            coding.value(of: Value.self, from: payload, mediaType: mediaType)
        }
    }
}

extension ValueFormat<String> {
    /// Text in UTF-8.
    package static var text: ValueFormat {
        ValueFormat(contentType: nil, isText: true) { value in
            Array(value.utf8)
        } decode: { payload, _ in
            String(validating: payload, as: UTF8.self).map { .success($0) }
                ?? .failure(DecodeFailure(notText: payload))
        }
    }
}

extension ValueFormat<[UInt8]> {
    /// The payload as it is.
    package static var bytes: ValueFormat { ValueFormat(contentType: nil, encode: { $0 }, decode: { $0 }) }
}

package enum MediaType {
    /// Type and subtype of a content type, in lower case and without parameters.
    package static func name(in contentType: String) -> String {
        let name = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }
            .filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return String(decoding: name, as: UTF8.self).lowercased()
    }
}
