import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// What the tasks have read that follow one another.
private final class RestartedReading: Sendable {
    let received = Mutex<[Int]>([])
    let done = PendingCall<Void>()

    func read(_ messages: MQTTSubscription, upTo count: Int) async {
        do {
            for try await message in messages {
                let isLast = received.withLock { received in
                    received.append(Int(message.text ?? "") ?? -1)
                    return received.count == count
                }
                if isLast { done.end(()) }
            }
        } catch {
            #expect(error.code == .cancelled, "\(error)")
        }
    }
}

@Suite("Client: subscribing", .turns)
struct SubscribeTests {
    @Test func `a loop may be left and entered again without losing a message`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        try await client.publish((0..<100).map { .init(Array("\($0)".utf8), to: "a", qos: .atLeastOnce) })
            .check()
        var received: [String?] = []
        for count in [1, 2, 3, 94] { received += try await messages.first(count).map(\.text) }
        #expect(received == (0..<100).map { "\($0)" })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `of two subscriptions to one filter each sees every message`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        var one = try await client.subscribe(to: "a").makeAsyncIterator()
        var other = try await client.subscribe(to: "a", retainHandling: .doNotSend).makeAsyncIterator()
        try await client.publish((0..<20).map { .init(Array("\($0)".utf8), to: "a", qos: .atLeastOnce) })
            .check()
        for number in 0..<20 {
            #expect(try await one.next()?.text == "\(number)")
            #expect(try await other.next()?.text == "\(number)")
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a task that is restarted while the old one unwinds loses nothing`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let sender = try await bench.connected("sender")
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        let count = 2_000
        let notes = RestartedReading()
        var reading = Task { await notes.read(messages, upTo: count) }
        var old: [Task<Void, Never>] = []
        for start in stride(from: 0, to: count, by: 20) {
            try await sender.publish(
                (start..<start + 20).map { .init(Array("\($0)".utf8), to: "a", qos: .atLeastOnce) }
            ).check()
            if start % 40 == 0 { reading.cancel() }
            old.append(reading)
            reading = Task { await notes.read(messages, upTo: count) }
        }
        await notes.done.answer()
        // Of two tasks the older one may note its message after the newer one has noted the next.
        #expect(notes.received.withLock { $0 }.sorted() == Array(0..<count))
        await client.disconnect()
        for task in old + [reading] { await task.value }
        await sender.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a filter that a subscription names twice is subscribed once, and its refusal ends the subscription`(
        version: MQTTVersion
    ) async throws {
        let asked = Mutex<[String]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet):
                asked.withLock { $0 += packet.subscriptions.map(\.filter) }
                step.perform { machine in
                    let reason = version == .v5_0 ? MQTTReasonCode.notAuthorized : .unspecifiedError
                    let codes = packet.subscriptions.map { $0.filter == "a" ? reason : .success }
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            default: break
            }
        }
        let client = server.client { $0.version = version }
        let twice = [MQTTSubscriptionRequest](repeating: .init(filter: "a"), count: 2)
        let refused = client.subscription(to: twice)
        let half = client.subscription(to: twice + [.init(filter: "b")])
        try await client.connect()
        let isEnded = Atomic(false)
        let reading = Task {
            do { for try await _ in refused {} } catch { isEnded.store(true, ordering: .relaxed) }
        }
        #expect(await eventually { isEnded.load(ordering: .relaxed) })
        #expect(asked.withLock { $0.sorted() } == ["a", "b"])
        // A call gets an answer for each of its filters.
        let both = try await client.subscribe(to: twice + [.init(filter: "c")])
        #expect(both.reasonCodes.map(\.isError) == [true, true, false])
        await client.disconnect()
        reading.cancel()
        // The other filter of this one was granted.
        var count = 0
        for try await _ in half { count += 1 }
        #expect(count == 0)
    }

    @Test func `equal filters share one subscription at the server until the last one goes`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let other = try await bench.connected()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        let second = try await client.subscribe(to: "a", qos: .atLeastOnce)
        #expect(first.grantedQoS == .atMostOnce && second.grantedQoS == .atLeastOnce)
        try await other.publish("x", to: "a", qos: .atLeastOnce)
        #expect(try await first.first(1).first?.text == "x")
        #expect(try await second.first(1).first?.qos == .atLeastOnce)
        try await first.unsubscribe()
        try await other.publish("y", to: "a", qos: .atLeastOnce)
        #expect(try await second.first(1).first?.text == "y")
        await client.disconnect()
        await other.disconnect()
        await bench.stop()
    }

    @Test func `topics are told apart by their bytes`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let composed = try await client.subscribe(to: "caf\u{E9}")
        let decomposed = try await client.subscribe(to: "cafe\u{301}")
        try await client.publish("decomposed", to: "cafe\u{301}", qos: .atLeastOnce)
        try await client.publish("composed", to: "caf\u{E9}", qos: .atLeastOnce)
        #expect(try await composed.first(1).first?.text == "composed")
        #expect(try await decomposed.first(1).first?.text == "decomposed")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `releasing the last copy unsubscribes`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let marker = try await client.subscribe(to: "end")
        do {
            let messages = try await client.subscribe(to: "a")
            try await client.publish("x", to: "a", qos: .atLeastOnce)
            #expect(try await messages.first(1).count == 1)
        }
        #expect(
            await eventually {
                let before = bench.broker.statistics.messagesOut
                _ = try? await client.publish("y", to: "a", qos: .atLeastOnce)
                _ = try? await client.publish("z", to: "end", qos: .atLeastOnce)
                _ = try? await marker.first(1)
                return bench.broker.statistics.messagesOut == before + 1
            })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `unsubscribing ends the sequence after what has arrived`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        #expect(await eventually { client.counters.messagesReceived == 1 })
        try await messages.unsubscribe()
        var received: [String?] = []
        for try await message in messages { received.append(message.text) }
        #expect(received == ["x"])
        await client.disconnect()
        await bench.stop()
    }

    /// Before it waits or while it does.
    @Test(arguments: [true, false])
    func `a cancelled task that unsubscribes sends it and does not wait`(beforehand: Bool) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let sent = client.counters.bytesSent
        let unsubscribing = Task {
            if beforehand { withUnsafeCurrentTask { $0?.cancel() } }
            try await messages.unsubscribe()
        }
        #expect(await eventually { client.counters.bytesSent > sent })
        unsubscribing.cancel()
        await #expect { try await unsubscribing.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        #expect(bench.broker.statistics.messagesOut == 0)
        #expect(try await messages.first(1).isEmpty)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `disconnecting ends all sequences in order, and the client may connect again`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        let reading = Task {
            var count = 0
            for try await _ in messages { count += 1 }
            return count
        }
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        #expect(await eventually { client.counters.messagesReceived == 1 })
        await client.disconnect()
        #expect(try await reading.value == 1)
        try await client.connect()
        let again = try await client.subscribe(to: "a")
        try await client.publish("y", to: "a", qos: .atLeastOnce)
        #expect(try await again.first(1).first?.text == "y")
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a refused subscription throws with the server's reason`(version: MQTTVersion) async throws {
        let bench = try await Bench { $0.faults.refusedFilters = ["secret/#"] }
        let client = try await bench.connected { $0.version = version }
        await #expect { _ = try await client.subscribe(to: "secret/#") } throws: {
            let error = $0 as? MQTTError
            return error?.code == .refused && error?.reasonCode?.isError == true
        }
        // The others are not touched.
        let open = try await client.subscribe(to: "open")
        try await client.publish("x", to: "open", qos: .atLeastOnce)
        #expect(try await open.first(1).count == 1)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [false, true])
    func `cancelling a subscribe ends the wait, also when the task was cancelled before`(early: Bool) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let task = Task { () -> MQTTError.Code? in
            if early { withUnsafeCurrentTask { $0?.cancel() } }
            do throws(MQTTError) {
                _ = try await client.subscribe(to: "a")
                return nil
            } catch {
                return error.code
            }
        }
        if !early {
            try await Task.sleep(for: .milliseconds(50))
            task.cancel()
        }
        #expect(await task.value == .cancelled)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a cancelled loop throws that it was cancelled`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        let task = Task { () -> MQTTError.Code? in
            do throws(MQTTError) {
                for try await _ in messages {}
                return nil
            } catch {
                return error.code
            }
        }
        try await Task.sleep(for: .milliseconds(20))
        task.cancel()
        #expect(await task.value == .cancelled)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a client that is dropped without a word is gone from the server, and its will is published`()
        async throws
    {
        let bench = try await Bench()
        let watcher = try await bench.connected()
        let wills = try await watcher.subscribe(to: "will")
        var client: MQTTClient? = try await bench.connected {
            $0.will = MQTTWill(Array("gone".utf8), to: "will", qos: .atLeastOnce)
        }
        #expect(client != nil)
        client = nil
        #expect(try await wills.first(1).first?.text == "gone")
        #expect(await eventually { bench.broker.connectionCount == 1 })
        await watcher.disconnect()
        await bench.stop()
    }
}
