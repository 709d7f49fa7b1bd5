extension MQTTEncodingError {
    @inline(never)
    static func packetID(_ qos: QoS) -> MQTTEncodingError {
        qos == .atMostOnce
            ? .init(.invalidPacketID, "a packet identifier at QoS 0 [MQTT-2.2.1-2]")
            : .init(.invalidPacketID, "no packet identifier at \(qos) [MQTT-2.2.1-3]")
    }

    @inline(never)
    static func noProperties(_ version: MQTTVersion) -> MQTTEncodingError {
        .init(.notInThisVersion, "MQTT \(version) has no properties; connect with 5.0 or leave them out")
    }

    @inline(never)
    static func topicName(_ topic: String) -> MQTTEncodingError {
        .init(
            .invalidTopicName,
            "\"\(topic.prefix(100))\" is not a topic name: 1 to 65,535 bytes, neither + nor # nor U+0000")
    }

    @inline(never)
    static func topicFilter(_ filter: String) -> MQTTEncodingError {
        .init(
            .invalidTopicFilter,
            "\"\(filter.prefix(100))\" is not a topic filter: 1 to 65,535 bytes without U+0000, + alone in its level, "
                + "# alone in the last, $share/name/filter with a name and a filter")
    }

    @inline(never)
    static func packetTooLarge(_ type: MQTTPacketType, _ count: Int, _ maximum: Int) -> MQTTEncodingError {
        count > MQTTFrameHeader.largestPacket
            ? .init(.packetTooLarge, "\(type) is larger than the format can say, 268,435,460 bytes")
            : .init(.packetTooLarge, "\(type) of \(count) bytes, the maximum packet size is \(maximum)")
    }
}
