import LoopbackBroker
import TestSupport
import Testing

/// One topic, two protocols.
@Suite(.turns) struct BridgeTests {
    @Test func carriesMessagesBothWaysUnderBothNames() async throws {
        try await withBroker { broker in
            let mqtt = try await RawClient.mqtt(broker, MQTTBytes.connect("m"))
            try await mqtt.send(MQTTBytes.subscribe("device/+/location"))
            try await mqtt.expect([0x90, 3, 0, 1, 0])
            let stomp = try await RawClient.stomp(broker)
            try await stomp.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/.mwm.*.motion")
            try await stomp.send("SEND\ndestination:/topic/device.B.location\n\n{}\0")
            try await mqtt.expect(MQTTBytes.publish("device/B/location", "{}"))
            try await mqtt.send(MQTTBytes.publish("/mwm/x/motion", "spin"))
            #expect(try await stomp.expectMessage("spin")["destination"] == "/topic/.mwm.x.motion")
        }
    }

    @Test func doesNotBridgeQueues() async throws {
        try await withBroker { broker in
            let mqtt = try await RawClient.mqtt(broker, MQTTBytes.connect("m"))
            try await mqtt.send(MQTTBytes.subscribe("#"))
            try await mqtt.expect([0x90, 3, 0, 1, 0])
            let stomp = try await RawClient.stomp(broker)
            try await stomp.sendAndWait("SEND\ndestination:/queue/q", body: "x")
            try await mqtt.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
        }
    }

    @Test func deliversPersistentMessagesAtLeastOnce() async throws {
        try await withBroker { broker in
            let mqtt = try await RawClient.mqtt(broker, MQTTBytes.connect("m"))
            try await mqtt.send(MQTTBytes.subscribe("t", qos: 2))
            try await mqtt.expect([0x90, 3, 0, 1, 2])
            let stomp = try await RawClient.stomp(broker)
            try await stomp.send("SEND\ndestination:/topic/t\npersistent:true\n\nx\0")
            try await mqtt.expect(MQTTBytes.publish("t", "x", qos: 1))
        }
    }
}
