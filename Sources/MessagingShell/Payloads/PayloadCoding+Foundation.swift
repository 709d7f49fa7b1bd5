import MessagingWire

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
        encoder.dateEncodingStrategy = .custom(ISO8601.encode)
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    public func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom(ISO8601.decode)
        return try decoder.decode(type, from: Data(payload))
    }

    /// `application/json`, `text/json`, and what ends with `+json`.
    public func accepts(mediaType: String) -> Bool {
        mediaType == contentType || mediaType == "text/json" || mediaType.hasSuffix("+json")
    }
}

/// Dates in JSON: in ISO 8601 and UTC, to the millisecond.
///
/// Foundation's own strategy writes whole seconds, reads fractions on some systems only, and its errors do not name the
/// value.
private enum ISO8601 {
    /// Writes the milliseconds unless there are none.
    @Sendable static func encode(_ date: Date, to encoder: any Encoder) throws {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        // Four digits are all that the format has for a year.
        guard milliseconds >= -62_167_219_200_000, milliseconds < 253_402_300_800_000 else {
            throw EncodingError.invalidValue(
                date,
                EncodingError.Context(
                    codingPath: encoder.codingPath, debugDescription: "the date is not in the years 0 to 9999"))
        }
        let seconds = (milliseconds / 1000).rounded(.down)
        var text = Date.ISO8601FormatStyle().format(Date(timeIntervalSince1970: seconds))
        let fraction = Int(milliseconds - seconds * 1000)
        if fraction > 0, text.utf8.last == UInt8(ascii: "Z") {
            let digits = String(1000 + fraction).dropFirst()
            text = "\(text.dropLast()).\(digits)Z"
        }
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }

    /// Reads any offset from UTC, with a fraction of the second or without.
    @Sendable static func decode(from decoder: any Decoder) throws -> Date {
        let text = try decoder.singleValueContainer().decode(String.self)
        let whole = text.utf8.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: ",") }
        let digits = text.utf8[whole.endIndex...].dropFirst().prefix { (0x30...0x39).contains($0) }
        let hasFraction = whole.endIndex < text.endIndex
        let rest = hasFraction ? text[digits.endIndex...] : ""
        guard !hasFraction || !digits.isEmpty,
            let date = try? Date.ISO8601FormatStyle().parse(String(Substring(whole)) + rest)
        else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "'\(OneLine.text(text, limit: 60))' is not a date in ISO 8601"))
        }
        return hasFraction ? date.addingTimeInterval(Double("0." + String(Substring(digits))) ?? 0) : date
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
    /// JSON, with dates in ISO 8601 to the millisecond.
    public static var json: JSONPayload { JSONPayload() }
}

extension PayloadCoding where Self == PropertyListPayload {
    /// A binary property list.
    public static var propertyList: PropertyListPayload { PropertyListPayload() }
}
