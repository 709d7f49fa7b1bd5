import MessagingWire

/// How a WebSocket is asked for, beyond what its URL says.
public struct WebSocketOptions: Sendable, Equatable {
    /// More header fields for the request, such as `Authorization`, `Cookie` or `Origin`, in their order.
    public var headers: [(name: String, value: String)] = []
    /// Sub-protocols to offer, in the order of preference; nil offers those of the protocol's versions.
    public var subprotocols: [String]?
    /// Whether STOMP goes out in text messages, one for each frame that is UTF-8. Default: true, since every broker reads
    /// them, and ActiveMQ Classic ignores binary messages.
    ///
    /// A frame that is not UTF-8 is a binary message. With false, frames that are written at once are one binary message
    /// together, which takes less processor time. MQTT is always binary [MQTT-6.0.0-1].
    public var sendsText = true
    /// Whether text messages from the server have to be UTF-8, as RFC 6455 section 8.1 requires; others end the
    /// connection. Default: true. STOMP only: MQTT accepts no text messages.
    ///
    /// RabbitMQ sends STOMP frames with bodies of any bytes as text, so that the STOMP client stops checking once
    /// CONNECTED names RabbitMQ.
    public var validatesText = true
    /// Longer messages are sent in fragments of this many bytes, for servers with a limit on frames.
    public var maximumFrameSize = Int.max
    /// Longer data is sent in several messages of at most this many bytes, for servers with a limit on messages that
    /// put them together, as Spring's does with STOMP. Default: no limit. At least 4.
    ///
    /// Text is cut between characters. Every MQTT server reads packets that are cut anywhere [MQTT-6.0.0-2].
    public var maximumMessageSize = Int.max

    /// Makes options without further headers.
    public init() {}

    /// The same with these header fields in place of those with the same names.
    package func replacing(_ fields: [String: String]) -> WebSocketOptions {
        guard !fields.isEmpty else { return self }
        var options = self
        let names = Set(fields.keys.map { $0.lowercased() })
        options.headers.removeAll { names.contains($0.name.lowercased()) }
        options.headers += fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        return options
    }

    /// Whether all options are equal, texts by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.headers.elementsEqual(other.headers) {
            $0.name.hasSameBytes(as: $1.name) && $0.value.hasSameBytes(as: $1.value)
        } && one.subprotocols?.map(ByteKey.init) == other.subprotocols?.map(ByteKey.init)
            && one.sendsText == other.sendsText && one.validatesText == other.validatesText
            && one.maximumFrameSize == other.maximumFrameSize && one.maximumMessageSize == other.maximumMessageSize
    }
}

extension WebSocketOptions: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The options, with the names of the header fields but not their values, which may be tokens.
    public var description: String {
        let names = headers.map { "\($0.name): •••" }.joined(separator: ", ")
        let offered = subprotocols.map { $0.joined(separator: ", ") } ?? "those of the protocol"
        return "headers [\(names)], sub-protocols \(offered), STOMP as \(sendsText ? "text" : "binary")"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "headers": headers.map { "\($0.name): •••" }, "subprotocols": subprotocols as Any,
                "sendsText": sendsText, "maximumFrameSize": maximumFrameSize,
                "maximumMessageSize": maximumMessageSize,
            ])
    }
}
