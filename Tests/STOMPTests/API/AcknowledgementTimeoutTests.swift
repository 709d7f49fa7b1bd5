import ClientTestSupport
import LoopbackBroker
import MessagingShell
import STOMP
import STOMPCore
import TestSupport
import Testing
import Transport

/// A server that sends heart-beats and no RECEIPT.
@Suite(.turns) struct AcknowledgementTimeoutTests {
    @Test func theNextServerIsTriedAndAnEventNamesTheOldestFrame() async throws {
        let clock = try ManualClock()
        let silent = try await LoopbackBroker.judged(clock: clock)
        silent.changeFaults { $0.withholdsAcknowledgements = true }
        let healthy = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.requestTimeout = .seconds(600)
        configuration.reconnect.jitter = 0
        configuration.reconnect.stableAfter = .seconds(1)
        let client = STOMPClient(
            silent.urls.stomp ?? "", healthy.urls.stomp ?? "", configuration: configuration, clock: clock)
        let events = client.events
        try await client.connect()
        let arrivals = silent.arrivals()
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/a") }
        _ = await arrivals.first { $0.packet == .stomp(.send) }
        await clock.advance(by: .seconds(29))
        #expect(client.state.isConnected && silent.clients.count == 1)
        await clock.advance(by: .seconds(1))
        #expect(!client.state.isConnected)
        await #expect {
            try await sending.value
        } throws: {
            ($0 as? STOMPError)?.code == .connectionLost
        }
        await clock.advance(by: .seconds(5))
        #expect(healthy.clients.count == 1 && client.state.isConnected)
        let named = await events.first { event in
            if case .acknowledgementTimedOut = event { true } else { false }
        }
        guard case .acknowledgementTimedOut(receiptID: "1", after: .seconds(30)) = named else {
            Issue.record("\(named as Any)")
            return
        }
        try await client.sendAndConfirm("y", to: "/queue/a")
        await client.disconnect()
        await silent.stop()
        await healthy.stop()
    }

    @Test func aWorkerThatAcknowledgesNothingKeepsItsConnection() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = STOMPClient(broker.urls.stomp ?? "", clock: clock)
        try await client.connect()
        let jobs = try await client.subscribe(to: "/queue/jobs", acknowledgement: .clientIndividual)
        await broker.send("job", to: "/queue/jobs")
        #expect(try await jobs.texts(1) == ["job"])
        await clock.advance(by: .seconds(3600))
        #expect(client.state.isConnected && client.counters.connections == 1)
        await client.disconnect()
        await broker.stop()
    }
}
