import ClientTestSupport
import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing
import Transport

/// What a connection asks of the system besides its bytes, for clients that connect and disconnect again and again.
@Suite(.turns) struct ConnectionCostTests {
    private static let count = 20

    @Test(arguments: ["MQTT", "STOMP"], [true, false])
    func `a connection is watched once and never changed, and a call wakes the loop once at most`(
        kind: String, isOnLoop: Bool
    ) async throws {
        let broker = try await LoopbackBroker.judged()
        let selector = CountingSelector(try SelectorKind.automatic.make())
        let loop = EventLoop { () throws(TransportError) in selector }
        defer { loop.stop() }
        let connectAndDisconnect = { @concurrent @Sendable in
            for _ in 0..<Self.count {
                if kind == "MQTT" {
                    let url = try broker.mqttURL
                    let client = MQTTClient([url], configuration: MQTTConfiguration(clientID: "cost"), loop: loop)
                    try await client.connect()
                    await client.disconnect()
                } else {
                    let client = STOMPClient([try broker.stompURL], configuration: STOMPConfiguration(), loop: loop)
                    try await client.connect()
                    await client.disconnect()
                }
            }
        }
        if isOnLoop {
            try await withTaskExecutorPreference(loop) { try await connectAndDisconnect() }
        } else {
            try await connectAndDisconnect()
        }
        let counts = selector.counts
        #expect(counts.additions <= Self.count + (kind == "STOMP" ? Self.count : 0), "\(counts)")
        // Closing a descriptor ends the watch over it.
        #expect(counts.changes == 0 && counts.removals == 0, "\(counts)")
        // Connecting and disconnecting are one call each. The first wakes the loop that starts.
        #expect(counts.wakes <= (isOnLoop ? 1 : 2 * Self.count) + 1, "\(counts)")
        // What a call hands in is less than the loop runs before it polls.
        if isOnLoop { #expect(counts.polls <= Self.count, "\(counts)") }
        await broker.stop()
    }
}
