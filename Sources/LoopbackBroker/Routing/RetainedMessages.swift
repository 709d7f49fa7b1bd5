import MQTTCore
import MessagingWire

/// The retained messages by their topics. A filter is compared with the topics that begin as it does before its first wildcard.
struct RetainedMessages: Sendable {
    private var messages: [ByteKey: Message] = [:]
    /// In the order of their bytes.
    private var topics: [String] = []
    private(set) var bytes = 0

    var count: Int { messages.count }
    var all: Dictionary<ByteKey, Message>.Values { messages.values }

    /// Keeps a message as that of its topic.
    mutating func insert(_ message: Message) {
        if let old = messages.updateValue(message, forKey: ByteKey(message.topic)) {
            bytes -= old.size
        } else {
            topics.insert(message.topic, at: place(of: message.topic.utf8))
        }
        bytes += message.size
    }

    /// Forgets the message of a topic.
    mutating func remove(_ topic: String) {
        guard let old = messages.removeValue(forKey: ByteKey(topic)) else { return }
        bytes -= old.size
        topics.remove(at: place(of: topic.utf8))
    }

    /// The messages whose topics match a filter that is not shared, in the order of the topics.
    func matching(_ filter: String) -> [Message] {
        let wildcards = [UInt8(ascii: "+"), UInt8(ascii: "#")]
        guard let wildcard = filter.utf8.firstIndex(where: wildcards.contains) else {
            return messages[ByteKey(filter)].map { [$0] } ?? []
        }
        var prefix = filter.utf8[..<wildcard]
        // "a/#" stands for "a" as well [MQTT-4.7.1-2].
        if filter.utf8[wildcard] == UInt8(ascii: "#") { prefix = prefix.dropLast() }
        return topics[place(of: prefix)...].lazy.prefix { $0.utf8.starts(with: prefix) }
            .filter { MQTTTopicFilter.matches(filter, topic: $0) }.compactMap { messages[ByteKey($0)] }
    }

    /// Where a topic is or would be.
    private func place(of name: some Collection<UInt8>) -> Int {
        var (low, high) = (0, topics.count)
        while low < high {
            let middle = (low + high) / 2
            if topics[middle].utf8.lexicographicallyPrecedes(name) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
