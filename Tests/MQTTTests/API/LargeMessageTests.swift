import ClientTestSupport
import LoopbackBroker
import MQTTCore
import TestSupport
import Testing

@testable import MQTT
@testable import MessagingShell
@testable import Transport

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
        let broker = try await LoopbackBroker.judged()
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

    /// How a program that has inspected a client ends that.
    enum End: CaseIterable {
        case stopped, released, sequenceReleased, messageEventsReleased
    }

    @Test(arguments: End.allCases)
    func `a payload is written from the caller's bytes once nobody inspects any more`(end: End) async throws {
        let (near, far) = MemoryPair.make()
        near.changeFaults { $0.capacity = 10_000 }
        var configuration = MQTTConfiguration(clientID: "inspected")
        configuration.version = .v3_1_1
        let client = MQTTClient(["mqtt://inspected"], configuration: configuration, loop: .shared) {
            () throws(TransportError) in OpenedStream(stream: near)
        }
        let server = PacketReader(far, version: .v3_1_1)
        try await server.accept(client)
        switch end {
        case .stopped:
            let log = FrameLog()
            client.inspect(into: log)
            client.stopInspecting(into: log)
        case .released: client.inspect(into: FrameLog())
        case .sequenceReleased: _ = client.inspect().makeAsyncIterator()
        case .messageEventsReleased: _ = client.messageEvents.makeAsyncIterator()
        }
        #expect(client.core.link.tap != nil)
        try await client.publish([UInt8](repeating: 7, count: 1 << 20), to: "t")
        // The link is full: what the outbox had is being written.
        #expect(await eventually { client.backlog.outboxBytes == 0 })
        let isLeftOut = client.core.link.perform { _ in client.core.link.wirePayload != nil }
        #expect(isLeftOut)
        server.stream.close()
        await client.disconnect()
    }
}
