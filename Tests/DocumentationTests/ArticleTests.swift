import ClientTestSupport
import Foundation
import Inspector
import LoopbackBroker
import MQTT
import STOMP
import Synchronization
import TestSupport
import Testing

/// The code of the articles, run against the loopback broker where it needs nothing else.
@Suite(.turns)
struct ArticleTests {
    /// A broker and a connected client of each protocol, closed afterwards.
    static func withClients(
        version: MQTTVersion = .v5_0, _ body: (LoopbackBroker, MQTTClient, STOMPClient) async throws -> Void
    ) async throws {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration(clientID: "reader-%%%%")
        configuration.version = version
        let mqtt = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration)
        let stomp = STOMPClient(broker.urls.stomp ?? "")
        try await mqtt.connect()
        try await stomp.connect()
        try await body(broker, mqtt, stomp)
        await mqtt.disconnect()
        await stomp.disconnect()
        await broker.stop()
    }

    @Test func `First steps with MQTT work as shown`() async throws {
        try await tryItOut()
        try await testWithoutInstallingAnything()
        try await Self.withClients(version: .v3_1_1) { broker, client, _ in
            try await publishTemperatures(client: client)
            await publishOrExplain(client: client)
            try await copyReadings(client: client)
            #expect(broker.retainedCount == 1)
            #expect(broker.statistics.messagesIn == 6)
            // The retained message comes first.
            async let second = readOneAndUnsubscribe(client: client)
            #expect(await eventually { broker.statistics.messagesOut == 2 })
            try await client.publish("22.0", to: "house/kitchen/temperature")
            #expect(try await second == "22.0")
        }
    }

    @Test func `First steps with STOMP work as shown`() async throws {
        try await tryQueuesOut()
        try await Self.withClients { broker, _, client in
            try await sendOrders(client: client)
            try await sendUrgently(client: client)
            try await readOneOrder(client: client)
            try await copyOrders(client: client)
            #expect(broker.statistics.messagesIn == 5)
            let seller = Task { try await tellPrices(client: client) }
            // The snippet waits for a few seconds only.
            #expect(await eventually { (try? await askForThePrice(client: client)) == "12.50" })
            seller.cancel()
        }
    }

    @Test func `A message moves from one queue to another in a transaction as shown`() async throws {
        try await Self.withClients { _, _, client in
            try await client.sendAndConfirm("{\"pizza\":1}", to: "/queue/orders")
            try await moveOneOrder(client: client)
            var paid = try await client.subscribe(to: "/queue/paid").makeAsyncIterator()
            let order = try await paid.next()
            #expect(order?.text == "{\"pizza\":1}")
            #expect(order.map { isComplete($0) } == true)
        }
    }

    @Test func `A worker bills each order over a lost connection, rejects the rest, and ends when it is cancelled`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        let shop = STOMPClient(broker.urls.stomp ?? "")
        try await shop.connect()
        var bills = try await shop.subscribe(to: .bills).makeAsyncIterator()
        var configuration = STOMPConfiguration()
        configuration.clientID = "worker"
        configuration.reconnect.initialDelay = .milliseconds(10)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration)
        await client.start()
        let worker = Task { try await billOrders(client) }
        try await shop.sendAndConfirm("one pizza, please", to: "/queue/pizza-orders")
        for number in 1...2 {
            try await shop.sendAndConfirm(PizzaOrder(number: number, pizza: "Margherita"), to: .pizzaOrders)
            #expect(try await bills.next()?.value == Bill(order: number, euros: 9.5))
            await broker.dropConnection(of: "worker")
        }
        worker.cancel()
        try await worker.value
        await client.disconnect()
        // Nothing comes again.
        var orders = try await shop.subscribe(to: "/queue/pizza-orders").makeAsyncIterator()
        try await shop.sendAndConfirm("the last", to: "/queue/pizza-orders")
        #expect(try await orders.next()?.text == "the last")
        await shop.disconnect()
        await broker.stop()
    }

    @Test
    func `A worker that is cancelled finishes the orders in hand, takes no other, and has at most so many at once`()
        async throws
    {
        try await Self.withClients { broker, _, shop in
            let client = STOMPClient(broker.urls.stomp ?? "")
            try await client.connect()
            let (begun, beginning) = AsyncStream<Int>.makeStream()
            let (go, going) = AsyncStream<Void>.makeStream()
            let worker = Task {
                try await handleOrders(client, atOnce: 2) { order in
                    beginning.yield(try order.value.number)
                    for await _ in go {}
                    // In a cancelled task the commit would throw.
                    try await bill(order, client)
                }
            }
            for number in 1...4 {
                try await shop.sendAndConfirm(PizzaOrder(number: number, pizza: "Margherita"), to: .pizzaOrders)
            }
            var numbers = begun.makeAsyncIterator()
            let inHand = await [numbers.next(), numbers.next()].compactMap(\.self)
            #expect(Set(inHand) == [1, 2])
            worker.cancel()
            going.finish()
            try await worker.value
            await client.disconnect()
            beginning.finish()
            #expect(await numbers.next() == nil)
            var bills = try await shop.subscribe(to: .bills).makeAsyncIterator()
            let billed = try await [bills.next(), bills.next()].compactMap { try $0?.value.order }
            #expect(Set(billed) == [1, 2])
            var left = try await shop.subscribe(to: .pizzaOrders).makeAsyncIterator()
            #expect(try await left.next()?.value.number == 3)
            #expect(try await left.next()?.value.number == 4)
        }
    }

    @Test func `A bridge carries the readings that were published while it was being restarted`() async throws {
        let brokers = try await (LoopbackBroker.judged(), LoopbackBroker.judged())
        var bridge = makeBridge(brokers.0.urls.mqtt ?? "", brokers.1.urls.stomp ?? "")
        var carrying = Task { [bridge] in try await runBridge(from: bridge.mqtt, to: bridge.stomp) }
        #expect(await eventually { await brokers.0.publish("21.5", to: "home/kitchen/reading") })
        let reader = STOMPClient(brokers.1.urls.stomp ?? "")
        try await reader.connect()
        var readings = try await reader.subscribe(to: "/queue/readings").makeAsyncIterator()
        let reading = try #require(try await readings.next())
        #expect(reading.text == "21.5" && reading.header("topic") == "home/kitchen/reading")
        #expect(bridge.stomp.state.isConnected)
        carrying.cancel()
        try await carrying.value
        #expect(bridge.mqtt.state == .disconnected(nil) && bridge.stomp.state == .disconnected(nil))
        // The session has a subscriber while the bridge is away.
        #expect(await brokers.0.publish("22.0", to: "home/kitchen/reading"))
        bridge = makeBridge(brokers.0.urls.mqtt ?? "", brokers.1.urls.stomp ?? "")
        carrying = Task { [bridge] in try await runBridge(from: bridge.mqtt, to: bridge.stomp) }
        // The first comes again if the bridge ended before it had acknowledged it.
        var next = try await readings.next()
        while next?.text == "21.5" { next = try await readings.next() }
        #expect(next?.text == "22.0")
        carrying.cancel()
        try await carrying.value
        await reader.disconnect()
        await brokers.0.stop()
        await brokers.1.stop()
    }

    @Test func `A bridge whose password the queue's broker refuses ends before the first reading`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "bridge", password: "secret")]
        let brokers = try await (LoopbackBroker.judged(), LoopbackBroker.judged(options))
        let bridge = makeBridge(brokers.0.urls.mqtt ?? "", brokers.1.urls.stomp ?? "")
        let refusal = await #expect(throws: STOMPError.self) {
            try await withTimeout(.patience, "the bridge") {
                try await runBridge(from: bridge.mqtt, to: bridge.stomp)
            }
        }
        #expect(refusal?.code == .badCredentials)
        #expect(bridge.mqtt.state == .disconnected(nil))
        await brokers.0.stop()
        await brokers.1.stop()
    }

    @Test(.requires(.rabbitMQ)) func `RabbitMQ moves a rejected message to the queue of dead letters as shown`()
        async throws
    {
        let broker = try await SharedBrokers.rabbitMQ()
        let client = STOMPClient("stomp://guest:guest@127.0.0.1:\(broker.stompPort)")
        try await client.connect()
        try await withTimeout(.patience, "a dead letter") { try await useDeadLetters(client: client) }
        await client.disconnect()
    }

    @Test func `Retained messages, several filters, and requests work as shown`() async throws {
        try await Self.withClients { broker, client, _ in
            try await retainTheDoor(client: client)
            #expect(broker.retainedCount == 0)
            try await subscribeToSeveral(client: client)
            let clock = Task { try await tellTheTime(client: client) }
            #expect(try await eventuallyAsks(client) == "12:00")
            clock.cancel()
            let temperatures = try await client.subscribe(to: "house/kitchen/temperature")
            try await publishWithProperties(client: client)
            var received = temperatures.makeAsyncIterator()
            let message = try #require(try await received.next())
            readProperties(message: message)
            #expect(message.properties.userProperty("sensor") == "k-7")
        }
    }

    /// The clock's subscription may come after the first question, which has no answer then.
    private func eventuallyAsks(_ client: MQTTClient) async throws -> String? {
        var answer: String?
        let isAnswered = await eventually {
            answer = try? await client.request(Array("now".utf8), to: "clock/requests", timeout: .milliseconds(500))
                .text
            return answer != nil
        }
        #expect(isAnswered)
        // The snippet waits for a few seconds only.
        var time: String?
        _ = await eventually {
            time = try? await askForTheTime(client: client)
            return time != nil
        }
        return time
    }

    @Test func `Values of each format are sent and received as shown`() async throws {
        try await Self.withClients { broker, client, stomp in
            try await publishPosition(client: client)
            try await sendPosition(client: stomp)
            try await readPositions(client: client)
            try await followVehicles(client: client)
            try await publishNumber(client: client)
            #expect(try await copySample(client: client) == Sample(value: 7))
            #expect(try await copyOnePosition(client: stomp) == Position(latitude: 60.2, longitude: 24.9))
            #expect(try NumberPayload().decode(Int.self, from: [52, 50]) == 42)
            #expect(await eventually { broker.statistics.messagesIn == 7 })
        }
    }

    @Test func `A test on a manual clock, and one in a simulation, work as shown`() async throws {
        try await noticeASilentServer()
        try await simulateAPhone()
    }

    @Test func `A farewell is sent to a server that is there, and does not wait for one that is away`() async throws {
        try await Self.withClients { broker, client, _ in
            var arrivals = broker.arrivals().makeAsyncIterator()
            // As after SIGTERM, in a task that is cancelled.
            let leaving = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await leave(client, within: .seconds(600))
            }
            await leaving.value
            #expect(await arrivals.next()?.text == "offline")
            #expect(await arrivals.next()?.packet == .mqtt(.disconnect))
            await broker.stop()
            await client.start()
            await leave(client, within: .milliseconds(10))
            #expect(client.state == .disconnected(nil))
        }
    }

    @Test func `Functions for both clients work as shown`() async throws {
        try await Self.withClients { broker, mqtt, stomp in
            let fromMQTT = try await mqtt.subscribe(to: "a")
            let fromSTOMP = try await stomp.subscribe(to: "/topic/a")
            await broker.publish("1", to: "a")
            #expect(try await firstPayload(of: fromMQTT) == [0x31])
            #expect(try await firstPayload(of: fromSTOMP) == [0x31])
            for printing in [Task { await printStates(of: mqtt) }, Task { await printStates(of: stomp) }] {
                printing.cancel()
                await printing.value
            }
        }
    }

    @Test func `A small buffer and a manual acknowledgement work as shown`() async throws {
        try await Self.withClients { _, client, _ in
            try await client.publish("here", to: "vehicles/7/position", qos: .atLeastOnce, retain: true)
            try await client.publish("1.00", to: "payments/1", qos: .atLeastOnce, retain: true)
            try await showLatest(client: client)
            try await processFirst(client: client)
        }
    }

    @Test func `The fast ways to publish and to receive work as shown`() async throws {
        try await Self.withClients { broker, client, _ in
            try await publishMany(client: client)
            try await measureRoundTrips(client: client)
            try publishPosition(client: client, position: [1, 2, 3])
            #expect(await eventually { broker.statistics.messagesIn == 201 })
            try await client.publish("21.5", to: "meters/1", qos: .atLeastOnce, retain: true)
            #expect(try await countBytes(client: client) == 4)
        }
    }

    @Test func `Counters and trace context are read as shown`() async throws {
        try await Self.withClients { _, client, _ in
            let temperatures = try await client.subscribe(to: "house/#")
            try await publishTraced(client: client, traceparent: "00-1-2-01")
            var received = temperatures.makeAsyncIterator()
            let message = try #require(try await received.next())
            #expect(traceparent(of: message) == "00-1-2-01")
            var counters: [String: Int] = [:]
            reportTraffic(client: client) { counters[$0] = $1 }
            #expect(counters["mqtt_messages_received_total"] == 1)
            #expect(counters["mqtt_connections_total"] == 1)
        }
    }

    @Test func `Events are logged as shown`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient(broker.urls.mqtt ?? "")
        let lines = Mutex<[String]>([])
        let log = Task {
            await logEvents(of: client) { isProblem, line in lines.withLock { $0.append("\(isProblem) \(line)") } }
        }
        // The sequence of events begins with the task.
        let isLogging = await eventually {
            try? await client.connect()
            await client.disconnect()
            return lines.withLock { !$0.isEmpty }
        }
        #expect(isLogging)
        await broker.stop()
        await #expect(throws: MQTTError.self) { try await client.connect() }
        #expect(await eventually { lines.withLock { $0.contains { $0.hasPrefix("true attemptFailed") } } })
        log.cancel()
    }

    @Test func `A lost connection is opened again as shown`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = try makeImpatientClient(broker)
        try await client.connect()
        await waitUntilConnected(client: client)
        try await loseTheConnection(broker: broker, client: client)
        networkIsBack(client: client)
        #expect(client.state.isConnected)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `A strict broker refuses a client without credentials as shown`() async throws {
        let broker = try await startStrictBroker()
        #expect(broker.urls.stomp == nil)
        let refused = await #expect(throws: MQTTError.self) { try await MQTTClient(broker.urls.mqtt ?? "").connect() }
        #expect(refused?.code == .badCredentials)
        await broker.stop()
    }

    @Test @MainActor func `A view model shows doors as they open`() async throws {
        let broker = try await LoopbackBroker.judged()
        let test = MQTTClient(broker.urls.mqtt ?? "")
        try await test.connect()
        try await test.publish("open", to: "house/kitchen/door", qos: .atLeastOnce, retain: true)
        let client = MQTTClient(broker.urls.mqtt ?? "")
        let model = DoorModel(client: client)
        let run = Task { await model.run() }
        #expect(await eventually { @MainActor in model.status == "online" && model.doors == ["kitchen": "open"] })
        run.cancel()
        await client.disconnect()
        await test.disconnect()
        await broker.stop()
    }

    @Test func `The inspector's page is served as shown`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient(broker.urls.mqtt ?? "")
        let page = try await inspect(client)
        #expect(page.address.hasPrefix("http://127.0.0.1:\(page.port)/"))
        await page.stop()
        await broker.stop()
    }

    @Test func `Frames are recorded as shown`() async throws {
        let scratch = try ScratchDirectory("readme")
        let file = URL(fileURLWithPath: "\(scratch.path)/kitchen.pcapng")
        let broker = try await LoopbackBroker.judged()
        try await recordFrames(of: MQTTClient(broker.urls.mqtt ?? ""), into: file)
        await broker.stop()
        let capture = try Data(contentsOf: file)
        #expect(capture.starts(with: [0x0A, 0x0D, 0x0D, 0x0A]))
        for comment in ["CONNECT", "PUBLISH home/kitchen/temperature QoS 1", "PUBACK", "DISCONNECT"] {
            #expect(capture.range(of: Data(comment.utf8)) != nil, "\(comment)")
        }
    }
}
