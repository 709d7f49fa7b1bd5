import ClientTestSupport
import LoopbackBroker
import TestSupport
import Testing

/// Starting, stopping, freezing.
@Suite(.turns) struct LifeTests {
    @Test func freesItsPortsAndEndsItsConnectionsWhenItStops() async throws {
        var options = LoopbackBrokerOptions()
        options.stompPort = .none
        let port = FreePort.next()
        options.mqttPort = .exactly(port)
        let broker = try await LoopbackBroker.judged(options)
        #expect(broker.ports.mqtt == port)
        #expect(broker.ports.stomp == nil)
        let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
        await broker.stop()
        try await client.expectEnd()
        await #expect(throws: SystemCallError.self) { try await RawConnection.open(port: port) }
        let next = try await LoopbackBroker.judged(options)
        #expect(next.ports.mqtt == port)
        await next.stop()
        await next.stop()
    }

    @Test func `closes a connection that would be one too many, until another one ends`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumConnections = 2
        let broker = try await LoopbackBroker.judged(options)
        let first = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
        var second: RawClient? = try await RawClient.open(broker.ports.stomp)
        #expect(await eventually { broker.connectionCount == 2 })
        for (count, port) in [broker.ports.mqtt, broker.ports.stomp, broker.ports.ws].enumerated() {
            let refused = try await RawClient.open(port)
            #expect(await eventually { broker.statistics.connections == count + 3 })
            // Behind the connection on the broker's loop.
            await broker.setLatency(.zero)
            #expect(broker.connectionCount == 2)
            try await refused.expectEnd()
        }
        withExtendedLifetime(second) {}
        second = nil
        #expect(await eventually { broker.connectionCount == 1 })
        _ = try await RawClient.mqtt(broker, MQTTBytes.connect("b"))
        try await first.send([0xC0, 0])
        try await first.expect([0xD0, 0])
        await broker.stop()
    }

    @Test func `each protocol is served at the port that its option names`() async throws {
        var options = LoopbackBrokerOptions()
        let certificates = Certificates()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        let wanted = (0..<6).map { _ in FreePort.next() }
        options.mqttPort = .exactly(wanted[0])
        options.mqttsPort = .exactly(wanted[1])
        options.stompPort = .exactly(wanted[2])
        options.stompsPort = .exactly(wanted[3])
        options.wsPort = .exactly(wanted[4])
        options.wssPort = .exactly(wanted[5])
        let broker = try await LoopbackBroker.judged(options)
        let ports = broker.ports
        #expect([ports.mqtt, ports.mqtts, ports.stomp, ports.stomps, ports.ws, ports.wss] == wanted)
        #expect(try broker.mqttsURL.hasSuffix(":\(wanted[1])"))
        #expect(try broker.stompsURL.hasSuffix(":\(wanted[3])"))
        #expect(try broker.wssURL.hasSuffix(":\(wanted[5])"))
        await broker.stop()
    }

    @Test(arguments: [false, true])
    func `calls of a broker that has stopped return at once`(hasClock: Bool) async throws {
        let broker = try await LoopbackBroker.judged(clock: hasClock ? ManualClock() : nil)
        let publishing = Task {
            while !Task.isCancelled { await broker.publish("x", to: "a") }
        }
        await broker.stop()
        publishing.cancel()
        await publishing.value
        #expect(await !broker.publish("x", to: "a"))
        await broker.send("x", to: "/queue/a")
        #expect(await !broker.dropConnection(of: "a"))
        #expect(await !broker.disconnect("a"))
        #expect(await !broker.forgetSession(of: "a"))
        await broker.dropAllConnections()
        await broker.freeze()
        await broker.thaw()
        await broker.setLatency(.seconds(1))
        var arrivals = broker.arrivals().makeAsyncIterator()
        #expect(await arrivals.next() == nil)
    }

    @Test func takesAnotherPortWhenThePreferredOneIsTaken() async throws {
        try await withBroker { broker in
            var options = LoopbackBrokerOptions()
            options.mqttPort = .preferred(broker.ports.mqtt ?? 0)
            try await withBroker(options) { other in
                #expect(other.ports.mqtt != nil)
                #expect(other.ports.mqtt != broker.ports.mqtt)
            }
            options.mqttPort = .exactly(broker.ports.mqtt ?? 0)
            await #expect(throws: (any Error).self) { try await LoopbackBroker.judged(options) }
        }
    }

    @Test func isSilentWhileFrozenAndGoesOnAfterwards() async throws {
        try await withBroker { broker in
            let client = try await Self.clientOfFrozen(broker)
            try await client.send(MQTTBytes.ping)
            let late = try await RawClient.open(broker.ports.mqtt)
            try await late.send(MQTTBytes.connect("b"))
            await #expect(throws: TimeoutError.self) {
                try await client.connection.receive(atLeast: 1, timeout: .seconds(2))
            }
            await broker.thaw()
            try await client.expect([0xD0, 0])
            try await late.expect([0x20, 2, 0, 0])
        }
    }

    /// A client with the shortest keep alive, of a broker that was frozen before it expired.
    ///
    /// The broker ends a connection after 1.5 keep alives; on a busy machine that can come before the freeze, so this
    /// tries again.
    private static func clientOfFrozen(_ broker: LoopbackBroker) async throws -> RawClient {
        while true {
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a", keepAlive: 1))
            await broker.freeze()
            if broker.connectionCount == 1 { return client }
            await broker.thaw()
        }
    }

    @Test func stopsWhenNobodyHoldsItAnyMore() async throws {
        // Not one that the system may give to another listener afterwards.
        let port = FreePort.next()
        var options = LoopbackBrokerOptions()
        options.mqttPort = .exactly(port)
        do {
            let broker = try await LoopbackBroker.judged(options)
            #expect(broker.ports.mqtt == port)
        }
        let isGone = await eventually { (try? await RawConnection.open(port: port)) == nil }
        #expect(isGone)
    }

    @Test func dropsAllConnectionsAndTakesNewOnes() async throws {
        try await withBroker { broker in
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
            await broker.dropAllConnections()
            try await client.expectEnd()
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
            #expect(broker.statistics.connections == 2)
        }
    }
}
