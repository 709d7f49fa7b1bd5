import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingShell
import STOMP
import TestSupport
import Testing
import Transport

/// What both clients show of themselves: what waits, what was sent, and events with their times.
@Suite(.turns) struct ObservationTests {
    // MARK: What waits

    @Test func theBacklogOfMQTTNamesEachPlaceWhereMessagesWait() async throws {
        try await withMQTT { broker, client, clock in
            #expect(client.backlog == ClientBacklog(messagesInFlight: 0, outboxBytes: 0, unreadBytes: 0))
            // In flight.
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var arrivals = broker.arrivals().makeAsyncIterator()
            let publishing = Task { try await client.publish("1", to: "a", qos: .atLeastOnce) }
            #expect(await arrivals.next()?.topic == "a")
            #expect(client.backlog.messagesInFlight == 1)
            broker.changeFaults { $0.withholdsAcknowledgements = false }
            await broker.dropConnection(of: "meter")
            await clock.advance(by: .seconds(1))
            _ = try await publishing.value
            #expect(client.backlog.messagesInFlight == 0)
            // Unread, but for what the reader was waiting for.
            let received = try await client.subscribe(to: "b")
            await broker.publish("12345", to: "b")
            await clock.advance(by: .zero)
            #expect(client.backlog.unreadBytes > 0)
            var messages = received.makeAsyncIterator()
            _ = try await messages.next()
            // In the outbox.
            await broker.freeze()
            // Full for the loop too, which gets its turn each time.
            var refusals = 0
            while refusals < 10 {
                let isTaken = try client.tryPublish(MQTTOutgoingMessage([UInt8](repeating: 0, count: 300_000), to: "c"))
                refusals = isTaken ? 0 : refusals + 1
                await client.withExecutor {}
            }
            #expect(client.backlog.outboxBytes > 0)
            await broker.thaw()
            await clock.advance(by: .zero)
            #expect(client.backlog.outboxBytes == 0)
        }
    }

    @Test func `an arrival that is repeated with DUP is equal to the first one`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.cleanStart = false
        let client = try MQTTClient(broker.mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        broker.changeFaults { $0.withholdsAcknowledgements = true }
        var arrivals = broker.arrivals().makeAsyncIterator()
        let publishing = Task { try await client.publish("1", to: "a", qos: .atLeastOnce) }
        let first = await arrivals.next()
        broker.changeFaults { $0.withholdsAcknowledgements = false }
        await broker.dropConnection(of: "meter")
        await clock.advance(by: .seconds(1))
        _ = try await publishing.value
        #expect(await arrivals.next()?.packet == .mqtt(.connect))
        let second = await arrivals.next()
        #expect(first?.packet == .mqtt(.publish))
        #expect(first == second)
        #expect(Set([first, second]).count == 1)
        await client.disconnect()
        await broker.stop()
    }

    @Test func whatIsQueuedIsCountedAsSentOnceItIsWritten() async throws {
        try await withMQTT { broker, client, clock in
            try await client.publish("1", to: "a")
            try await client.publish("2", to: "a", qos: .atLeastOnce)
            _ = await client.publish(
                ["3", "4"].map { MQTTOutgoingMessage(Array($0.utf8), to: "a", qos: .atLeastOnce) })
            #expect(client.counters.messagesSent == 4)
            await client.suspend()
            for text in ["12", "345"] {
                try await client.enqueue(MQTTOutgoingMessage(text, to: "abc", qos: .exactlyOnce))
            }
            #expect(client.backlog.queuedMessages == 2)
            #expect(client.backlog.queuedBytes == 11)
            #expect(client.counters.messagesSent == 4)
            try await client.connect()
            await clock.advance(by: .zero)
            #expect(client.backlog.queuedMessages == 0)
            #expect(client.counters.messagesSent == 6)
        }
    }

    @Test func messagesWithoutASubscriptionAreRetainedInTheBacklog() async throws {
        try await withMQTT { broker, client, clock in
            let subscription = try await client.subscribe(to: "a", qos: .atLeastOnce)
            await client.disconnect()
            withExtendedLifetime(subscription) {}
            await broker.publish("1", to: "a")
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.version = .v5_0
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(600)
            let next = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
            try await next.connect()
            await clock.advance(by: .zero)
            #expect(next.backlog.unmatchedMessages == 1)
            var messages = try await next.subscribe(to: "a", qos: .atLeastOnce).makeAsyncIterator()
            #expect(try await messages.next()?.text == "1")
            await next.disconnect()
        }
    }

    @Test func theBacklogOfSTOMPNamesEachPlaceWhereFramesWait() async throws {
        try await withSTOMP { broker, client, clock in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var arrivals = broker.arrivals().makeAsyncIterator()
            let sending = Task { try await client.sendAndConfirm("1", to: "/queue/a") }
            #expect(await arrivals.next()?.topic == "/queue/a")
            #expect(client.backlog.messagesInFlight == 1)
            #expect(client.counters.messagesSent == 1)
            broker.changeFaults { $0.withholdsAcknowledgements = false }
            await broker.dropAllConnections()
            await clock.advance(by: .seconds(1))
            await #expect(throws: STOMPError.self) { try await sending.value }
            #expect(client.backlog.messagesInFlight == 0)
            let received = try await client.subscribe(to: "/queue/a")
            await clock.advance(by: .zero)
            #expect(client.backlog.unreadBytes > 0)
            var messages = received.makeAsyncIterator()
            _ = try await messages.next()
            await broker.freeze()
            let flood = Task {
                while true { try await client.send(String(repeating: "x", count: 300_000), to: "/topic/b") }
            }
            #expect(await eventually { client.backlog.outboxBytes > 0 })
            flood.cancel()
            _ = await flood.result
            await broker.thaw()
            await clock.advance(by: .zero)
            #expect(client.backlog.outboxBytes == 0)
        }
    }

    // MARK: Events

    @Test func eventsOfMQTTComeInOrderWithTheirTimes() async throws {
        let start = WallClock.milliseconds
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.credentialsProvider = { _ in nil }
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        var events = client.timedEvents.makeAsyncIterator()
        try await client.connect()
        let subscription = try await client.subscribe(to: "a/b")
        try await subscription.unsubscribe()
        await clock.advance(by: .seconds(61))
        await broker.dropConnection(of: "meter")
        await clock.advance(by: .seconds(1))
        await client.disconnect()
        var names: [String] = []
        var last = start
        while let timed = await events.next() {
            #expect(timed.time >= last)
            last = timed.time
            switch timed.event {
            case .connecting: names.append("connecting")
            case .credentialsRequested(let server): names.append("credentials for \(server.host)")
            case .connected: names.append("connected")
            case .subscribed(let filter, let code): names.append("subscribed \(filter) \(code.rawValue)")
            case .unsubscribed(let filter): names.append("unsubscribed \(filter)")
            case .pingSent: names.append("pinged")
            case .pingAnswered: names.append("answered")
            case .connectionLost(let failure): names.append("lost \(failure.code == .connectionLost)")
            default: break
            }
            if case .stateChanged(.disconnected) = timed.event { break }
        }
        let opening = ["connecting", "credentials for 127.0.0.1", "connected"]
        let middle = ["subscribed a/b 1", "unsubscribed a/b", "pinged", "answered", "lost true"]
        #expect(names == opening + middle + opening)
        #expect(last <= WallClock.milliseconds)
        await broker.stop()
    }

    @Test func eventsOfSTOMPComeInOrderWithTheirTimes() async throws {
        let start = WallClock.milliseconds
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.clientID = "worker"
        configuration.credentialsProvider = { _ in nil }
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        var events = client.timedEvents.makeAsyncIterator()
        try await client.connect()
        let subscription = try await client.subscribe(to: "/topic/a")
        try await subscription.unsubscribe()
        await clock.advance(by: .seconds(11))
        await broker.dropConnection(of: "worker")
        await clock.advance(by: .seconds(1))
        await client.disconnect()
        var names: [String] = []
        var last = start
        while let timed = await events.next() {
            #expect(timed.time >= last)
            last = timed.time
            switch timed.event {
            case .credentialsRequested: names.append("credentials")
            case .connected: names.append("connected")
            case .subscribed(let destination): names.append("subscribed \(destination)")
            case .unsubscribed(let destination): names.append("unsubscribed \(destination)")
            case .heartBeatSent where names.last != "beat": names.append("beat")
            case .connectionLost: names.append("lost")
            default: break
            }
            if case .stateChanged(.disconnected) = timed.event { break }
        }
        let opening = ["credentials", "connected"]
        #expect(names == opening + ["subscribed /topic/a", "unsubscribed /topic/a", "beat", "lost"] + opening)
        await broker.stop()
    }

    // MARK: Messages

    @Test func eachMessageOfMQTTIsReportedWhenItIsSentAcknowledgedAndReceived() async throws {
        try await withMQTT { broker, client, clock in
            let received = try await client.subscribe(to: "in", qos: .atLeastOnce)
            var events = client.messageEvents.makeAsyncIterator()
            try await client.publish("0", to: "out")
            try await client.publish("11", to: "out/1", qos: .atLeastOnce)
            try await client.publish("222", to: "out/2", qos: .exactlyOnce)
            await broker.publish("3333", to: "in")
            var messages = received.makeAsyncIterator()
            _ = try await messages.next()
            var seen: [MessageEvent] = []
            while seen.count < 6, let event = await events.next() { seen.append(event) }
            #expect(seen.map(\.step) == [.sent, .sent, .acknowledged, .sent, .acknowledged, .received])
            #expect(seen.map(\.destination) == ["out", "out/1", nil, "out/2", nil, "in"])
            #expect(seen.map(\.payloadCount) == [1, 2, 0, 3, 0, 4])
            #expect(seen[0].identifier == nil)
            #expect(seen[1].identifier != nil && seen[1].identifier == seen[2].identifier)
            #expect(seen[3].identifier != nil && seen[3].identifier == seen[4].identifier)
        }
    }

    @Test func eachMessageOfSTOMPIsReportedWhenItIsSentAcknowledgedAndReceived() async throws {
        try await withSTOMP { broker, client, clock in
            let received = try await client.subscribe(to: "/queue/in")
            var events = client.messageEvents.makeAsyncIterator()
            try await client.send("0", to: "/queue/out")
            try await client.sendAndConfirm("11", to: "/queue/out")
            await broker.send("3333", to: "/queue/in")
            var messages = received.makeAsyncIterator()
            _ = try await messages.next()
            var seen: [MessageEvent] = []
            while seen.count < 4, let event = await events.next() { seen.append(event) }
            #expect(seen.map(\.step) == [.sent, .sent, .acknowledged, .received])
            #expect(seen.map(\.destination) == ["/queue/out", "/queue/out", nil, "/queue/in"])
            #expect(seen.map(\.payloadCount) == [1, 2, 0, 4])
            #expect(seen[0].identifier == nil)
            #expect(seen[1].identifier != nil && seen[1].identifier == seen[2].identifier)
        }
    }
}
