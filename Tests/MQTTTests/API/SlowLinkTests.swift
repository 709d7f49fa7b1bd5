import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Keep alive on links that are slow, and on links that only look as if they were.
@Suite("Client: slow links", .turns)
struct SlowLinkTests {
    /// Accepts every connection, and does not mind how long a packet takes.
    private func patientServer() -> ScriptedServer {
        ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                step.accept()
                step.perform { $0.engine.setReadingPaused(true, at: MonotonicClock.now) }
            default: break
            }
        }
    }

    @Test func `a message that takes longer than keep alive and ping timeout arrives over one connection`() async throws
    {
        let server = patientServer()
        let listener = try await server.listen()
        // By the client's clock the message takes three seconds; without progress the connection would end after two.
        let clock = try ManualClock()
        let relay = try ShapedRelay.start(to: Int(listener.port), bytesPerSecond: 2_000_000)
        var configuration = MQTTConfiguration(clientID: "slow")
        configuration.keepAlive = .seconds(1)
        configuration.pingTimeout = .seconds(1)
        let client = MQTTClient("mqtt://127.0.0.1:\(relay.port)", configuration: configuration, clock: clock)
        try await client.connect()
        let payload = [UInt8](repeating: 7, count: 600_000)
        relay.pass(upTo: 0)
        async let published = client.publish(payload, to: "a", qos: .atLeastOnce)
        for part in 1...6 {
            relay.pass(upTo: part * 100_000)
            #expect(await eventually { relay.bytesPassed == part * 100_000 })
            await clock.advance(by: .milliseconds(500))
        }
        relay.pass(upTo: .max)
        #expect(try await published == .success)
        #expect(client.counters.connections == 1)
        // The relay counts what it has written.
        #expect(await eventually { relay.bytesPassed >= payload.count })
        await client.disconnect()
        relay.stop()
        await listener.close()
    }

    /// A large message on a slow link; the keep alive is the client's default where it is nil.
    ///
    /// The whole campaign takes minutes; otherwise one message takes three times as long as its keep alive.
    struct SlowCase: Sendable, CustomTestStringConvertible {
        var bytes: Int
        var bitsPerSecond: Int
        var keepAlive: Duration?

        var testDescription: String {
            "\(bytes) bytes, \(bitsPerSecond) bit/s, keep alive \(keepAlive.map { "\($0)" } ?? "as it is by default")"
        }

        static let chosen =
            Campaign.scale >= 1
            ? [
                SlowCase(bytes: 1_000_000, bitsPerSecond: 50_000, keepAlive: nil),
                SlowCase(bytes: 200_000, bitsPerSecond: 50_000, keepAlive: .seconds(10)),
                SlowCase(bytes: 1_000_000, bitsPerSecond: 200_000, keepAlive: .seconds(10)),
            ] : [SlowCase(bytes: 30_000, bitsPerSecond: 80_000, keepAlive: .seconds(1))]
    }

    @Test(arguments: SlowCase.chosen)
    func `a large message arrives over a slow link, over one connection`(slow: SlowCase) async throws {
        // Not the loopback broker: a packet that takes longer than one and a half times the keep alive ends a connection
        // there [MQTT-3.1.2-22].
        let server = patientServer()
        let listener = try await server.listen()
        let relay = try ShapedRelay.start(to: Int(listener.port), bytesPerSecond: slow.bitsPerSecond / 8)
        var configuration = MQTTConfiguration(clientID: "slow")
        if let keepAlive = slow.keepAlive { configuration.keepAlive = keepAlive }
        let client = MQTTClient("mqtt://127.0.0.1:\(relay.port)", configuration: configuration)
        try await client.connect()
        let start = ContinuousClock.now
        _ = try await client.publish([UInt8](repeating: 7, count: slow.bytes), to: "a", qos: .atLeastOnce)
        print("\(slow.testDescription): \(ContinuousClock.now - start), \(client.counters.connections) connections")
        #expect(client.counters.connections == 1)
        await client.disconnect()
        relay.stop()
        await listener.close()
    }

    @Test func `a link that stalls in the middle of a message is noticed`() async throws {
        let server = patientServer()
        let listener = try await server.listen()
        let relay = try ShapedRelay.start(to: Int(listener.port), bytesPerSecond: 200_000)
        var configuration = MQTTConfiguration(clientID: "stalled")
        configuration.keepAlive = .seconds(1)
        configuration.pingTimeout = .milliseconds(200)
        let client = MQTTClient("mqtt://127.0.0.1:\(relay.port)", configuration: configuration)
        try await client.connect()
        let publishing = Task {
            try await client.publish([UInt8](repeating: 7, count: 10_000_000), to: "a", qos: .atLeastOnce)
        }
        #expect(await eventually { relay.bytesPassed > 20_000 })
        relay.setStalled(true)
        #expect(await eventually { !client.state.isConnected })
        publishing.cancel()
        _ = await publishing.result
        relay.stop()
        await client.disconnect()
        await listener.close()
    }

    @Test(arguments: [false, true])
    func `a server or a link that is frozen while messages are published is noticed`(isLink: Bool) async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.keepAlive = .seconds(1)
            $0.pingTimeout = .milliseconds(200)
        }
        // The states, because a client that opens another connection is connected again at once.
        let states = client.states
        if isLink {
            bench.damage(client) { $0.isFrozen = true }
        } else {
            await bench.broker.freeze()
        }
        let publishing = Task {
            while !Task.isCancelled {
                _ = try? await client.publish("x", to: "a")
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let lost = await states.first { if case .waiting = $0 { true } else { false } }
        #expect(lost != nil)
        publishing.cancel()
        _ = await publishing.result
        await bench.broker.thaw()
        await client.disconnect()
        await bench.stop()
    }
}
