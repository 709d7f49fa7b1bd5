import MQTT
import SwiftProtobuf

extension MQTTTopic where Value: SwiftProtobuf.Message {
    /// A topic of Protocol Buffers in their binary format. Generated types are used as they are.
    static func protobuf(_ filter: String, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTTopic {
        MQTTTopic(
            filter, contentType: "application/protobuf", qos: qos, retain: retain,
            encode: { try $0.serializedBytes() }, decode: { try Value(serializedBytes: $0) })
    }
}
