// The code of Sources/LoopbackBroker/LoopbackBroker.docc/TestMistakes.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT

func expectATimeout(broker: LoopbackBroker, client: MQTTClient, clock: ManualClock) async {
    broker.changeFaults { $0.withholdsAcknowledgements = true }
    var arrivals = broker.arrivals().makeAsyncIterator()
    let subscribing = Task { try await client.subscribe(to: "alerts") }
    _ = await arrivals.next()  // Without this line the clock may be early.
    await clock.advance(by: .seconds(10))
    do {
        _ = try await subscribing.value
        assertionFailure("The subscription was granted.")
    } catch {
        assert((error as? MQTTError)?.code == .timedOut)
    }
}

func expectARefusal(_ client: MQTTClient) async {
    do {
        try await client.connect()
        assertionFailure("The server accepted the credentials.")
    } catch {
        assert(error.code == .badCredentials)
    }
}

func reasonOfTheEnd(of client: MQTTClient) async -> MQTTError? {
    await client.start()
    for await state in client.states {
        if case .disconnected(let reason?) = state { return reason }
    }
    return nil
}

func readAlerts(_ client: MQTTClient) async -> String {
    do {
        for try await alert in try await client.subscribe(to: "alerts") { print(alert.text ?? "") }
        return "The client was disconnected."
    } catch {
        return "No alerts: \(error)"
    }
}

func stopWhileConnecting(broker: LoopbackBroker, client: MQTTClient) async throws {
    await broker.freeze()
    let program = Task { try await client.withConnection { _ in try await Task.sleep(for: .seconds(60)) } }
    for await state in client.states {
        if case .connecting = state { break }
    }
    program.cancel()
    _ = await program.result
    await client.disconnect()
    await broker.thaw()
}

/// Returns true as soon as the condition holds, and false after a minute without it.
@MainActor
func comesTrue(_ condition: () -> Bool) async -> Bool {
    for _ in 0..<12_000 {
        if condition() { return true }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return false
}
