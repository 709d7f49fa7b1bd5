import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

@Suite("Client: a hook for messages", .turns)
struct MessageHookTests {
    /// What a hook has seen.
    private final class Seen: Sendable {
        let lines = Mutex<[String]>([])
        func note(_ line: String) { lines.withLock { $0.append(line) } }
        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }

        /// Adds a user property, and notes what becomes of each message.
        var hook: MQTTMessageHook {
            MQTTMessageHook { message in
                message.properties.userProperties.append(.init("trace", message.topic))
                let topic = message.topic
                return { outcome in
                    switch outcome {
                    case .success: self.note("sent \(topic)")
                    case .failure(let error): self.note("failed \(topic) \(error.code)")
                    }
                }
            } receiving: { message in
                self.note("received \(message.properties.userProperty("trace") ?? "nothing")")
            }
        }
    }

    private typealias Publish = @Sendable (MQTTClient) async throws -> Void

    private static let ways: [Publish] = [
        { try await $0.publish("x", to: "a") }, { try await $0.publish("x", to: "a", qos: .atLeastOnce) },
        { try await $0.publish(MQTTOutgoingMessage("x", to: "a", qos: .atMostOnce)) },
        { try await $0.publish(MQTTOutgoingMessage("x", to: "a", qos: .exactlyOnce)) },
        { try await $0.publish([MQTTOutgoingMessage("x", to: "a")]).check() },
        { try await $0.publishForConfirmation(MQTTOutgoingMessage("x", to: "a")).confirmed() },
        { try await $0.publishForConfirmation(MQTTOutgoingMessage("x", to: "a", qos: .atMostOnce)).confirmed() },
        { try await $0.enqueue(MQTTOutgoingMessage("x", to: "a")) },
        { _ = try $0.tryPublish(MQTTOutgoingMessage("x", to: "a")) }, { try await $0.publish([1], as: .json, to: "a") },
    ]

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `every way to publish passes the hook once, with its outcome`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let seen = Seen()
        let client = try await bench.connected {
            $0.version = version
            $0.messageHook = seen.hook
        }
        var messages = try await client.subscribe(to: "#", qos: .exactlyOnce).makeAsyncIterator()
        for (place, way) in Self.ways.enumerated() {
            try await way(client)
            let message = try #require(try await messages.next())
            // Before 5.0 there are no properties.
            let trace = version == .v5_0 ? "a" : nil
            #expect(message.properties.userProperty("trace") == trace, "way \(place)")
            #expect(seen.take() == ["sent a", "received \(trace ?? "nothing")"], "way \(place)")
        }
        await client.disconnect()
        await #expect(throws: MQTTError.self) { try await client.publish("x", to: "b") }
        #expect(seen.take() == ["failed b notConnected"])
        let results = await client.publish([MQTTOutgoingMessage("x", to: "b"), MQTTOutgoingMessage("x", to: "c")])
        #expect(results.count == 2)
        #expect(seen.take() == ["failed b notConnected", "failed c notConnected"])
        await bench.stop()
    }

    @Test func `a hook may change payloads on both sides`() async throws {
        let bench = try await Bench()
        let reverse = MQTTMessageHook { message in
            message.payload.reverse()
            return nil
        } receiving: {
            $0 = $0.with(payload: $0.payload.reversed() + Array("!".utf8))
        }
        let plain = try await bench.connected { $0.version = .v5_0 }
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.messageHook = reverse
        }
        let outside = try await plain.subscribe(to: "#", qos: .exactlyOnce)
        let inside = try await client.subscribe(to: "+/b", acknowledgement: .manual)
        // With aliases, and several in one read.
        let texts = (0..<20).map { "text \($0)" }
        try await client.publish(texts.map { MQTTOutgoingMessage($0, to: "a/b", properties: [.contentType("t")]) })
            .check()
        #expect(try await outside.first(20).map(\.text) == texts.map { String($0.reversed()) })
        let received = try await inside.first(20)
        #expect(received.map(\.text) == texts.map { $0 + "!" })
        #expect(received.allSatisfy { $0.topic == "a/b" && $0.captures == ["a"] && $0.properties.contentType == "t" })
        #expect(client.backlog.unacknowledgedMessages == 20)
        for message in received { message.acknowledge() }
        #expect(await eventually { client.backlog.unacknowledgedMessages == 0 })
        await client.disconnect()
        await plain.disconnect()
        await bench.stop()
    }

    @Test func `hooks follow each other, and the last one is the first for what is received`() async throws {
        func hook(_ letter: Character) -> MQTTMessageHook {
            MQTTMessageHook { message in
                message.payload.append(letter.asciiValue ?? 0)
                return nil
            } receiving: { message in
                if message.payload.last == letter.asciiValue {
                    message = message.with(payload: message.payload.dropLast())
                }
            }
        }
        let bench = try await Bench()
        let plain = try await bench.connected()
        let client = try await bench.connected { $0.messageHook = hook("a").followed(by: hook("b")) }
        let outside = try await plain.subscribe(to: "t")
        let inside = try await client.subscribe(to: "t")
        try await client.publish("x", to: "t", qos: .atLeastOnce)
        #expect(try await outside.first(1).map(\.text) == ["xab"])
        #expect(try await inside.first(1).map(\.text) == ["x"])
        await client.disconnect()
        await plain.disconnect()
        await bench.stop()
    }

    @Test func `each message is seen once, by iterators, batches and requests`() async throws {
        let bench = try await Bench()
        let seen = Seen()
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.messageHook = MQTTMessageHook(receiving: { seen.note($0.text ?? "") })
        }
        let subscription = try await client.subscribe(to: "a")
        let texts = (0..<6).map { "\($0)" }
        try await client.publish(texts.map { MQTTOutgoingMessage($0, to: "a") }).check()
        // An iterator leaves its place to the next one, and to batches.
        _ = try await subscription.first(2)
        _ = try await subscription.first(1)
        var count = 3
        for try await batch in subscription.batches {
            count += batch.count
            if count == 6 { break }
        }
        #expect(seen.take() == texts)
        let server = try await bench.connected { $0.version = .v5_0 }
        let requests = try await server.subscribe(to: "ask")
        let serving = Task {
            for try await request in requests {
                try await server.reply(to: request, with: "answer")
                break
            }
        }
        _ = try await client.request("x", to: "ask", timeout: .patience)
        #expect(seen.take() == ["answer"])
        try await serving.value
        await client.disconnect()
        await server.disconnect()
        await bench.stop()
    }
}
