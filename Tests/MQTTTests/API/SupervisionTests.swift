import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Without anybody who tries to be connected, nothing but `enqueue` waits.
@Suite("Client: requests without supervision", .turns)
struct SupervisionTests {
    /// What each kind of request throws.
    private func errors(_ client: MQTTClient, _ subscription: MQTTSubscription? = nil) async throws -> [MQTTError?] {
        let guaranteed = (0..<3).map { MQTTOutgoingMessage([$0], to: "a", qos: .atLeastOnce) }
        let unguaranteed = (0..<3).map { MQTTOutgoingMessage([$0], to: "a", qos: .atMostOnce) }
        return try await withTimeout(.patience, "requests that fail at once") {
            let errors = [
                await error { () throws(MQTTError) in try await client.publish("x", to: "a") },
                await error { () throws(MQTTError) in try await client.publish("x", to: "a", qos: .atLeastOnce) },
                await error { () throws(MQTTError) in try await client.publish("x", to: "a", qos: .exactlyOnce) },
                await error { () throws(MQTTError) in try await client.publish(guaranteed).check() },
                await error { () throws(MQTTError) in try await client.publish(unguaranteed).check() },
                await error { () throws(MQTTError) in _ = try client.tryPublish(MQTTOutgoingMessage([], to: "a")) },
                await error { () throws(MQTTError) in _ = try await client.subscribe(to: "a") },
            ]
            // The subscription has ended with its client.
            try await subscription?.unsubscribe()
            return errors
        }
    }

    @Test(arguments: [false, true])
    func `before connect() and after disconnect() every request says so at once`(queuesQoS0: Bool) async throws {
        let bench = try await Bench()
        let client = bench.client { $0.queuesQoS0WhileOffline = queuesQoS0 }
        for error in try await errors(client) {
            #expect(error?.code == .notConnected)
            #expect(error?.message.contains("connect()") == true)
        }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "b"))
        try await client.connect()
        let subscription = try await client.subscribe(to: "a")
        await client.disconnect()
        for error in try await errors(client, subscription) { #expect(error?.code == .notConnected) }
        try await client.enqueue(MQTTOutgoingMessage([2], to: "b"))
        #expect(client.counters.messagesSent == 1)
        #expect(client.backlog.queuedMessages == 1)
        await bench.stop()
    }

    @Test func `after the client gave up every request fails with the reason, and so do those that waited`()
        async throws
    {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection == 1 { step.accept() } else { step.refuse(.badUserNameOrPassword) }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        server.remark { _ in [] }
        await client.suspend()
        let one = Task { try await client.publish("x", to: "a", qos: .atLeastOnce) }
        let many = Task {
            try await client.publish((0..<3).map { MQTTOutgoingMessage([$0], to: "a", qos: .exactlyOnce) })
                .check()
        }
        #expect(await eventually { client.backlog.queuedMessages == 4 })
        client.resume()
        await #expect { try await one.value } throws: { ($0 as? MQTTError)?.reasonCode == .badUserNameOrPassword }
        await #expect { try await many.value } throws: { ($0 as? MQTTError)?.reasonCode == .badUserNameOrPassword }
        for error in try await errors(client) {
            #expect(error?.code == .badCredentials)
            #expect(error?.reasonCode == .badUserNameOrPassword)
            #expect(error?.message.contains("user name or password") == true)
        }
        try await client.enqueue(MQTTOutgoingMessage([2], to: "b"))
    }

    @Test func `a message whose publisher was told of a failure does not leave with a later connection`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection == 2 { step.refuse(.badUserNameOrPassword) } else { step.accept() }
        }
        let received = Mutex(0)
        server.remark { _ in
            received.withLock { $0 += 1 }
            return []
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        await client.suspend()
        let one = Task { try await client.publish("x", to: "a", qos: .atLeastOnce) }
        let many = Task {
            try await client.publish((0..<3).map { MQTTOutgoingMessage([$0], to: "a", qos: .exactlyOnce) })
                .check()
        }
        #expect(await eventually { client.backlog.queuedMessages == 4 })
        try await client.enqueue(MQTTOutgoingMessage([2], to: "b"))
        client.resume()
        await #expect(throws: MQTTError.self) { try await one.value }
        await #expect(throws: MQTTError.self) { try await many.value }
        try await client.connect()
        try await client.publish("last", to: "c", qos: .atLeastOnce)
        // The enqueued one and the last.
        #expect(received.withLock { $0 } == 2)
        await client.disconnect()
    }
}
