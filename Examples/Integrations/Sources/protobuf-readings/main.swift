import Foundation
import LoopbackBroker
import MQTT
import SwiftProtobuf

// Publishes and receives a message of Protocol Buffers. `Google_Protobuf_Timestamp` comes with SwiftProtobuf; types that
// protoc generates from your own files are used in the same way.

extension MQTTTopic<Google_Protobuf_Timestamp> {
    static let ticks = MQTTTopic.protobuf("clock/ticks")
}

let broker = try await LoopbackBroker.start()
try await MQTTClient(broker.mqttURL).withConnection { client in
    let ticks = try await client.subscribe(to: .ticks)
    try await client.publish(Google_Protobuf_Timestamp(date: Date()), to: .ticks)
    for try await tick in ticks {
        print(try tick.value.date)
        break
    }
}
await broker.stop()
