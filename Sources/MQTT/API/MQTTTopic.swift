public import MQTTCore
public import Messaging

/// A topic together with what is published to it: the type of the values, their format, and their quality of service.
///
///     extension MQTTTopic<Reading> {
///         static let readings = MQTTTopic("house/+/+/reading", as: .json)
///     }
///
///     try await client.publish(reading, to: .readings.at("kitchen", "lamp"))
///     for try await element in try await client.subscribe(to: .readings) {
///         print(element.captures, try element.get())
///     }
///
/// A filter with wildcards names many topics: subscribe to it whole, and publish to those that ``at(_:)`` makes of it.
public struct MQTTTopic<Value: Sendable>: Sendable {
    /// The topic filter; a topic name where it has no wildcards. `$share/name/` may stand in front.
    public let filter: String
    /// The QoS that values are published with. Default: 1.
    public var qos: QoS
    /// Whether the server keeps the last value for those who subscribe later.
    public var retain: Bool
    /// The MIME type that messages say and may say; 5.0 only. Nil says nothing and takes everything.
    public let contentType: String?

    let isText: Bool
    let encode: @Sendable (Value) throws -> [UInt8]
    let decode: @Sendable (MQTTMessage) -> Result<Value, DecodeFailure>

    /// A topic of values in a format of one's own, as that of generated types:
    ///
    ///     MQTTTopic<Reading>(
    ///         "readings", contentType: "application/protobuf", encode: { try $0.serializedBytes() },
    ///         decode: { try Reading(serializedBytes: $0) })
    public init(
        _ filter: String, contentType: String? = nil, qos: QoS = .atLeastOnce, retain: Bool = false,
        encode: @escaping @Sendable (Value) throws -> [UInt8], decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        let expected = contentType.map(MediaType.name(in:))
        self.init(filter, contentType, qos, retain, isText: false, encode) { message in
            if let expected, let came = message.mediaType, came != expected {
                return .failure(DecodeFailure("a \(Value.self) was expected as \(expected), and \(came) came"))
            }
            return message.value(decode)
        }
    }

    private init(
        _ filter: String, _ contentType: String?, _ qos: QoS, _ retain: Bool, isText: Bool,
        _ encode: @escaping @Sendable (Value) throws -> [UInt8],
        _ decode: @escaping @Sendable (MQTTMessage) -> Result<Value, DecodeFailure>
    ) {
        self.filter = filter
        self.contentType = contentType
        self.qos = qos
        self.retain = retain
        self.isText = isText
        self.encode = encode
        self.decode = decode
    }

    /// The topic name to publish to: the filter, without the name of a shared subscription in front.
    public var name: String { MQTTTopicFilter.shared(filter)?.filter ?? filter }

    /// The topic with its wildcards filled in their order: one level for `+`, one or more for `#`.
    ///
    /// - Throws: ``MQTTError/Code/invalidRequest`` for another number of levels than wildcards, and for levels that are
    ///   none.
    public func at(_ captures: String...) throws(MQTTError) -> MQTTTopic {
        var left = captures[...]
        var levels: [String] = []
        for level in name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard level.elementsEqual("+".utf8) || level.elementsEqual("#".utf8) else {
                levels.append(String(Substring(level)))
                continue
            }
            guard let capture = left.popFirst() else { throw mismatch(captures) }
            let isOneLevel = level.elementsEqual("+".utf8)
            guard capture.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#") && $0 != 0 }),
                !isOneLevel || !capture.utf8.contains(UInt8(ascii: "/"))
            else {
                throw MQTTError(
                    .invalidRequest,
                    "'\(capture)' cannot stand for '\(isOneLevel ? "+" : "#")' in '\(filter)': "
                        + (isOneLevel ? "one level without '/', '+' and '#'" : "levels without '+' and '#'"))
            }
            levels.append(capture)
        }
        guard left.isEmpty else { throw mismatch(captures) }
        return MQTTTopic(
            levels.joined(separator: "/"), contentType, qos, retain, isText: isText, encode, decode)
    }

    private func mismatch(_ captures: [String]) -> MQTTError {
        let count = name.utf8.count { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
        return MQTTError(
            .invalidRequest, "'\(filter)' has \(count) wildcards, and \(captures.count) levels were given to fill them")
    }
}

extension MQTTTopic where Value: Codable {
    /// A topic of values in a format: `MQTTTopic<Reading>("readings", as: .json)`.
    public init(
        _ filter: String, as coding: some PayloadCoding, qos: QoS = .atLeastOnce, retain: Bool = false
    ) {
        self.init(filter, coding.contentType, qos, retain, isText: false) { value in
            try coding.encode(value)
        } _: { message in
            Result { () throws(DecodeFailure) in try message.value(Value.self, as: coding) }
        }
    }
}

extension MQTTTopic<String> {
    /// A topic of text in UTF-8; with 5.0 messages say that they are.
    public static func text(_ filter: String, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTTopic {
        MQTTTopic(filter, nil, qos, retain, isText: true) { value in
            Array(value.utf8)
        } _: { message in
            message.text.map { .success($0) }
                ?? .failure(DecodeFailure("\(message.payload.count) bytes were expected as text and are not UTF-8"))
        }
    }
}

extension MQTTTopic<[UInt8]> {
    /// A topic of bytes as they are.
    public static func bytes(_ filter: String, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTTopic {
        MQTTTopic(filter, qos: qos, retain: retain, encode: { $0 }, decode: { $0 })
    }
}
