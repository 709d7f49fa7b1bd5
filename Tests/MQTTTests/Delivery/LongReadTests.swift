import MQTTCore
import MessagingWire
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite(.turns) struct LongReadTests {
    @Test(arguments: [100, 3_000, 200_000])
    func `a long read lets others have the lock after each 64 KiB, and is one batch all the same`(
        size: Int
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let subscription = try await client.subscribe(to: "a/#")
        let core = client.core
        let version = core.link.perform { $0.engine.version }
        var bytes: [UInt8] = []
        var count = 0
        while bytes.count < 500_000 {
            let publish = MQTTPacket.Publish(topic: "a/b", payload: [UInt8](repeating: 0, count: size))
            try MQTTPacket.publish(publish).encode(into: &bytes, version: version)
            count += 1
        }
        let perPiece = (64 << 10) / (bytes.count / count)
        let calls = await core.loop.result { [bytes, count] in
            let afterLock = MQTTAfterLock()
            let now = core.loop.now
            var (calls, consumed) = (0, 0)
            repeat {
                consumed = core.link.perform { $0.receive(bytes.span.bytes, at: now, into: afterLock) }
                calls += 1
            } while afterLock.isReceiving
            #expect(consumed == bytes.count)
            #expect(afterLock.work.effects.messages.count == count)
            // The general path does not compare topics.
            #expect(afterLock.work.effects.topicChanges == (perPiece == 0 ? count : 1))
            #expect(afterLock.work.uniformRoute != nil)
            afterLock.perform(bytes.span.bytes)
            return calls
        }
        // A packet that is longer than 64 KiB is read at once with what follows it.
        #expect(calls == (perPiece == 0 ? 1 : (count + perPiece - 1) / perPiece))
        var batches = subscription.batches.makeAsyncIterator()
        let batch = try #require(try await batches.next())
        #expect(batch.count == count && batch.allSatisfy { $0.payload.count == size })
        await client.disconnect()
    }
}
