// Foundation's coders. FoundationEssentials has them too and loads a third of the code, which a program notices when it
// starts; Apple's systems do not have it.

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Values as JSON.
///
/// Write `.json`: importing a client does not import this name. For an encoder or decoder with options of its own,
/// write a type that conforms to ``PayloadCoding``.
public struct JSONPayload: PayloadCoding {
    public var contentType: String { "application/json" }

    /// Makes the format; `.json` is the same.
    public init() {}

    public func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    public func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(type, from: Data(payload))
    }

    /// `application/json`, `text/json`, and what ends with `+json`.
    public func accepts(mediaType: String) -> Bool {
        mediaType == contentType || mediaType == "text/json" || mediaType.hasSuffix("+json")
    }
}

/// Values as binary property lists.
///
/// Write `.propertyList`: importing a client does not import this name.
public struct PropertyListPayload: PayloadCoding {
    public var contentType: String { "application/x-plist" }

    /// Makes the format; `.propertyList` is the same.
    public init() {}

    public func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return Array(try encoder.encode(value))
    }

    public func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
        try PropertyListDecoder().decode(type, from: Data(payload))
    }
}

extension PayloadCoding where Self == JSONPayload {
    /// JSON, with dates in ISO 8601.
    public static var json: JSONPayload { JSONPayload() }
}

extension PayloadCoding where Self == PropertyListPayload {
    /// A binary property list.
    public static var propertyList: PropertyListPayload { PropertyListPayload() }
}
