import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite("Client: subscriptions before messages", .turns)
struct SubscribingFirstTests {
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a client that subscribes to what it publishes receives every message over lost connections`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.version = version
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(2)
        }
        let messages = try await client.subscribe(to: "own/#", qos: .atLeastOnce)
        var received: [String] = []
        for number in 0..<200 {
            await bench.broker.dropAllConnections()
            // Never `noMatchingSubscribers`, which 5.0 returns for a message that no subscription matches.
            #expect(try await client.publish("\(number)", to: "own/topic", qos: .atLeastOnce) == .success)
            // The one before may come twice: its acknowledgement may have been lost.
            while received.last != "\(number)" { received += try await messages.first(1).compactMap(\.text) }
        }
        #expect(Set(received).count == 200)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a message published as soon as CONNACK arrived comes to the client's own subscription`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let messages = try await client.subscribe(to: "own")
        // Before the client itself has reacted to CONNACK.
        let eager = EagerPublisher { try? client.tryPublish(MQTTOutgoingMessage(Array("eager".utf8), to: "own")) }
        _ = client.core.link.tap { eager }
        await bench.cut()
        #expect(try await messages.first(1).first?.text == "eager")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `messages of every QoS that are published before SUBACK leave after it, in their order`() async throws {
        let held = Mutex<ScriptedServer.Step?>(nil)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe):
                if step.connection == 1 {
                    step.perform { machine in
                        try? machine.engine.acknowledgeSubscribe(
                            subscribe.packetID, codes: [.success], at: MonotonicClock.now)
                    }
                } else {
                    held.withLock { $0 = step }
                }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            // The SUBACK is withheld for as long as the test takes.
            $0.requestTimeout = .patience
        }
        var frames = client.inspect().makeAsyncIterator()
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        server.link?.dropConnection()
        #expect(await eventually { held.withLock { $0 != nil } && client.state.isConnected })
        #expect(try client.tryPublish(MQTTOutgoingMessage([0], to: "t")))
        try await client.publish([1], to: "t")
        try await client.publish([2, 3].map { MQTTOutgoingMessage([$0], to: "t", qos: .atMostOnce) }).check()
        async let acknowledged = client.publish([4], to: "t", qos: .atLeastOnce)
        let step = try #require(held.withLock { $0 })
        guard case .subscribeReceived(let subscribe) = step.event else { return }
        step.perform { machine in
            try? machine.engine.acknowledgeSubscribe(subscribe.packetID, codes: [.success], at: MonotonicClock.now)
        }
        #expect(try await acknowledged == .success)
        var sent: [[UInt8]] = []
        var subacks = 0
        while let frame = await frames.next() {
            if case .suback = frame.packet { subacks += 1 }
            guard case .publish(let publish) = frame.packet else { continue }
            #expect(subacks == 2)
            sent.append(publish.payload)
            if publish.payload == [4] { break }
        }
        #expect(Array(sent.prefix(4)) == [[0], [1], [2], [3]])
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    @Test func `a message of QoS 0 that waits behind a full queue before SUBACK fails when the connection ends`()
        async throws
    {
        let isHeld = Mutex(false)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived where step.connection < 3: step.accept()
            case .subscribeReceived(let subscribe) where step.connection == 1:
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: [.success], at: MonotonicClock.now)
                }
            case .subscribeReceived: isHeld.withLock { $0 = true }
            default: break
            }
        }
        let client = server.client {
            $0.requestTimeout = .patience
            $0.connectTimeout = .patience
            $0.maximumQueuedMessages = 1
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        server.link?.dropConnection()
        #expect(await eventually { isHeld.withLock { $0 } && client.state.isConnected })
        async let queued = client.publish([1], to: "t", qos: .atLeastOnce)
        #expect(await eventually { client.backlog.queuedMessages == 1 })
        let waiting = Task { try await client.publish([2], to: "t") }
        let array = Task { await client.publish([MQTTOutgoingMessage([3], to: "t", qos: .atMostOnce)]) }
        try await Task.sleep(for: .milliseconds(100))
        server.link?.dropConnection()
        // The third connection is not accepted for as long as the test takes.
        await #expect { try await waiting.value } throws: { ($0 as? MQTTError)?.code == .notConnected }
        await #expect { try await array.value.check() } throws: { ($0 as? MQTTError)?.code == .notConnected }
        withExtendedLifetime(messages) {}
        await client.disconnect()
        _ = try? await queued
    }

    @Test func `a SUBACK that does not come after a reconnect ends the connection, and the subscription continues`()
        async throws
    {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe) where step.connection != 2:
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: subscribe.subscriptions.map { _ in .success },
                        at: clock.loop.now)
                }
            default: break
            }
        }
        let client = server.client {
            $0.requestTimeout = .seconds(3)
            $0.version = .v5_0
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        var events = client.events.makeAsyncIterator()
        server.link?.dropConnection()
        while server.connectionCount < 2 { await clock.advance(by: .milliseconds(50)) }
        // It waits in the queue of a connection that ends, and leaves with the one after that.
        async let published = client.publish("x", to: "b", qos: .atLeastOnce)
        #expect(await eventually { client.backlog.queuedMessages == 1 })
        #expect(server.connectionCount == 2)
        while server.connectionCount < 3 { await clock.advance(by: .seconds(1)) }
        #expect(try await published == .success)
        var reasons: [MQTTError.Code] = []
        var resubscribed = false
        while !resubscribed, let event = await events.next() {
            if case .stateChanged(.waiting(_, _, after: let error)) = event { reasons.append(error.code) }
            if case .resubscribed("a", _) = event { resubscribed = true }
        }
        #expect(reasons == [.connectionLost, .timedOut])
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    @Test func `QoS 0 messages that wait for SUBACK are bounded, and their publishers wait`() async throws {
        let held = Mutex<ScriptedServer.Step?>(nil)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe):
                if step.connection == 2 { return held.withLock { $0 = step } }
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: [.success], at: MonotonicClock.now)
                }
            default: break
            }
        }
        let client = server.client {
            $0.maximumQueuedMessages = 4
            $0.requestTimeout = .patience
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        server.link?.dropConnection()
        #expect(await eventually { held.withLock { $0 != nil } && client.state.isConnected })
        for number in 0..<4 { #expect(try client.tryPublish(MQTTOutgoingMessage([UInt8(number)], to: "t"))) }
        #expect(try !client.tryPublish(MQTTOutgoingMessage([4], to: "t")))
        async let one = client.publish([5], to: "t")
        async let many: Void = client.publish((6..<20).map { MQTTOutgoingMessage([$0], to: "t", qos: .atMostOnce) })
            .check()
        let step = try #require(held.withLock { $0 })
        guard case .subscribeReceived(let subscribe) = step.event else { return }
        step.perform { machine in
            try? machine.engine.acknowledgeSubscribe(subscribe.packetID, codes: [.success], at: MonotonicClock.now)
        }
        #expect(try await one == .success)
        try await many
        #expect(client.counters.messagesSent == 19)
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    // MARK: Refused and late answers

    /// A client with a subscription that is granted, and a further one of the same filter that the next connection refuses;
    /// that asks for the filter again, and has no answer yet.
    private func refused(
        at server: SubscribingServer, _ change: (inout MQTTConfiguration) -> Void
    ) async throws -> (client: MQTTClient, messages: MQTTSubscription) {
        let client = server.scriptedServer.client(["mqtt://scripted"], change)
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atMostOnce)
        await client.suspend()
        let further = client.subscription(to: "a", qos: .exactlyOnce)
        try await client.enqueue(MQTTOutgoingMessage("x", to: "a"))
        server.setWithholding(true)
        client.resume()
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(.unspecifiedError)
        #expect(await eventually { server.unansweredCount == 1 })
        #expect(server.subscribed.map(\.qos) == [.atMostOnce, .exactlyOnce, .atMostOnce])
        withExtendedLifetime(further) {}
        return (client, messages)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `messages also wait for a filter that is asked for again after a refusal`(version: MQTTVersion) async throws {
        let server = SubscribingServer()
        let (client, messages) = try await refused(at: server) {
            $0.version = version
            $0.requestTimeout = .patience
        }
        #expect(client.counters.messagesSent == 0)
        server.answer(.success)
        #expect(await eventually { client.counters.messagesSent == 1 })
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    @Test func `a sequence whose filter is asked for again without an answer continues on the next connection`()
        async throws
    {
        let clock = try ManualClock()
        let server = SubscribingServer(clock: clock)
        let (client, messages) = try await refused(at: server) { $0.requestTimeout = .seconds(50) }
        server.setWithholding(false)
        for _ in 0..<20 where server.scriptedServer.connectionCount < 3 { await clock.advance(by: .seconds(10)) }
        #expect(await eventually { server.subscribed.count == 4 && client.state.isConnected })
        #expect(server.subscribed.last?.qos == .atMostOnce)
        server.send("x", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["x"])
        await client.disconnect()
    }

    @Test func `a declared subscription outlives a late first SUBACK also where a call waits for the same filter`()
        async throws
    {
        let clock = try ManualClock()
        let held = Mutex<ScriptedServer.Step?>(nil)
        let isAsked = Mutex(false)
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived where step.connection == 1: held.withLock { $0 = step }
            case .connectReceived: step.accept()
            case .subscribeReceived where step.connection == 1: isAsked.withLock { $0 = true }
            case .subscribeReceived(let subscribe):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: [.success], at: MonotonicClock.now)
                }
            default: break
            }
        }
        let client = server.client { $0.requestTimeout = .seconds(50) }
        let declared = client.subscription(to: "a", qos: .atMostOnce)
        await client.start()
        let awaited = Task { try await client.subscribe(to: "a", qos: .atMostOnce) }
        let core = client.core
        #expect(
            await eventually {
                let entries = await core.loop.result {
                    core.subscriptions.router.orderedEntries.map(\.value.routes.count)
                }
                return entries == [2] && held.withLock { $0 != nil }
            })
        held.withLock { $0 }?.accept()
        #expect(await eventually { isAsked.withLock { $0 } })
        for _ in 0..<20 where server.connectionCount < 2 { await clock.advance(by: .seconds(10)) }
        await #expect { _ = try await awaited.value } throws: { ($0 as? MQTTError)?.code == .timedOut }
        #expect(await eventually { declared.grantedQoS == .atMostOnce })
        await client.disconnect()
    }
}

/// Publishes once, at the moment at which CONNACK has been read and not yet acted on.
private final class EagerPublisher: LinkTap {
    private let publish: @Sendable () -> Bool?

    init(_ publish: @escaping @Sendable () -> Bool?) { self.publish = publish }

    func sent(_ bytes: RawSpan) {}

    func received(_ bytes: RawSpan) {
        if bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self) == 0x20 { #expect(publish() == true) }
    }
}
