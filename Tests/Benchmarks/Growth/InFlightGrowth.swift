import Foundation
import MQTT

extension Growth {
    /// Messages that wait for their acknowledgement.
    func inFlight() async throws -> GrowthTable {
        var table = GrowthTable(
            "Messages in flight", sizes: "in flight",
            note: """
                By array. The broker answers when it has n messages that are not acknowledged: all of them, in their order or \
                from the last to the first. With QoS 2 that happens to PUBLISH and to PUBREL.
                """,
            .each("QoS 1 in order"), .each("QoS 1 from the last"), .each("QoS 2 in order"), .each("QoS 2 from the last")
        )
        for size in sizes([1, 10, 100, 1000, 10_000, 65_535]) {
            // A few seconds, and the largest several times.
            let count = max(1, min(scaled(200_000), scaled(20_000) * size) / size) * size
            var figures: [Double] = []
            for qos in [QoS.atLeastOnce, .exactlyOnce] {
                for order in ["hold", "back"] {
                    let all = try await least { try await publish(count, qos, inFlight: size, order: order) }
                    figures.append(all / Double(count))
                }
            }
            table.add(size, figures[0], figures[1], figures[2], figures[3])
        }
        return table
    }

    private func publish(_ count: Int, _ qos: QoS, inFlight size: Int, order: String) async throws -> Costs {
        var configuration = MQTTConfiguration(clientID: "\(order)-\(size)")
        configuration.maximumInFlight = UInt16(size)
        let client = MQTTClient("mqtt://127.0.0.1:\(setting.mqtt.port)", configuration: configuration)
        try await client.connect()
        let message = MQTTOutgoingMessage([UInt8](repeating: 0x70, count: 24), to: MQTTRows.topic, qos: qos)
        let array = [MQTTOutgoingMessage](repeating: message, count: count)
        let costs = try await measured { try await client.publish(array).check() }
        await client.disconnect()
        return costs
    }
}
