import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingJudge
import STOMP
import TestSupport
import Testing
import Transport

/// The calls of the broker that end connections return when the connections have ended.
@Suite(.turns) struct EndedConnectionTests {
    enum End: CaseIterable {
        case drop, dropAll, disconnect, forget

        func callAsFunction(_ client: String, at broker: LoopbackBroker) async {
            switch self {
            case .drop: await broker.dropConnection(of: client)
            case .dropAll: await broker.dropAllConnections()
            case .disconnect: await broker.disconnect(client)
            case .forget: await broker.forgetSession(of: client)
            }
        }
    }

    @Test(arguments: End.allCases) func `nothing that is sent after the end of a connection is confirmed over it`(
        end: End
    ) async throws {
        try await withBroker { broker in
            let worker = worker(broker, .never)
            var (confirmed, open) = (0, 0)
            for _ in 0..<40 {
                // A new one, because a client sends what was not acknowledged again.
                let meter = meter(broker, .never)
                try await meter.connect()
                await end("meter", at: broker)
                open += broker.connectionCount
                if (try? await meter.publish("late", to: "a", qos: .atLeastOnce)) != nil { confirmed += 1 }
                await meter.disconnect()
                try await worker.connect()
                await end("worker", at: broker)
                open += broker.connectionCount
                if (try? await worker.sendAndConfirm("late", to: "/queue/a")) != nil { confirmed += 1 }
                await worker.disconnect()
            }
            #expect(confirmed == 0)
            #expect(open == 0)
            #expect(broker.clients == [])
            #expect(broker.statistics.messagesIn == 0)
        }
    }

    @Test(arguments: End.allCases) func `with a manual clock the client has noticed the end as well`(
        end: End
    ) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let meter = meter(broker, ReconnectPolicy(), clock)
        let worker = worker(broker, ReconnectPolicy(), clock)
        try await meter.connect()
        try await worker.connect()
        for turn in 1...20 {
            await end("meter", at: broker)
            #expect(!meter.state.isConnected)
            await end("worker", at: broker)
            #expect(!worker.state.isConnected)
            await clock.advance(by: .seconds(120))
            #expect(meter.counters.connections == turn + 1)
            #expect(worker.state.isConnected)
        }
        await broker.stop()
        #expect(!meter.state.isConnected && !worker.state.isConnected)
        await meter.disconnect()
        await worker.disconnect()
    }

    @Test func `ending a connection does not wait for work outside the manual clock's loop`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = meter(broker, .never, clock)
        try await client.connect()
        let gate = PendingCall<Void>()
        var configuration = MQTTConfiguration()
        configuration.credentialsProvider = { _ in
            await gate.answer()
            return Credentials(userName: "late")
        }
        let late = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        await late.start()
        #expect(await broker.dropConnection(of: "meter"))
        #expect(!client.state.isConnected)
        gate.end(())
        await late.disconnect()
        await broker.stop()
    }

    @Test func `what was delayed arrives although the client has ended its direction, and reads late`() async throws {
        try await withBroker(mayBreak: [.frameOfServer]) { broker in
            await broker.setLatency(.milliseconds(1))
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/t")
            // More than the system takes.
            let (count, body) = (24, String(repeating: "x", count: 512 << 10))
            for _ in 0..<count { await broker.send(body, to: "/topic/t") }
            try await client.send("HELLO\n\n\0")
            #expect(await eventually { broker.connectionCount == 0 })
            client.connection.endSending()
            let rest = try await client.connection.receive { _ in false }
            #expect(rest.count > count * body.utf8.count)
            #expect(String(decoding: rest.suffix(1_000), as: UTF8.self).contains("ERROR\n"))
        }
    }

    // MARK: Parts

    private func meter(
        _ broker: LoopbackBroker, _ reconnect: ReconnectPolicy, _ clock: ManualClock? = nil
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.reconnect = reconnect
        let url = broker.urls.mqtt ?? ""
        guard let clock else { return MQTTClient(url, configuration: configuration) }
        return MQTTClient(url, configuration: configuration, clock: clock)
    }

    private func worker(
        _ broker: LoopbackBroker, _ reconnect: ReconnectPolicy, _ clock: ManualClock? = nil
    ) -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.clientID = "worker"
        configuration.reconnect = reconnect
        let url = broker.urls.stomp ?? ""
        guard let clock else { return STOMPClient(url, configuration: configuration) }
        return STOMPClient(url, configuration: configuration, clock: clock)
    }
}
