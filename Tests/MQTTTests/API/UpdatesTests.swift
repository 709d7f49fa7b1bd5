import LoopbackBroker
import MQTT
import TestSupport
import Testing

@Suite("Client: states, events and packets", .turns)
struct ClientUpdatesTests {
    @Test func `sequences made before a connection bring all of it, however late they are iterated`() async throws {
        let bench = try await Bench()
        let client = bench.client("early")
        let states = client.states
        let events = client.events
        let packets = client.inspect()
        try await client.connect()
        await client.disconnect()
        let seen = await states.prefix { if case .disconnecting = $0 { false } else { true } }.reduce(into: []) {
            $0.append($1)
        }
        #expect(seen.count == 3, "disconnected, connecting, connected")
        let isConnected = await events.contains { if case .connected = $0 { true } else { false } }
        #expect(isConnected)
        let first = try #require(await packets.first { _ in true })
        #expect("\(first)".hasPrefix("CONNECT"))
        await bench.stop()
    }
}
