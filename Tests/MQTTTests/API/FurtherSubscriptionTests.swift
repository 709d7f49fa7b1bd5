import MQTT
import Synchronization
import TestSupport
import Testing
import Transport

/// Subscriptions to a filter that the client has subscribed already.
@Suite("Client: further subscriptions of one filter", .turns)
struct FurtherSubscriptionTests {
    private func isRefusal(_ error: any Error) -> Bool { (error as? MQTTError)?.code == .refused }

    // MARK: The server's answers

    @Test func `each of two subscribes to a filter returns with the answer to its own SUBSCRIBE`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let isAnswered = Mutex(false)
        let second = Task {
            defer { isAnswered.withLock { $0 = true } }
            return try await client.subscribe(to: "a")
        }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.grantedQoS1)
        #expect(try await first.value.grantedQoS == .atLeastOnce)
        #expect(!isAnswered.withLock { $0 })
        server.answer(.success)
        #expect(try await second.value.grantedQoS == .atMostOnce)
        await client.disconnect()
    }

    /// With the same QoS and with a higher one.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atMostOnce, .atLeastOnce])
    func `a refused further subscribe throws, and the first sequence continues`(version: MQTTVersion, qos: QoS)
        async throws
    {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = version }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a", qos: qos) }
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(version.hasProperties ? .notAuthorized : .unspecifiedError)
        await #expect { _ = try await second.value } throws: { isRefusal($0) }
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        // What was refused is not asked for again.
        server.setWithholding(false)
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { server.subscribed.count == 3 })
        #expect(server.subscribed.last?.qos == .atMostOnce)
        await client.disconnect()
    }

    @Test func `a refused first subscribe throws, and the further one that is granted continues`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        server.answer(.success)
        let messages = try await second.value
        server.send("x", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["x"])
        await client.disconnect()
    }

    @Test func `two refused subscribes to a filter throw, whatever the order of the answers`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.notAuthorized, at: 1)
        await #expect { _ = try await second.value } throws: { isRefusal($0) }
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        #expect(server.unsubscribed.isEmpty)
        await client.disconnect()
    }

    @Test func `a further subscribe without an answer times out, and the first sequence continues`() async throws {
        let clock = try ManualClock()
        let server = SubscribingServer(clock: clock)
        let client = server.scriptedServer.client { $0.requestTimeout = .seconds(50) }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        await clock.advance(by: .seconds(50))
        await #expect { _ = try await second.value } throws: { ($0 as? MQTTError)?.code == .timedOut }
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        await client.disconnect()
    }

    // MARK: Ends

    @Test(arguments: [MQTTReasonCode.success, .notAuthorized])
    func `a further subscribe that is cancelled leaves the first sequence alone, whatever is answered`(
        code: MQTTReasonCode
    ) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        second.cancel()
        await #expect { _ = try await second.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        server.answer(code)
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        try await first.unsubscribe()
        #expect(server.unsubscribed == ["a"])
        await client.disconnect()
    }

    /// Of the further one.
    @Test(arguments: [MQTTReasonCode.success, .notAuthorized])
    func `the first sequence may end before the further one is answered`(code: MQTTReasonCode) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        try await first.unsubscribe()
        #expect(server.unsubscribed.isEmpty)
        server.answer(code)
        if code.isError {
            await #expect { _ = try await second.value } throws: { isRefusal($0) }
        } else {
            let messages = try await second.value
            server.send("x", to: "a")
            #expect(try await messages.first(1).map(\.text) == ["x"])
            try await messages.unsubscribe()
        }
        #expect(await eventually { server.unsubscribed == ["a"] })
        await client.disconnect()
    }

    @Test func `a further subscribe whose connection is lost is answered on the next one`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        server.setWithholding(false)
        server.scriptedServer.link?.dropConnection()
        let messages = try await second.value
        #expect(server.subscribed.count == 3)
        server.send("x", to: "a")
        for messages in [first, messages] { #expect(try await messages.first(1).map(\.text) == ["x"]) }
        await client.disconnect()
    }
}
