/// How the two protocols name the same topic, as ActiveMQ has it: MQTT's `device/B/location` is STOMP's
/// `/topic/device.B.location`.
///
/// The separators change places, and so do the wildcards, which are ordinary characters in the other protocol: `/`
/// with `.`, `+` with `*`, `#` with `>`. That makes it one to one, and a name stays a name.
enum TopicNaming {
    static let topicPrefix = "/topic/"

    /// MQTT's name for STOMP's name without `/topic/`, and the other way round: it is its own inverse.
    static func exchanged(_ name: String) -> String {
        var bytes = Array(name.utf8)
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "/"): bytes[index] = UInt8(ascii: ".")
            case UInt8(ascii: "."): bytes[index] = UInt8(ascii: "/")
            case UInt8(ascii: "+"): bytes[index] = UInt8(ascii: "*")
            case UInt8(ascii: "*"): bytes[index] = UInt8(ascii: "+")
            case UInt8(ascii: "#"): bytes[index] = UInt8(ascii: ">")
            case UInt8(ascii: ">"): bytes[index] = UInt8(ascii: "#")
            default: break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The destination of a topic that MQTT names.
    static func destination(ofTopic topic: String) -> String { topicPrefix + exchanged(topic) }
}
