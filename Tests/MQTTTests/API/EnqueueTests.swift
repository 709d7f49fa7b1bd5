import ClientTestSupport
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

@Suite("Client: enqueueing", .turns)
struct EnqueueTests {
    private func receiver(_ bench: Bench) async throws -> (MQTTClient, MQTTSubscription) {
        let client = try await bench.connected()
        return (client, try await client.subscribe(to: "#", qos: .exactlyOnce))
    }

    @Test(arguments: [false, true])
    func `takes messages before the first connection, and sends them in order`(stored: Bool) async throws {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        let client = bench.client("q") { if stored { $0.sessionStore = MemorySessionStore() } }
        for number in 0..<100 {
            try await client.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: "a", qos: .exactlyOnce))
        }
        try await client.connect()
        #expect(try await messages.first(100).map(\.text) == (0..<100).map { "\($0)" })
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test func `a full queue refuses, or lets the oldest go and says so`() async throws {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        let strict = bench.client { $0.maximumQueuedMessages = 3 }
        for number in 0..<3 { try await strict.enqueue(MQTTOutgoingMessage([UInt8(number)], to: "s")) }
        await #expect { try await strict.enqueue(MQTTOutgoingMessage([3], to: "s")) } throws: {
            ($0 as? MQTTError)?.code == .queueFull
        }
        let lossy = bench.client {
            $0.maximumQueuedMessages = 3
            $0.queueOverflow = .dropOldest
        }
        var events = lossy.events.makeAsyncIterator()
        for number in 0..<5 { try await lossy.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: "l")) }
        for _ in 0..<2 {
            guard case .undelivered(let error)? = await events.next() else {
                Issue.record("another event")
                return
            }
            #expect(error.code == .queueFull)
        }
        try await lossy.connect()
        #expect(try await messages.first(3).map(\.text) == ["2", "3", "4"])
        await lossy.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test func `a full queue keeps the newest message of each topic where that is wanted`() async throws {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        let client = bench.client {
            $0.maximumQueuedMessages = 3
            $0.queueOverflow = .newestPerTopic
        }
        for (number, topic) in ["a", "b", "c", "b", "b", "d", "a"].enumerated() {
            try await client.enqueue(MQTTOutgoingMessage("\(number)", to: topic))
        }
        try await client.connect()
        // Topic d had no message: the oldest of all, that to a, gave way; then that to c did for a.
        #expect(try await messages.first(3).map { "\($0.topic)\($0.text ?? "")" } == ["b4", "d5", "a6"])
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a message whose time to live is over is not sent, and reported`(version: MQTTVersion) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let receiver = MQTTClient(try broker.mqttURL, clientID: "receiver", clock: clock)
        try await receiver.connect()
        var messages = try await receiver.subscribe(to: "#").makeAsyncIterator()
        var configuration = MQTTConfiguration(clientID: "sensor")
        configuration.version = version
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        var events = client.events.makeAsyncIterator()
        var message = MQTTOutgoingMessage("old", to: "a")
        message.timeToLive = .seconds(30)
        try await client.enqueue(message)
        await clock.advance(by: .seconds(31))
        message.payload = Array("new".utf8)
        try await client.enqueue(message)
        try await client.connect()
        #expect(try await messages.next()?.text == "new")
        while let event = await events.next() {
            guard case .undelivered(let error) = event else { continue }
            #expect(error.code == .expired)
            break
        }
        await client.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `a message of QoS 0 that waits behind others is as old as its publish`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let receiver = MQTTClient(try broker.mqttURL, clientID: "receiver", clock: clock)
        try await receiver.connect()
        var messages = try await receiver.subscribe(to: "#").makeAsyncIterator()
        broker.changeFaults { $0.withholdsAcknowledgements = true }
        var configuration = MQTTConfiguration(clientID: "sensor")
        (configuration.keepAlive, configuration.acknowledgementTimeout) = (.zero, nil)
        (configuration.maximumInFlight, configuration.queuesQoS0WhileOffline) = (1, true)
        (configuration.cleanStart, configuration.sessionExpiry) = (false, .seconds(1000))
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        await client.suspend()
        // The window has room for the first; the others wait behind it when there is a connection.
        for text in ["first", "second"] { try await client.enqueue(MQTTOutgoingMessage(text, to: "a")) }
        try await client.publish(MQTTOutgoingMessage("third", to: "a", qos: .atMostOnce))
        client.resume()
        #expect(try await messages.next()?.text == "first")
        await clock.advance(by: .seconds(60))
        var young = MQTTOutgoingMessage("fourth", to: "a", qos: .atMostOnce)
        young.timeToLive = .seconds(30)
        try await client.publish(young)
        #expect(client.backlog.queuedMessages == 3)
        broker.changeFaults { $0.withholdsAcknowledgements = false }
        await client.suspend()
        client.resume()
        var texts: [String?] = []
        repeat {
            texts.append(try await messages.next()?.text)
            if texts.last == "third" { try await client.publish("last", to: "a", qos: .atLeastOnce) }
        } while texts.last != "last"
        #expect(texts == ["first", "second", "third", "fourth", "last"])
        await client.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `a publisher that gives way to newer messages hears of it`() async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .dropOldest
        }
        try await client.connect()
        await client.suspend()
        let waiting = Task { () -> MQTTError.Code? in
            do throws(MQTTError) {
                try await client.publish("old", to: "a", qos: .atLeastOnce)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await eventually { client.backlog.queuedMessages == 1 })
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        #expect(await waiting.value == .queueFull)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [false, true])
    func `waiting for room lasts until there is some`(stored: Bool) async throws {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        let client = bench.client("w") {
            $0.maximumQueuedMessages = 10
            $0.queueOverflow = .wait
            if stored { $0.sessionStore = MemorySessionStore() }
        }
        try await client.connect()
        await client.suspend()
        let done = Atomic(0)
        let producing = Task {
            for number in 0..<200 {
                if number % 2 == 0 {
                    try await client.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: "a", qos: .exactlyOnce))
                } else {
                    let payload = Array("\(number)".utf8)
                    try await client.publish(
                        [MQTTOutgoingMessage(payload, to: "a", qos: .exactlyOnce)]).check()
                }
                done.add(1, ordering: .relaxed)
            }
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(done.load(ordering: .relaxed) < 20)
        try await client.connect()
        #expect(try await messages.first(200).map(\.text) == (0..<200).map { "\($0)" })
        try await producing.value
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test func `discarding the session makes room for who waits for it`() async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .wait
        }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        let waiting = Task {
            try await withTimeout(.patience, "the wait for room") {
                try await client.enqueue(MQTTOutgoingMessage([2], to: "a"))
            }
        }
        try await Task.sleep(for: .milliseconds(20))
        try await client.discardSession()
        _ = try await waiting.value
        #expect(client.backlog.queuedMessages == 1)
        await bench.stop()
    }

    @Test func `waiting for room ends with the task`() async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .wait
        }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        let waiting = Task { () -> MQTTError.Code? in
            do throws(MQTTError) {
                try await client.enqueue(MQTTOutgoingMessage([2], to: "a"))
                return nil
            } catch {
                return error.code
            }
        }
        try await Task.sleep(for: .milliseconds(20))
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        await bench.stop()
    }

    @Test func `QoS 0 is refused, or waits for a connection where that is on`() async throws {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        let client = bench.client { $0.queuesQoS0WhileOffline = true }
        await #expect { try await client.enqueue(MQTTOutgoingMessage([1], to: "a", qos: .atMostOnce)) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        // Before `connect()` only `enqueue` waits.
        await #expect { try await client.publish("too early", to: "a") } throws: {
            ($0 as? MQTTError)?.code == .notConnected
        }
        try await client.connect()
        await client.suspend()
        try await client.publish("early", to: "a")
        client.resume()
        #expect(try await messages.first(1).first?.text == "early")
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test func `a QoS 0 message that waited for a connection does not end the wait of another publisher`() async throws
    {
        let bench = try await Bench()
        let (other, messages) = try await receiver(bench)
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = try await bench.connected { $0.queuesQoS0WhileOffline = true }
        bench.setNetwork(up: false)
        bench.damage(client) { $0.bytesUntilCut = 0 }
        _ = try? await client.publish("cuts", to: "b")
        #expect(await eventually { !client.state.isConnected })
        try await client.publish("one", to: "a")
        let publishing = Task { try await client.publish("two", to: "a", qos: .atLeastOnce) }
        #expect(await eventually { client.backlog.queuedMessages == 2 })
        bench.setNetwork(up: true)
        #expect(try await messages.first(2).map(\.text) == ["one", "two"])
        publishing.cancel()
        await #expect { try await publishing.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }
}
