/// A destination of STOMP, or a pattern of them, taken apart.
///
/// As with ActiveMQ `.` separates, `*` stands for exactly one part and `>` for any number of parts, none included.
/// What is neither below `/topic/` nor `/queue/` is a queue of that whole name.
struct Destination: Sendable {
    enum Kind: Sendable {
        case topic
        case queue
        /// A queue that belongs to one connection and ends with it.
        case temporaryQueue
    }

    static let topicPrefix = "/topic/"
    static let queuePrefix = "/queue/"
    static let temporaryPrefix = "/temp-queue/"

    let kind: Kind
    /// As the client wrote it.
    let text: String
    /// The name behind the prefix.
    let name: String
    private let parts: [[UInt8]]
    let hasWildcards: Bool

    /// Nil when there is no name.
    init?(_ text: String) {
        self.text = text
        let bytes = text.utf8
        func rest(after prefix: String) -> String? {
            guard bytes.starts(with: prefix.utf8) else { return nil }
            return String(decoding: bytes.dropFirst(prefix.utf8.count), as: UTF8.self)
        }
        if let name = rest(after: Self.topicPrefix) {
            kind = .topic
            self.name = name
        } else if let name = rest(after: Self.queuePrefix) {
            kind = .queue
            self.name = name
        } else if let name = rest(after: Self.temporaryPrefix) {
            kind = .temporaryQueue
            self.name = name
        } else {
            kind = .queue
            name = text
        }
        guard !name.utf8.isEmpty else { return nil }
        parts = Self.parts(of: name)
        hasWildcards = kind != .temporaryQueue && parts.contains { $0 == [Self.star] || $0 == [Self.greater] }
    }

    private static let star = UInt8(ascii: "*")
    private static let greater = UInt8(ascii: ">")

    static func parts(of name: String) -> [[UInt8]] {
        name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
    }

    /// Whether a name, taken apart, is one that this pattern stands for.
    func matches(_ name: [[UInt8]]) -> Bool {
        for (index, part) in parts.enumerated() {
            if part == [Self.greater] { return true }
            guard index < name.count, part == [Self.star] || part == name[index] else { return false }
        }
        return parts.count == name.count
    }

    /// The same for a name as text.
    func matches(_ name: String) -> Bool { matches(Self.parts(of: name)) }
}

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
