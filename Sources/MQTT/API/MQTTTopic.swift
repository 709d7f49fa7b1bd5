public import MQTTCore
public import MessagingShell
import MessagingWire

/// A topic together with the type of the values that are published to it, their format, and their quality of service.
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
/// A filter with wildcards matches many topics: subscribe to all of them, and publish to those that ``at(_:)`` returns.
public struct MQTTTopic<Value: Sendable>: Sendable {
    /// The topic filter; without wildcards it is a topic name. It may begin with `$share/name/`.
    public let filter: String
    /// The QoS that values are published with. Default: 1.
    public var qos: QoS
    /// Whether the server retains the last value for later subscribers. Default: false.
    public var retain: Bool
    /// The MIME type that messages declare and may declare; 5.0 only. Nil declares none and accepts every type.
    public var contentType: String? { format.contentType }

    let format: ValueFormat<Value>

    /// A topic of values in a format of the application's own, such as that of generated types:
    ///
    ///     MQTTTopic<Reading>(
    ///         "readings", contentType: "application/protobuf", encode: { try $0.serializedBytes() },
    ///         decode: { try Reading(serializedBytes: $0) })
    public init(
        _ filter: String, contentType: String? = nil, qos: QoS = .atLeastOnce, retain: Bool = false,
        encode: @escaping @Sendable (Value) throws -> [UInt8], decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        let format = ValueFormat(contentType: contentType, encode: encode, decode: decode)
        self.init(filter, format, qos, retain)
    }

    private init(_ filter: String, _ format: ValueFormat<Value>, _ qos: QoS, _ retain: Bool) {
        self.filter = filter
        self.qos = qos
        self.retain = retain
        self.format = format
    }

    /// The topic name to publish to: the filter without `$share/name/`.
    public var name: String { MQTTTopicFilter.shared(filter)?.filter ?? filter }

    /// The topic with its wildcards replaced in their order: by one level for `+`, by one or more for `#`.
    ///
    /// - Throws: ``MQTTError/Code/invalidRequest`` if the number of levels differs from the number of wildcards, or a
    ///   level is invalid.
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
                throw .invalidRequest(
                    "'\(capture)' cannot replace '\(isOneLevel ? "+" : "#")' in '\(filter)'. Use "
                        + (isOneLevel ? "one level without '/', '+' and '#'." : "levels without '+' and '#'."))
            }
            levels.append(capture)
        }
        guard left.isEmpty else { throw mismatch(captures) }
        return MQTTTopic(levels.joined(separator: "/"), format, qos, retain)
    }

    /// The name, for a message.
    ///
    /// - Throws: ``MQTTError/Code/invalidRequest`` if it has wildcards.
    func nameWithoutWildcards() throws(MQTTError) -> String {
        let name = name
        guard name.utf8.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }) else { return name }
        throw .invalidRequest(
            "'\(filter)' has wildcards, which a message cannot be published to. Replace them with at(_:), one level for each."
        )
    }

    private func mismatch(_ captures: [String]) -> MQTTError {
        let count = name.utf8.count { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
        return .invalidRequest(
            "'\(filter)' has \(count) wildcard\(count == 1 ? "" : "s"), and at(_:) got \(captures.count) levels. Pass one level for each wildcard."
        )
    }
}

extension MQTTTopic where Value: Codable {
    /// A topic of values in a format: `MQTTTopic<Reading>("readings", as: .json)`.
    public init(_ filter: String, as coding: some PayloadCoding, qos: QoS = .atLeastOnce, retain: Bool = false) {
        self.init(filter, ValueFormat(coding), qos, retain)
    }
}

extension MQTTTopic<String> {
    /// A topic of text in UTF-8; with 5.0 messages carry Payload Format Indicator 1.
    public static func text(_ filter: String, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTTopic {
        MQTTTopic(filter, .text, qos, retain)
    }
}

extension MQTTTopic<[UInt8]> {
    /// A topic of bytes as they are.
    public static func bytes(_ filter: String, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTTopic {
        MQTTTopic(filter, .bytes, qos, retain)
    }
}

extension MQTTTopic: CustomStringConvertible {
    /// The filter and the type of its values.
    public var description: String { "MQTTTopic<\(Value.self)>(\(OneLine.text(filter)))" }
}
