import Foundation
import MQTT

extension Growth {
    /// Messages of 16 bytes to 16 MiB, in both directions.
    func messages() async throws -> GrowthTable {
        var table = GrowthTable(
            "Messages by size", sizes: "bytes",
            note: "QoS 0, one call each, and received one by one; n is the size of one message.",
            .whole("publish"), .whole("receive"))
        for (size, label) in [
            (16, "16 B"), (256, "256 B"), (4096, "4 KiB"), (65_536, "64 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB"),
        ] where size <= sizes([16, 256, 4096, 65_536, 1 << 20, 16 << 20]).last ?? 16 {
            // Half a gigabyte, and enough messages for the clock.
            let count = scaled(min(1_000_000, max(16, (512 << 20) / size)))
            let sent = try await least { try await publish(count, size) } / Double(count)
            let received = try await least { try await receive(count, size) } / Double(count)
            table.add(size, label: label, sent, received)
        }
        return table
    }

    private func client() async throws -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "growth")
        configuration.maximumPacketSize = 17 << 20
        let client = MQTTClient("mqtt://127.0.0.1:\(setting.mqtt.port)", configuration: configuration)
        try await client.connect()
        return client
    }

    private func publish(_ count: Int, _ size: Int) async throws -> Costs {
        let client = try await client()
        let payload = [UInt8](repeating: 0x70, count: size)
        let costs = try await measured {
            for _ in 0..<count { try await client.publish(payload, to: MQTTRows.topic) }
            try await client.publish([], to: MQTTRows.topic, qos: .atLeastOnce)
        }
        await client.disconnect()
        return costs
    }

    private func receive(_ count: Int, _ size: Int) async throws -> Costs {
        let client = try await client()
        var bytes = 0
        let costs = try await measured {
            let messages = try await client.subscribe(
                to: "#", qos: .atMostOnce, buffer: BufferPolicy(bytes: 40 << 20, overflow: .pauseReading))
            let flood = Task { try await client.subscribe(to: "flood/\(count)/\(size)", qos: .atMostOnce) }
            var seen = 0
            for try await message in messages {
                bytes += message.payload.count
                seen += 1
                if seen == count { break }
            }
            _ = try await flood.value
        }
        await client.disconnect()
        guard bytes == count * size else { throw Shell.Failure(description: "\(bytes) bytes came of \(count * size)") }
        return costs
    }
}
