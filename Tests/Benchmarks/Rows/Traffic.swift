import MQTT

/// Traffic as the broker in C makes it: many topics, payloads of different sizes, properties, several qualities of service.
struct Traffic {
    var count: Int
    var topics = 1
    /// Bytes of each payload; nil for 0 to 4,096.
    var payload: Int? = 24
    /// Nil for QoS 0 and 1 in turn.
    var qos: QoS? = .atMostOnce
    /// Whether each message has two user properties of 36 bytes together; nil for every other message.
    var hasProperties: Bool? = false
    /// Messages with QoS 1 or 2 that may be unacknowledged.
    var window = 100

    /// How `traffic.h` reads it.
    var description: String {
        let words = [
            count, topics, payload ?? -1, qos.map { Int($0.rawValue) } ?? -1, hasProperties.map { $0 ? 1 : 0 } ?? -1,
            window,
        ]
        return words.map(String.init).joined(separator: "/")
    }

    static let properties: MQTTProperties = [.userProperty("source", "sensor7"), .userProperty("region", "north-1")]

    /// The same messages, to be published.
    func messages(_ numbers: Range<Int>) -> [MQTTOutgoingMessage] {
        numbers.map { index in
            let number = String(index % topics)
            let topic = "growth/x/" + String(repeating: "0", count: 5 - number.count) + number + "/y"
            let size = payload ?? Int((UInt32(truncatingIfNeeded: index) &* 2_654_435_761 >> 13) % 4_097)
            let properties = hasProperties ?? (index >> 1 & 1 == 1) ? Self.properties : []
            return MQTTOutgoingMessage(
                [UInt8](repeating: 0x70, count: size), to: topic,
                qos: qos ?? (index & 1 == 1 ? .atLeastOnce : .atMostOnce), properties: properties)
        }
    }
}
