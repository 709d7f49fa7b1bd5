import ClientTestSupport
import LoopbackBroker
import Synchronization
import TestSupport
import Testing

@testable import MQTT

extension OptionTableTests {
    /// Options of what is sent, received and kept.
    static let messageRows: [OptionRow] = [
        OptionRow("sessionStore") {
            let bench = try await Bench()
            let store = MemorySessionStore()
            let receiver = try await bench.connected()
            let messages = try await receiver.subscribe(to: "a", qos: .atLeastOnce)
            func client() -> MQTTClient {
                bench.client("stored") {
                    $0.cleanStart = false
                    $0.sessionStore = store
                }
            }
            try await client().enqueue(MQTTOutgoingMessage([1], to: "a"))
            // Another client, as after a restart.
            let second = client()
            #expect(await eventually { (try? await second.connect()) != nil })
            try await verify(messages.first(1).first?.payload.elementsEqual([1]) == true)
            await second.disconnect()
            await receiver.disconnect()
            await bench.stop()
        },
        OptionRow("maximumFiltersPerRequest") {
            let server = SubscribingServer()
            let client = server.scriptedServer.client { $0.maximumFiltersPerRequest = 3 }
            try await client.connect()
            let requests = (0..<7).map { MQTTSubscriptionRequest(filter: "f/\($0)") }
            let messages = try await client.subscribe(to: requests)
            #expect(server.requestSizes == [3, 3, 1])
            try await messages.unsubscribe()
            #expect(server.unsubscribed == requests.map(\.filter))
            await client.disconnect()
        },
        OptionRow(
            "resubscribesWithSessionPresent",
            shownBy: ResubscribingTests.`all filters are subscribed again where that is on`),
        OptionRow("maximumInFlight") {
            try await verify(inFlight { $0.maximumInFlight = 3 } == 3)
            try await verify(inFlight { _ in } == 10)
        },
        OptionRow("republishesAfterSessionLoss") {
            try await verify(codeAfterSessionLoss { _ in } == nil)
            try await verify(codeAfterSessionLoss { $0.republishesAfterSessionLoss = false } == .sessionLost)
        },
        OptionRow("outboundTopicAliasMaximum") {
            let long = try await bytesOfTenPublishes { $0.outboundTopicAliasMaximum = 0 }
            #expect(long > 10_000)
            let short = try await bytesOfTenPublishes { _ in }
            #expect(short < long / 2)
        },
        OptionRow(
            "enforcesReceiveMaximum",
            shownBy: UnclaimedMessageTests
                .`with enforcesReceiveMaximum it ends the connection, and the error says what to do`),
        OptionRow("unmatchedMessagePolicy", shownBy: UnmatchedMessageTests.`nothing is kept where that is off`),
        OptionRow(
            "unmatchedMessagePolicy.maximumMessages",
            shownBy: UnmatchedMessageTests.`count, bytes and age are bounds, and a drop is told`),
        OptionRow(
            "unmatchedMessagePolicy.maximumBytes",
            shownBy: UnmatchedMessageTests.`count, bytes and age are bounds, and a drop is told`),
        OptionRow(
            "unmatchedMessagePolicy.timeToLive",
            shownBy: UnmatchedMessageTests.`count, bytes and age are bounds, and a drop is told`),
        OptionRow(
            "queuesQoS0WhileOffline",
            shownBy: EnqueueTests.`QoS 0 is refused, or waits for a connection where that is on`),
        OptionRow(
            "queueOverflow",
            shownBy: EnqueueTests.`a full queue keeps the newest message of each topic where that is wanted`),
        OptionRow(
            "messageHook",
            shownBy: MessageHookTests.`every way to publish passes the hook once, with its outcome`),
        OptionRow("maximumPublishesPerSecond") {
            try await verify(survivesAService { $0.maximumPublishesPerSecond = 100 })
            try await verify(!survivesAService { _ in })
        },
        OptionRow("maximumPublishedBytesPerSecond") {
            try await verify(survivesAService(size: 8_192) { $0.maximumPublishedBytesPerSecond = 512 << 10 })
            try await verify(!survivesAService(size: 8_192) { _ in })
        },
        OptionRow(
            "maximumQueuedMessages",
            shownBy: EnqueueTests.`a full queue refuses, or lets the oldest go and says so`),
        OptionRow(
            "maximumQueuedBytes",
            shownBy: LimitTests
                .`a full queue, also for QoS 0 where that is queued, and one message above the queue's bytes`),
        OptionRow(
            "maximumOutboxBytes",
            shownBy: PublishTests.`a full outbox makes the publisher wait, and a try fails at once`),
        OptionRow(
            "maximumUnreadBytes",
            shownBy: SlowConsumerTests
                .`reading pauses when all subscriptions together have too much unread, and nothing is lost`),
    ]

    /// How many of ten messages a client sends that gets no acknowledgement.
    /// Whether a broker with the limits of a service receives all of what a client with these options publishes over one
    /// connection.
    private static func survivesAService(
        size: Int = 1, _ change: (inout MQTTConfiguration) -> Void
    ) async throws -> Bool {
        let clock = try ManualClock()
        var options = LoopbackBrokerOptions.awsIoT
        if size > 1 { options.faults.maximumPublishesPerSecond = nil }
        let broker = try await LoopbackBroker.judged(options, clock: clock)
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.reconnect = .never
        change(&configuration)
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        let messages = (0..<250).map {
            MQTTOutgoingMessage(
                Array(repeating: UInt8(1), count: size), to: "a/\($0 % 3)",
                qos: $0 % 2 == 0 ? .atLeastOnce : .atMostOnce)
        }
        let isDone = Atomic(false)
        // On the clock's thread, so that no time passes between what it does and what the broker reads.
        let publishing = Task(executorPreference: client.loop) {
            try? await client.publish(messages).check()
            // What waits in the queue has QoS 0, and needs no answer.
            while client.backlog.queuedMessages > 0, client.state.isConnected {
                try? await clock.sleep(for: .milliseconds(100))
            }
            isDone.store(true, ordering: .relaxed)
        }
        while !isDone.load(ordering: .relaxed) { await clock.advance(by: .milliseconds(100)) }
        _ = await publishing.value
        await client.disconnect()
        let published = broker.statistics.messagesIn
        await broker.stop()
        return published == 250
    }

    private static func inFlight(_ change: (inout MQTTConfiguration) -> Void) async throws -> Int {
        let bench = try await Bench()
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = try await bench.connected("flight", change)
        for _ in 0..<10 { try await client.enqueue(MQTTOutgoingMessage([1], to: "a")) }
        // Messages that may be sent are in flight at once; the others wait in the queue.
        let inFlight = client.backlog.messagesInFlight
        #expect(await eventually { bench.broker.statistics.messagesIn == inFlight })
        await client.disconnect()
        await bench.stop()
        return inFlight
    }

    /// How a publish ends whose acknowledgement was lost with the server's session.
    private static func codeAfterSessionLoss(
        _ change: (inout MQTTConfiguration) -> Void
    ) async throws -> MQTTError.Code? {
        let bench = try await Bench { $0.keepsSessions = false }
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = try await bench.connected("lost") {
            $0.cleanStart = false
            change(&$0)
        }
        let publishing = Task { () -> MQTTError.Code? in
            do throws(MQTTError) {
                try await client.publish("x", to: "a", qos: .atLeastOnce)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await eventually { bench.broker.statistics.messagesIn == 1 })
        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
        await bench.cut()
        let code = await publishing.value
        await client.disconnect()
        await bench.stop()
        return code
    }

    private static func bytesOfTenPublishes(_ change: (inout MQTTConfiguration) -> Void) async throws -> Int {
        let bench = try await Bench()
        let client = try await bench.connected("alias") {
            $0.version = .v5_0
            change(&$0)
        }
        let topic = String(repeating: "t", count: 1_000)
        for _ in 0..<10 { try await client.publish("x", to: topic, qos: .atLeastOnce) }
        let bytes = client.core.link.traffic.bytesSent
        await client.disconnect()
        await bench.stop()
        return bytes
    }
}
