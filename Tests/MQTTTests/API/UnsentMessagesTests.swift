import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell

@Suite("Client: unsent messages", .turns)
struct UnsentMessagesTests {
    /// A client whose only connection takes little at a time, until it is cut.
    private func saturated(
        _ version: MQTTVersion
    ) async throws -> (client: MQTTClient, wire: MemoryStream, server: PacketReader) {
        let (near, far) = MemoryPair.make()
        near.changeFaults { $0.capacity = 10_000 }
        let attempts = Mutex(0)
        var configuration = MQTTConfiguration(clientID: "saturated")
        configuration.version = version
        configuration.reconnect.initialDelay = .milliseconds(10)
        configuration.reconnect.maximumDelay = .milliseconds(50)
        let client = MQTTClient(["mqtt://saturated"], configuration: configuration, loop: .shared) {
            () throws(TransportError) in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            guard attempt == 1 else { throw TransportError(.connectionRefused, "no second connection") }
            return OpenedStream(stream: near)
        }
        let server = PacketReader(far, version: version)
        try await server.accept(client)
        return (client, near, server)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [true, false])
    func `QoS 0 messages that a saturated link did not take before it ended are reported`(
        version: MQTTVersion, whilePublishing: Bool
    ) async throws {
        let (client, near, server) = try await saturated(version)
        var events = client.events.makeAsyncIterator()

        let sent = Count()
        let senders = 4
        await withTaskGroup { group in
            for sender in 0..<senders {
                group.addTask {
                    for number in 0..<1000 {
                        let payload = [UInt8](
                            repeating: UInt8(sender), count: number % 100 == 50 ? 300_000 : number % 300)
                        guard (try? client.tryPublish(MQTTOutgoingMessage(payload, to: "t"))) == true else { continue }
                        sent.value.add(1, ordering: .relaxed)
                    }
                }
            }
            if !whilePublishing { await group.waitForAll() }
            // More than the link has taken.
            _ = await eventually { sent.value.load(ordering: .relaxed) > 200 }
            near.changeFaults {
                $0.capacity = .max
                $0.bytesUntilCut = 12_345
            }
        }
        // No message comes without a connection, and publishing none fails at once.
        var reported = 0
        var received = 0
        while sent.value.load(ordering: .relaxed) != received + reported, let event = await events.next() {
            if case .unsentMessagesDiscarded(let count) = event { reported += count }
            received += server.read().count { $0.type == .publish }
        }
        #expect(reported > 0)
        #expect(received > 10)
        await client.disconnect()
    }

    @Test func `a large message that was cut is reported with those behind it`() async throws {
        let (client, near, server) = try await saturated(.v5_0)
        var events = client.events.makeAsyncIterator()
        // The link is full with a part of the first; the others leave together.
        for count in [20_000, 300_000, 10, 10] {
            let payload = [UInt8](repeating: 7, count: count)
            #expect(try client.tryPublish(MQTTOutgoingMessage(payload, to: "t", qos: .atMostOnce)))
        }
        near.changeFaults {
            $0.capacity = .max
            $0.bytesUntilCut = 40_000
        }
        _ = server.read()
        var reported = 0
        while reported == 0, let event = await events.next() {
            if case .unsentMessagesDiscarded(let count) = event { reported = count }
        }
        #expect(reported == 3)
        await client.disconnect()
    }

    @Test func `a connection that ends with an empty outbox reports no unsent messages`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "t")
        try await client.publish("x", to: "t")
        _ = try await messages.first(1)
        var events = client.events.makeAsyncIterator()
        await bench.cut()
        loop: while let event = await events.next() {
            switch event {
            case .unsentMessagesDiscarded(let count): Issue.record("\(count) messages were reported")
            case .connected: break loop
            default: break
            }
        }
        await client.disconnect()
        await bench.stop()
    }
}

/// Messages that were accepted so far.
private final class Count: Sendable {
    let value = Atomic(0)
}
