import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// Messages that are so large that they are written from the caller's own bytes.
@Suite("Client: large messages", .turns)
struct LargeMessageTests {
    /// Every byte says which message it belongs to, and where.
    private static func payload(_ number: Int) -> [UInt8] {
        let count = number % 3 == 0 ? 300_000 + number * 1_001 : number * 10
        return (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
    }

    @Test(arguments: QoS.allCases, [true, false])
    func `messages arrive whole, large and small ones of several tasks`(qos: QoS, isInspected: Bool) async throws {
        let broker = try await LoopbackBroker.start()
        let (publisher, reader) = (try MQTTClient(broker.mqttURL), try MQTTClient(broker.mqttURL))
        for client in [publisher, reader] { try await client.connect() }
        if isInspected { publisher.inspect(into: FrameLog()) }
        let messages = try await reader.subscribe(
            to: "large/#", qos: qos, buffer: BufferPolicy(overflow: .pauseReading))
        let numbers = 0..<24
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in 0..<4 {
                group.addTask {
                    for number in numbers where number % 4 == start {
                        try await publisher.publish(Self.payload(number), to: "large/\(number)", qos: qos)
                    }
                }
            }
            try await group.waitForAll()
        }
        var left = Set(numbers)
        for try await message in messages {
            let number = try #require(Int(message.topic.dropFirst("large/".count)))
            #expect(message.bytes == Self.payload(number), "message \(number)")
            #expect(left.remove(number) != nil)
            if left.isEmpty { break }
        }
        for client in [publisher, reader] { await client.disconnect() }
        await broker.stop()
    }
}
