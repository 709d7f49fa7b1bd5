import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// What is left of a request that failed.
@Suite("Client: failed requests", .turns)
struct FailedRequestTests {
    @Test(arguments: [0, 60])
    func `disconnecting unsubscribes the topic of responses from a session that the server keeps`(
        sessionExpiry: Int64
    ) async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client {
            $0.version = .v5_0
            $0.sessionExpiry = .seconds(sessionExpiry)
        }
        try await client.connect()
        let kept = try await client.subscribe(to: "kept")
        let asking = Task { try await client.request("?", to: "nobody", timeout: .seconds(600)) }
        #expect(await eventually { server.subscribed.count == 2 && server.scriptedServer.link != nil })
        await client.suspend()
        #expect(server.unsubscribed.isEmpty)
        client.resume()
        #expect(await eventually { client.state.isConnected })
        let topic = try #require(server.subscribed.map(\.filter).first { $0.hasPrefix("responses/") })
        await client.disconnect()
        _ = await asking.result
        #expect(await eventually { sessionExpiry == 0 || !server.unsubscribed.isEmpty })
        #expect(server.unsubscribed == (sessionExpiry == 0 ? [] : [topic]))
        _ = kept
    }

    @Test(arguments: [false, true])
    func `a request ends at its timeout and is never sent, while there is no connection after an earlier request`(
        byTopics: Bool
    ) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        let client = MQTTClient(
            broker.urls.mqtt ?? "", clientID: "asker", configuration: configuration, clock: clock)
        try await client.connect()
        let questions = try await client.subscribe(to: "echo")
        let answering = Task {
            for try await question in questions {
                if byTopics {
                    try await client.publish("yes", to: "answer")
                } else {
                    try await client.reply(to: question, with: "yes")
                }
            }
        }
        @Sendable func ask() async throws -> String? {
            byTopics
                ? try await client.request("?", to: "echo", responseTopic: "answer", timeout: .seconds(2)).text
                : try await client.request("?", to: "echo", timeout: .seconds(2)).text
        }
        #expect(try await ask() == "yes")
        broker.changeFaults { $0.refusesConnections = true }
        await broker.dropConnection(of: "asker")
        for await state in client.states where !state.isConnected { break }
        let isOver = Mutex(false)
        let asking = Task {
            defer { isOver.withLock { $0 = true } }
            return try await ask()
        }
        // Its time begins with the call.
        while !isOver.withLock({ $0 }) { await clock.advance(by: .milliseconds(500)) }
        let error = await #expect(throws: MQTTError.self) { try await asking.value }
        #expect(error?.code == .timedOut)
        #expect(await eventually { client.backlog.queuedMessages == 0 })
        answering.cancel()
        await client.disconnect()
        await broker.stop()
    }

    @Test(arguments: [false, true], [QoS.atLeastOnce, .exactlyOnce])
    func `a request that no client received ends at once, unless its topics tell the responses apart`(
        byTopics: Bool, qos: QoS
    ) async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: [.grantedQoS1], at: clock.loop.now)
                }
            default: break
            }
        }
        let isAcknowledged = Mutex(false)
        server.remark { message in
            isAcknowledged.withLock { $0 = true }
            let answer = MQTTPacket.Acknowledgement(packetID: message.packetID, reasonCode: .noMatchingSubscribers)
            return [qos == .atLeastOnce ? .puback(answer) : .pubrec(answer)]
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let asking = Task {
            byTopics
                ? try await client.request("?", to: "ask", responseTopic: "answer", qos: qos, timeout: .seconds(2))
                : try await client.request("?", to: "ask", qos: qos, timeout: .seconds(2))
        }
        if byTopics {
            #expect(await eventually { isAcknowledged.withLock { $0 } })
            await clock.advance(by: .seconds(2))
        }
        let error = await #expect(throws: MQTTError.self) { try await asking.value }
        #expect(error?.code == (byTopics ? .timedOut : .refused))
        #expect(error?.reasonCode == (byTopics ? nil : .noMatchingSubscribers))
        #expect(byTopics || error?.message.contains("none has subscribed to 'ask'") == true)
        await client.disconnect()
    }

    @Test(arguments: [false, true])
    func `a request that names no timeout has that of the configuration`(byTopics: Bool) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        configuration.requestTimeout = .seconds(50)
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        // Without it the server would refuse the request.
        let silent = try await client.subscribe(to: "ask")
        let arrivals = broker.arrivals()
        let isOver = Atomic(false)
        let asking = Task {
            defer { isOver.store(true, ordering: .releasing) }
            return byTopics
                ? try await client.request("?", to: "ask", responseTopic: "answer")
                : try await client.request("?", to: "ask")
        }
        _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        await clock.advance(by: .seconds(49))
        let isEarly = isOver.load(ordering: .acquiring)
        #expect(!isEarly)
        await clock.advance(by: .seconds(1))
        let error = await #expect(throws: MQTTError.self) { try await asking.value }
        #expect(error?.code == .timedOut)
        withExtendedLifetime(silent) {}
        await client.disconnect()
        await broker.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a subscribe that times out unsubscribes what the server may have granted`(version: MQTTVersion) async throws {
        let clock = try ManualClock()
        let unsubscribed = Mutex<[[String]]>([])
        let isAsked = Mutex(false)
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet) where packet.subscriptions.contains { $0.filter == "granted" }:
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: [.grantedQoS1], at: clock.loop.now)
                }
            case .subscribeReceived: isAsked.withLock { $0 = true }
            case .unsubscribeReceived(let packet): unsubscribed.withLock { $0.append(packet.filters) }
            default: break
            }
        }
        let client = server.client {
            $0.version = version
            $0.requestTimeout = .seconds(5)
        }
        try await client.connect()
        let granted = try await client.subscribe(to: "granted")
        let subscribing = Task { try await client.subscribe(to: "never/answered") }
        // Its time begins with the packet.
        #expect(await eventually { isAsked.withLock { $0 } })
        await clock.advance(by: .seconds(5))
        let error = await #expect(throws: MQTTError.self) { try await subscribing.value }
        #expect(error?.code == .timedOut)
        await clock.advance(by: .zero)
        #expect(unsubscribed.withLock { $0 } == [["never/answered"]])
        withExtendedLifetime(granted) {}
        await client.disconnect()
    }

    @Test func `an UNSUBSCRIBE that is not answered in time is repeated when its session is resumed`() async throws {
        let clock = try ManualClock()
        let unsubscribed = Mutex<[[String]]>([])
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept(sessionPresent: step.connection > 1)
            case .subscribeReceived(let packet):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: [.grantedQoS1], at: clock.loop.now)
                }
            case .unsubscribeReceived(let packet): unsubscribed.withLock { $0.append(packet.filters) }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v3_1_1
            $0.cleanStart = false
            $0.requestTimeout = .seconds(5)
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        let leaving = Task { try await messages.unsubscribe() }
        #expect(await eventually { unsubscribed.withLock { $0.count } == 1 })
        await clock.advance(by: .seconds(5))
        let error = await #expect(throws: MQTTError.self) { _ = try await leaving.value }
        #expect(error?.code == .timedOut)
        server.link?.dropConnection()
        await clock.advance(by: .seconds(5))
        #expect(server.connectionCount == 2)
        #expect(unsubscribed.withLock { $0 } == [["a"], ["a"]])
        await client.disconnect()
    }

    @Test func `after a discard that the store refused, later connections continue their session`() async throws {
        let bench = try await Bench()
        let store = StuckStore()
        let client = bench.client("keeper") {
            $0.version = .v3_1_1
            $0.cleanStart = false
            $0.sessionStore = store
        }
        try await client.connect()
        await #expect(throws: MQTTError.self) { try await client.discardSession() }
        #expect(!store.isOpen.withLock { $0 }, "another client can use it")
        try await client.connect()
        let subscription = try await client.subscribe(to: "a", qos: .atLeastOnce)
        await client.disconnect()
        withExtendedLifetime(subscription) {}
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var isResumed: Bool?
        while isResumed == nil, let event = await events.next() {
            if case .connected(let info) = event { isResumed = info.sessionPresent }
        }
        #expect(isResumed == true)
        await client.disconnect()
        await bench.stop()
    }
}
