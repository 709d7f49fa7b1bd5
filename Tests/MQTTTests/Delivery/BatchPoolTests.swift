import ClientTestSupport
import LoopbackBroker
import MQTTCore
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite("Delivery: memory of batches", .turns)
struct BatchPoolTests {
    private func storage(_ byte: UInt8, count: Int) -> MQTTBatchStorage {
        MQTTBatchStorage(bytes: [UInt8](repeating: byte, count: count))
    }

    @Test func `memory comes back once, up to the bound, and goes when it is trimmed`() {
        let pool = MQTTBatchPool()
        #expect(pool.take().bytes.capacity == 0)
        for _ in 0..<10 { pool.give(storage(1, count: 1 << 20)) }
        var kept = 0
        while pool.take().bytes.capacity > 0 { kept += 1 }
        #expect(kept == 3 || kept == 4)
        pool.give(storage(1, count: 1 << 16))
        pool.trim()
        #expect(pool.take().bytes.capacity == 0)
        #expect(!MQTTBatchPool.keeps([1, 2, 3]))
        #expect(MQTTBatchPool.keeps([UInt8](repeating: 0, count: 1 << 16)))
        #expect(!MQTTBatchPool.keeps([UInt8](repeating: 0, count: 2 << 20)))
    }

    /// Without keep alive nothing else happens on the connection.
    @Test(arguments: [false, true])
    func `the memory of large reads is freed when nothing comes for twenty seconds, or the connection ends`(
        isClosed: Bool
    ) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "reader")
        configuration.keepAlive = .zero
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        await broker.publish([UInt8](repeating: 1, count: 100_000), to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).first?.payload.count == 100_000)
        await clock.waitUntilQuiet()
        let pool = await clock.loop.result {
            clock.loop.sharedObject(MQTTAfterLock.self) { MQTTAfterLock() }.pool
        }
        #expect(pool.keptBytes > 0)
        if isClosed {
            await client.disconnect()
        } else {
            await clock.advance(by: .seconds(9))
            #expect(pool.keptBytes > 0)
            await clock.advance(by: .seconds(12))
        }
        #expect(pool.keptBytes == 0)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `small messages on many topics do not keep the memory of large reads`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = MQTTClient(broker.urls.mqtt ?? "", clock: clock)
        try await client.connect()
        let messages = try await client.subscribe(to: "#")
        for number in 0..<300 {
            await broker.publish([UInt8](repeating: 1, count: 1_000), to: "a/topic/of/many/number/\(number)")
        }
        await broker.publish([UInt8](repeating: 1, count: 100_000), to: "large")
        #expect(try await messages.first(301).count == 301)
        await clock.waitUntilQuiet()
        let pool = await clock.loop.result {
            clock.loop.sharedObject(MQTTAfterLock.self) { MQTTAfterLock() }.pool
        }
        #expect(pool.keptBytes > 0)
        for _ in 0..<6 {
            await broker.publish("small", to: "small")
            #expect(try await messages.first(1).count == 1)
            await clock.advance(by: .seconds(5))
        }
        #expect(pool.keptBytes == 0)
        await client.disconnect()
        await broker.stop()
    }

    /// The memory of one small message that nobody reads, after another connection of its loop has left something behind.
    private func memoryOfSmallMessage(after leave: @escaping @Sendable (MQTTAfterLock) -> Void) async throws -> Int {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = MQTTClient(broker.urls.mqtt ?? "", clock: clock)
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        let loop = clock.loop
        await loop.result { leave(loop.sharedObject(MQTTAfterLock.self) { MQTTAfterLock() }) }
        await broker.publish("x", to: "a", qos: .atLeastOnce)
        #expect(await eventually { client.counters.messagesReceived == 1 })
        await clock.waitUntilQuiet()
        let bytes = client.backlog.unreadBytes
        withExtendedLifetime(messages) {}
        await client.disconnect()
        await broker.stop()
        return bytes
    }

    @Test func `a small message does not keep the large memory of many`() async throws {
        let large = storage(1, count: 1 << 20)
        let bytes = try await memoryOfSmallMessage { $0.pool.give(large) }
        #expect((1..<2_048).contains(bytes), "\(bytes)")
    }

    @Test func `a message that was read alone does not keep the records of a large read before it`() async throws {
        let bytes = try await memoryOfSmallMessage { $0.work.effects.messages.reserveCapacity(1_000) }
        #expect((1..<2_048).contains(bytes), "\(bytes)")
    }

    @Test func `what somebody keeps of a message stays as it was when its memory is used again`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(
            to: "a/#", qos: .atMostOnce, buffer: BufferPolicy(overflow: .pauseReading))
        let count = 400
        let publishing = Task {
            for number in 0..<count {
                try await client.publish(
                    [UInt8](repeating: UInt8(number % 251), count: 20_000 + number), to: "a/\(number % 3)")
            }
        }
        let kept = try await withTimeout(.patience, "the messages") {
            var kept: [(topic: String, payload: ArraySlice<UInt8>)] = []
            for try await message in messages {
                kept.append((message.topic, message.payload))
                if kept.count == count { break }
            }
            return kept
        }
        try await publishing.value
        for (number, message) in kept.enumerated() {
            #expect(message.topic == "a/\(number % 3)")
            #expect(message.payload.count == 20_000 + number && message.payload.allSatisfy { $0 == number % 251 })
        }
        await bench.stop()
    }

    @Test func `messages from array, with short and long topics, properties and retain, all arrive`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "#", qos: .atMostOnce)
        let topics = ["a", "exactly/15/byte", "exactly/16/bytes", "a/much/longer/topic/than/fits/into/a/string"]
        let sent = (0..<400).map { number in
            MQTTOutgoingMessage(
                Array("\(number)".utf8) + [UInt8](repeating: 7, count: number % 70), to: topics[number % 4],
                qos: .atMostOnce, retain: number % 31 == 0)
        }
        try await client.publish(sent).check()
        let received = try await withTimeout(.patience, "the messages") { try await messages.first(sent.count) }
        #expect(received.map(\.topic) == sent.map(\.topic))
        #expect(received.map(\.bytes) == sent.map(\.payload))
        let wrong = await #expect(throws: MQTTError.self) {
            try await client.publish([sent[2], .init([], to: "a/topic/with/+/in/its/name", qos: .atMostOnce), sent[3]])
                .check()
        }
        #expect(wrong?.code == .invalidRequest)
        let others = try await withTimeout(.patience, "the others") { try await messages.first(2) }
        #expect(others.map(\.bytes) == [sent[2].payload, sent[3].payload])
        await bench.stop()
    }
}
