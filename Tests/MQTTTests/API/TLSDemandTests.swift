import ClientTestSupport
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing
import Transport

/// What a client does when a server does not meet the demands of the TLS options.
@Suite(.turns)
struct TLSDemandTests {
    private func broker() async throws -> LoopbackBroker {
        let pair = Certificates().server
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(certificates: .file(pair.certificate), key: .file(pair.key)))
        return try await LoopbackBroker.judged(options)
    }

    private func client(_ broker: LoopbackBroker, _ change: (inout MQTTConfiguration) -> Void) -> MQTTClient {
        var configuration = MQTTConfiguration()
        configuration.reconnect.initialDelay = .milliseconds(1)
        configuration.reconnect.maximumDelay = .milliseconds(1)
        configuration.tls.trust = .authorities([.file(Certificates().authority.certificate)])
        change(&configuration)
        return MQTTClient("mqtts://localhost:\(broker.ports.mqtts ?? 0)", configuration: configuration)
    }

    @Test func `a pin that fails ends the attempts and is named by every call`() async throws {
        let broker = try await broker()
        let client = client(broker) { $0.tls.pinnedKeys = [String(repeating: "A", count: 43) + "="] }
        let events = client.events
        await client.start()
        // Otherwise it would try for ever, and the publish would wait.
        let error = await #expect(throws: MQTTError.self) { try await client.publish("x", to: "a", qos: .atLeastOnce) }
        #expect(error?.code == .certificatePinMismatch)
        var attempts = 0
        for await event in events {
            if case .attemptFailed = event { attempts += 1 }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(attempts <= 1)
        await broker.stop()
    }

    @Test func `each reconnect is checked, and a refusal is tried again`() async throws {
        let broker = try await broker()
        let calls = Mutex(0)
        let client = client(broker) {
            $0.tls.additionalCheck = { _, _ in
                let call = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if (2...4).contains(call) { throw TransportError(.certificateRefused, "Call \(call).") }
            }
        }
        try await client.connect()
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        let events = client.events
        await broker.dropAllConnections()
        var refusals: [MQTTError.Code] = []
        for await event in events {
            if case .attemptFailed(_, let error) = event { refusals.append(error.code) }
            if case .stateChanged(.connected) = event { break }
        }
        #expect(calls.withLock { $0 } == 5)
        #expect(refusals.allSatisfy { $0 == .certificateRefused })
        await client.disconnect()
        await broker.stop()
    }
}
