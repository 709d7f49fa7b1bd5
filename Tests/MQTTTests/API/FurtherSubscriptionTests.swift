import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Subscriptions to a filter that the client has subscribed already.
@Suite("Client: further subscriptions of one filter", .turns)
struct FurtherSubscriptionTests {
    private func isRefusal(_ error: any Error) -> Bool { (error as? MQTTError)?.code == .refused }

    /// Waits until the filter, the only one of the client, has this many subscriptions.
    private func expectSubscriptions(_ count: Int, of client: MQTTClient) async {
        let core = client.core
        let counts = count == 0 ? [] : [count]
        #expect(
            await eventually {
                await core.loop.result { core.subscriptions.router.orderedEntries.map(\.value.routes.count) } == counts
            })
    }

    // MARK: The server's answers

    @Test func `each of two subscribes to a filter returns with the answer to its own SUBSCRIBE, one after the other`()
        async throws
    {
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
        await expectSubscriptions(2, of: client)
        #expect(server.unansweredCount == 1)
        server.answer(.grantedQoS1)
        #expect(try await first.value.grantedQoS == .atLeastOnce)
        #expect(await eventually { server.unansweredCount == 1 })
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
        await expectSubscriptions(2, of: client)
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(.success)
        let messages = try await second.value
        server.send("x", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["x"])
        await client.disconnect()
    }

    @Test func `a subscription that ends before its SUBSCRIBE is refused is over, and nothing is unsubscribed`()
        async throws
    {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let subscription = client.subscription(to: "a")
        #expect(await eventually { server.unansweredCount == 1 })
        let ending = Task { try await subscription.unsubscribe() }
        await expectSubscriptions(0, of: client)
        server.answer(.notAuthorized)
        _ = try await ending.value
        #expect(server.unsubscribed.isEmpty)
        await client.disconnect()
    }

    @Test func `what is asked for after a refusal waits until all answers of a read are handled`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a", qos: .exactlyOnce) }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a", qos: .atMostOnce) }
        await expectSubscriptions(2, of: client)
        let other = Task { try await client.subscribe(to: "b") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answerAll(.notAuthorized, .success)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        _ = try await other.value
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(.success)
        _ = try await second.value
        #expect(server.subscribed.filter { $0.filter == "a" }.map(\.qos) == [.exactlyOnce, .atMostOnce])
        await client.disconnect()
    }

    @Test func `two refused subscribes to a filter throw, and nothing is unsubscribed`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a") }
        await expectSubscriptions(2, of: client)
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(.notAuthorized)
        await #expect { _ = try await second.value } throws: { isRefusal($0) }
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

    @Test func `unsubscribe() returns when the filter is wanted again before UNSUBSCRIBE could be sent`() async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = client.subscription(to: "a")
        #expect(await eventually { server.unansweredCount == 1 })
        let ending = Task { try await first.unsubscribe() }
        let core = client.core
        #expect(await eventually { await core.loop.result { core.subscriptions.router.entries.isEmpty } })
        let second = client.subscription(to: "a")
        try await ending.value
        server.setWithholding(false)
        server.answer(.success)
        #expect(await eventually { second.grantedQoS == .atLeastOnce })
        #expect(server.unsubscribed.isEmpty && server.subscribed.count == 2)
        await client.disconnect()
    }

    // MARK: Declared ones

    /// What the sequence of a subscription throws.
    private func end(of messages: MQTTSubscription) async throws -> MQTTError {
        try #require(
            await #expect(throws: MQTTError.self) {
                try await withTimeout(.patience, "the end") { for try await _ in messages {} }
            })
    }

    /// Lets the client lose its connection; the next one subscribes the filter with QoS 0 only, and the sequence continues.
    private func expectContinues(
        _ messages: MQTTSubscription, of client: MQTTClient, at server: SubscribingServer
    ) async throws {
        server.send("x", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["x"])
        server.setWithholding(false)
        let count = server.subscribed.count
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { server.subscribed.count > count && client.state.isConnected })
        #expect(server.subscribed.count == count + 1 && server.subscribed.last?.qos == .atMostOnce)
        #expect(server.unsubscribed.isEmpty)
        server.send("y", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["y"])
        await client.disconnect()
    }

    /// With the same QoS and with a higher one.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atMostOnce, .atLeastOnce])
    func `a further declared subscription that is refused throws, and the first sequence continues`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = version }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let second = client.subscription(to: "a", qos: qos)
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(version.hasProperties ? .notAuthorized : .unspecifiedError)
        #expect(try await end(of: second).code == .refused)
        try await expectContinues(first, of: client, at: server)
    }

    @Test func `a further declared subscription that cannot be sent throws, and the first sequence continues`()
        async throws
    {
        let server = SubscribingServer { $0.subscriptionIdentifierAvailable = false }
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        let second = client.subscription(to: "a", qos: .atLeastOnce, properties: [.subscriptionIdentifier(7)])
        #expect(try await end(of: second).underlying is MQTTUsageError)
        try await expectContinues(first, of: client, at: server)
    }

    @Test func `before 5_0 a further declared shared subscription asks for its higher QoS`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v3_1_1 }
        try await client.connect()
        let first = try await client.subscribe(to: "$share/g/a", qos: .atLeastOnce)
        let second = client.subscription(to: "$share/g/a", qos: .exactlyOnce)
        #expect(await eventually { second.grantedQoS == .exactlyOnce })
        #expect(server.subscribed.map(\.qos) == [.atLeastOnce, .exactlyOnce])
        withExtendedLifetime(first) {}
        await client.disconnect()
    }

    /// By a call that waits, and declared.
    @Test(arguments: [true, false])
    func `a further subscription that is made without a connection and refused on the next leaves the first one alone`(
        isAwaited: Bool
    ) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client()
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        await client.suspend()
        let awaited = Task { isAwaited ? try await client.subscribe(to: "a", qos: .exactlyOnce) : nil }
        let declared = isAwaited ? nil : client.subscription(to: "a", qos: .exactlyOnce)
        await expectSubscriptions(2, of: client)
        server.setWithholding(true)
        client.resume()
        #expect(await eventually { server.unansweredCount == 1 })
        server.setWithholding(false)
        server.answer(.unspecifiedError)
        if let declared {
            #expect(try await end(of: declared).code == .refused)
        } else {
            await #expect { _ = try await awaited.value } throws: { isRefusal($0) }
        }
        #expect(await eventually { server.subscribed.map(\.qos) == [.atMostOnce, .exactlyOnce, .atMostOnce] })
        try await expectContinues(first, of: client, at: server)
    }

    @Test func `a declared subscription whose answer does not come before the connection ends is asked for again`()
        async throws
    {
        let server = SubscribingServer()
        let client = server.scriptedServer.client()
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let second = client.subscription(to: "a", qos: .atLeastOnce)
        #expect(await eventually { server.unansweredCount == 1 })
        server.setWithholding(false)
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { second.grantedQoS == .atLeastOnce })
        server.send("x", to: "a")
        for messages in [first, second] { #expect(try await messages.first(1).map(\.text) == ["x"]) }
        await client.disconnect()
    }

    @Test func `retained messages that a refused subscription wanted are not asked for by the next one`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let second = client.subscription(to: "a")
        #expect(await eventually { server.unansweredCount == 1 })
        server.setWithholding(false)
        server.answer(.notAuthorized)
        #expect(try await end(of: second).code == .refused)
        let third = try await client.subscribe(to: "a", qos: .exactlyOnce, retainHandling: .doNotSend)
        #expect(server.subscribed.map(\.retainHandling) == [.sendAtSubscribe, .sendAtSubscribe, .doNotSend])
        withExtendedLifetime((first, third)) {}
        await client.disconnect()
    }

    // MARK: Further ones that have ended

    /// By a call that is cancelled, and declared.
    @Test(arguments: [true, false])
    func `a further subscription that ends before it is refused is not asked for on the next connection`(
        isAwaited: Bool
    ) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let awaited = Task { isAwaited ? try await client.subscribe(to: "a", qos: .exactlyOnce) : nil }
        var declared = isAwaited ? nil : client.subscription(to: "a", qos: .exactlyOnce)
        #expect(await eventually { server.unansweredCount == 1 })
        awaited.cancel()
        _ = await awaited.result
        withExtendedLifetime(declared) {}
        declared = nil
        await expectSubscriptions(1, of: client)
        server.answer(.unspecifiedError)
        try await expectContinues(first, of: client, at: server)
    }

    @Test func `a further subscription that ended without a connection changes nothing on the next one`() async throws {
        let server = SubscribingServer { $0.subscriptionIdentifierAvailable = false }
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        await client.suspend()
        var second: MQTTSubscription? = client.subscription(
            to: "a", qos: .atLeastOnce, properties: [.subscriptionIdentifier(7)])
        await expectSubscriptions(2, of: client)
        withExtendedLifetime(second) {}
        second = nil
        await expectSubscriptions(1, of: client)
        client.resume()
        #expect(await eventually { server.subscribed.map(\.qos) == [.atMostOnce, .atMostOnce] })
        try await expectContinues(first, of: client, at: server)
    }

    @Test func `a refusal of what only a cancelled subscribe asked for leaves the first sequence alone`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        await client.suspend()
        let second = Task { try await client.subscribe(to: "a", qos: .exactlyOnce) }
        await expectSubscriptions(2, of: client)
        server.setWithholding(true)
        client.resume()
        #expect(await eventually { server.unansweredCount == 1 })
        second.cancel()
        await #expect { _ = try await second.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        server.setWithholding(false)
        server.answer(.unspecifiedError)
        #expect(await eventually { server.subscribed.map(\.qos) == [.atMostOnce, .exactlyOnce, .atMostOnce] })
        try await expectContinues(first, of: client, at: server)
    }
}
