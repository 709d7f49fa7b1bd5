import MQTTCore
import Wire

extension MQTTMessage {
    /// A topic name, or a part of one, as it is in the bytes that were received.
    ///
    /// It compares with strings byte by byte, as the standard demands [MQTT-4.7.3-4], and makes no string itself:
    ///
    ///     if message.topicName.hasPrefix("house/kitchen/") { … }
    ///     for level in message.topicName.levels { … }
    public struct TopicName: Sendable, Hashable, CustomStringConvertible {
        @usableFromInline let bytes: ArraySlice<UInt8>

        @usableFromInline init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

        /// The topic as a string.
        public var description: String { String(decoding: bytes, as: UTF8.self) }

        /// Whether the topic consists of the UTF-8 bytes of a string.
        public static func == (name: TopicName, text: String) -> Bool {
            name.bytes.count == text.utf8.count && name.hasPrefix(text)
        }

        /// Whether the topic does not consist of the UTF-8 bytes of a string.
        public static func != (name: TopicName, text: String) -> Bool { !(name == text) }

        /// Lets `switch` compare a topic with strings.
        public static func ~= (text: String, name: TopicName) -> Bool { name == text }

        /// Whether the topic begins with the UTF-8 bytes of a string.
        public func hasPrefix(_ text: String) -> Bool {
            // The bytes of an array of bytes: nothing to reinterpret.
            text.withUTF8Span { unsafe bytes.span.bytes.isEqual(at: 0, to: $0) }
        }

        /// Whether a topic filter matches the topic; a shared filter matches as the filter in it does.
        public func matches(_ filter: String) -> Bool {
            // The bytes of an array of bytes: nothing to reinterpret.
            (MQTTTopicFilter.shared(filter)?.filter ?? filter).withUTF8Span { filter in
                unsafe MQTTTopicFilter.matches(filter, topic: bytes.span.bytes)
            }
        }

        /// The levels of the topic, which `/` separates; levels may be empty.
        public var levels: [TopicName] {
            bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { TopicName(bytes: $0) }
        }
    }
}
