import MQTT
import STOMP
import TestSupport
import Testing

/// One message, two protocols.
@Suite(.serialized, .turns)
struct BridgeTests {
    @Test(
        .requires(anyOf: .activeMQWithMQTT, .rabbitMQ),
        arguments: STOMPBroker.usable.filter { $0 == .rabbitMQ || Broker.activeMQWithMQTT.isUsable })
    func messagesCrossFromOneProtocolToTheOther(broker: STOMPBroker) async throws {
        let port =
            switch broker {
            case .activeMQ: try await SharedBrokers.activeMQ().mqttPort
            case .rabbitMQ: try #require(try await SharedBrokers.rabbitMQ().mqttPort)
            }
        var configuration = MQTTConfiguration(clientID: "bridge-%%%%")
        configuration.allowSlowBrokers()
        if broker == .rabbitMQ { configuration.credentials = Credentials(userName: "guest", password: "guest") }
        let mqtt = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
        try await mqtt.connect()
        let stomp = try await broker.connected()
        let body = [UInt8](0...255)
        let onSTOMP = try await stomp.subscribe(to: "/topic/bridge.*.up")
        let onMQTT = try await mqtt.subscribe(to: "bridge/+/down", qos: .atLeastOnce)
        try await mqtt.publish(body, to: "bridge/B/up", qos: .atLeastOnce)
        let up = try #require(try await onSTOMP.first(1).first)
        #expect(up.bytes == body)
        #expect(up.destination == "/topic/bridge.B.up")
        try await stomp.sendAndConfirm(body, to: "/topic/bridge.B.down")
        let down = try await withTimeout(.patience) {
            for try await message in onMQTT { return Array(message.payload) }
            return []
        }
        #expect(down == body)
        await stomp.disconnect()
        await mqtt.disconnect()
    }
}
