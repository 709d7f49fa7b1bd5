import ClientTestSupport
import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing

private struct Reading: Codable, Sendable, Equatable {
    var celsius: Double
}

private struct Target: Codable, Sendable, Equatable {
    var celsius: Double
}

private struct Order: Codable, Sendable, Equatable {
    var number: Int
}

private struct Price: Codable, Sendable, Equatable {
    var cents: Int
}

extension MQTTTopic<Reading> {
    fileprivate static let readings = MQTTTopic("home/+/reading", as: .json)
    fileprivate static let target = MQTTTopic("home/target", as: .json)
}

extension STOMPDestination<Order> {
    fileprivate static let orders = STOMPDestination("/queue/orders", as: .json)
    fileprivate static let prices = STOMPDestination("/queue/prices", as: .json)
}

/// What a first user writes without looking at declarations compiles and does what it reads like: four small programs, each
/// with every kind of payload that its calls take.
@Suite("First guesses", .turns) struct FirstGuessTests {
    @Test func `a smart home on MQTT 5`() async throws {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration(clientID: "house")
        configuration.version = .v5_0
        configuration.sessionExpiry = .seconds(60)
        configuration.will = MQTTWill("offline", to: "home/status", retain: true, delay: .seconds(5))
        let house = try MQTTClient(broker.mqttURL, configuration: configuration)
        configuration.clientID = "sensor"
        configuration.will = nil
        let sensor = try MQTTClient(broker.mqttURL, configuration: configuration)
        try await house.connect()
        try await sensor.connect()

        let readings = try await house.subscribe(to: .readings, acknowledgement: .manual)
        let kitchen = try MQTTTopic.readings.at("kitchen")
        let first = try await sensor.publishForConfirmation(MQTTOutgoingMessage(Reading(celsius: 20), to: kitchen))
        try await sensor.enqueue(MQTTOutgoingMessage(Reading(celsius: 21), as: .json, to: "home/hall/reading"))
        try await sensor.enqueue(MQTTOutgoingMessage("not a reading", to: "home/bath/reading"))
        var seen: [String] = []
        for try await reading in readings {
            seen.append("\(reading.captures[0]) \(reading.qos.rawValue) \(reading.isRetained)")
            if reading.topic == "home/kitchen/reading" {
                #expect(try reading.value == Reading(celsius: 20))
                #expect(reading.properties.contentType == "application/json")
            }
            reading.acknowledge()
            if seen.count == 3 { break }
        }
        #expect(seen == ["kitchen 1 false", "hall 1 false", "bath 1 false"])
        #expect(try await first.confirmed().reasonCode == .success)

        let questions = try await house.subscribe(to: "home/target", as: Reading.self)
        let answering = Task {
            for try await question in questions.prefix(3) {
                try await house.reply(to: question.message, with: Target(celsius: question.value.celsius + 1))
            }
        }
        let answers: [Target] = [
            try await sensor.request(Reading(celsius: 20), to: .target).value,
            try await sensor.request(Reading(celsius: 20), to: .target, returning: Target.self).value,
            try await sensor.request(Reading(celsius: 20), as: .json, to: "home/target").value,
        ]
        #expect(answers == [Target(celsius: 21), Target(celsius: 21), Target(celsius: 21)])
        try await answering.value
        await house.disconnect()
        await sensor.disconnect()
        await broker.stop()
    }

    @Test func `a worker for orders on STOMP`() async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .deadLetterQueue("/queue/dead")
        let broker = try await LoopbackBroker.judged(options)
        let shop = try STOMPClient(broker.stompURL)
        let worker = try STOMPClient(broker.stompURL)
        try await shop.connect()
        try await worker.connect()

        let orders = try await worker.subscribe(to: .orders, acknowledgement: .clientIndividual)
        let receipts = [
            try await shop.sendForReceipt(
                STOMPOutgoingMessage(Order(number: 1), to: .orders, options: STOMPSendOptions(headers: ["table": "7"]))),
            try await shop.sendForReceipt(STOMPOutgoingMessage(Order(number: 2), as: .json, to: "/queue/orders")),
            try await shop.sendForReceipt(STOMPOutgoingMessage("pizza, please", to: "/queue/orders")),
        ]
        for receipt in receipts { try await receipt.confirmed() }
        var numbers: [Int] = []
        for try await order in orders {
            do {
                numbers.append(try order.value.number)
                if numbers == [1] { #expect(order.header("table") == "7" && order.destination == "/queue/orders") }
                try await worker.withTransaction { transaction in
                    try await worker.send(Price(cents: 900), as: .json, to: "/queue/done", in: transaction)
                    try order.acknowledge(in: transaction)
                }
            } catch is DecodeFailure {
                try order.reject()
                break
            }
        }
        #expect(numbers == [1, 2])
        let dead = try await shop.subscribe(to: "/queue/dead", as: String.self)
        for try await letter in dead {
            #expect(try letter.value == "pizza, please")
            break
        }

        let results = await shop.sendAndConfirm([
            STOMPOutgoingMessage("a", to: "/topic/news"), STOMPOutgoingMessage("b", to: ""),
        ])
        #expect((try? results[0].get()) != nil && (try? results[1].get()) == nil)

        let questions = try await worker.subscribe(to: .prices)
        let answering = Task {
            for try await question in questions.prefix(2) {
                try await worker.reply(to: question.message, with: Price(cents: question.value.number * 100))
            }
        }
        let prices: [Price] = [
            try await shop.request(Order(number: 9), to: .prices).value,
            try await shop.request(Order(number: 9), as: .json, to: "/queue/prices").value,
        ]
        #expect(prices == [Price(cents: 900), Price(cents: 900)])
        try await answering.value
        await worker.disconnect()
        await shop.disconnect()
        await broker.stop()
    }

    @MainActor private final class ViewModel {
        private(set) var celsius = 0.0
        private let client: MQTTClient

        init(_ client: MQTTClient) { self.client = client }

        func run() async throws {
            for try await reading in try await client.subscribe(to: .readings) {
                guard let value = try? reading.value else { continue }
                celsius = value.celsius
                if celsius > 20 { return }
            }
        }

        func setTarget(_ celsius: Double) async throws {
            try await client.enqueue(MQTTOutgoingMessage(Reading(celsius: celsius), to: .target))
        }
    }

    @MainActor @Test func `the view model of an app that starts offline`() async throws {
        let broker = try await LoopbackBroker.judged()
        let phone = try MQTTClient(broker.mqttURL, clientID: "phone")
        let model = ViewModel(phone)
        // There is no connection yet.
        try await model.setTarget(22)
        await phone.start()
        let house = try MQTTClient(broker.mqttURL, clientID: "house")
        try await house.withConnection { house in
            try await house.publish(Reading(celsius: 19), as: .json, to: "home/hall/reading", retain: true)
            try await house.publish(
                Reading(celsius: 21), as: .json, to: "home/kitchen/reading", qos: .atLeastOnce, retain: true)
        }
        try await model.run()
        #expect(model.celsius == 21)
        await phone.disconnect()
        await broker.stop()
    }

    @Test func `a test that loses a packet`() async throws {
        let broker = try await LoopbackBroker.judged()
        let meter = try MQTTClient(broker.mqttURL, clientID: "meter")
        try await meter.connect()
        var arrivals = broker.arrivals(includesDropped: true).makeAsyncIterator()
        broker.inject(.drop, .received, .mqtt(.publish), client: "meter", number: 2)
        for text in ["1", "2", "3"] { #expect(try meter.tryPublish(MQTTOutgoingMessage(text, to: "readings"))) }
        let packets = [await arrivals.next(), await arrivals.next(), await arrivals.next()]
        #expect(packets.map { $0?.text } == ["1", "2", "3"])
        #expect(packets.map { $0?.wasDropped } == [false, true, false])
        await meter.disconnect()
        await broker.stop()
    }
}
