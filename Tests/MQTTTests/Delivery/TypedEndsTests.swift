import LoopbackBroker
import MQTT
import TestSupport
import Testing

import struct MessagingShell.PropertyListPayload

private struct Question: Codable, Sendable, Equatable {
    var number: Int
}

private struct Answer: Codable, Sendable, Equatable {
    var square: Int
}

@Suite("Delivery: values and text at every end", .turns)
struct TypedEndsTests {
    @Test func `a typed request gets a typed response, and one that is not such a value can still be read`()
        async throws
    {
        let bench = try await Bench()
        let service = try await bench.connected { $0.version = .v5_0 }
        let questions = try await service.subscribe(to: "square", as: Question.self)
        let answering = Task {
            for try await question in questions {
                guard let number = try? question.value.number else {
                    try await service.reply(to: question.message, with: "not a question")
                    continue
                }
                #expect(question.properties.contentType == "application/json")
                try await service.reply(to: question.message, with: Answer(square: number * number), as: .json)
            }
        }
        let client = try await bench.connected { $0.version = .v5_0 }
        let answer: Answer = try await client.request(Question(number: 7), as: .json, to: "square").value
        #expect(answer == Answer(square: 49))
        let foreign = try await client.request([1, 2], as: .json, to: "square", returning: Answer.self)
        #expect(throws: DecodeFailure.self) { try foreign.value }
        #expect(foreign.text == "not a question")
        #expect(try await client.request("text", to: "square").text == "not a question")
        await client.disconnect()
        await service.disconnect()
        try await answering.value
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `one bad payload does not end a sequence of values`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let questions = try await client.subscribe(to: "q", as: Question.self)
        let texts = try await client.subscribe(to: "q", as: String.self)
        try await client.publish("{", to: "q", qos: .atLeastOnce)
        try await client.publish([0xFF], to: "q", qos: .atLeastOnce)
        try await client.publish(Question(number: 3), as: .json, to: "q", qos: .atLeastOnce)
        var iterator = questions.makeAsyncIterator()
        for _ in 0..<2 {
            let bad = try #require(await iterator.next())
            #expect(throws: DecodeFailure.self) { try bad.value }
        }
        #expect(try await iterator.next()?.value == Question(number: 3))
        var text = texts.makeAsyncIterator()
        #expect(try await text.next()?.value == "{")
        let bad = try #require(await text.next())
        #expect(throws: DecodeFailure.self) { try bad.value }
        #expect(try await text.next()?.value == #"{"number":3}"#)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `of several formats the content type chooses, and without one the first that fits`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let questions = try await client.subscribe(
            to: "q", as: Question.self, coding: .anyOf(.json, .propertyList))
        try await client.publish(Question(number: 1), as: .anyOf(.json, .propertyList), to: "q", qos: .atLeastOnce)
        try await client.publish(Question(number: 2), as: .propertyList, to: "q", qos: .atLeastOnce)
        try await client.publish(Question(number: 3), as: .propertyList, to: "q", qos: .atLeastOnce)
        try await client.publish("text", to: "q", qos: .atLeastOnce)
        var iterator = questions.makeAsyncIterator()
        let first = try #require(await iterator.next())
        #expect(first.text == #"{"number":1}"#)
        #expect(try first.value == Question(number: 1))
        #expect(try await iterator.next()?.value == Question(number: 2))
        #expect(try await iterator.next()?.value == Question(number: 3))
        let bad = try #require(await iterator.next())
        #expect(throws: DecodeFailure.self) { try bad.value }
        if version == .v5_0 {
            // What a declared type rejects is not tried in the other format.
            let json = try MQTTOutgoingMessage(
                PropertyListPayload().encode(Question(number: 4)), to: "q", qos: .atLeastOnce,
                properties: [.contentType("text/json")])
            try await client.publish(json)
            let wrong = try #require(await iterator.next())
            #expect(throws: DecodeFailure.self) { try wrong.value }
            try await client.publish("{}", to: "q", qos: .atLeastOnce, properties: [.contentType("text/plain")])
            let foreign = try #require(await iterator.next())
            #expect { try foreign.value } throws: { "\($0)".contains("text/plain") }
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `text, values, typed topics and messages can be confirmed later, enqueued and tried`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let messages = try await client.subscribe(to: "f/#", qos: .exactlyOnce)
        let question = MQTTTopic<Question>("f/typed", as: .json, qos: .exactlyOnce)
        let confirmations = [
            try await client.publishForConfirmation(MQTTOutgoingMessage("confirm", to: "f/text")),
            try await client.publishForConfirmation(MQTTOutgoingMessage(Question(number: 1), as: .json, to: "f/value")),
            try await client.publishForConfirmation(MQTTOutgoingMessage(Question(number: 1), to: question)),
            try await client.publishForConfirmation(
                MQTTOutgoingMessage("confirm", to: "f/message", qos: .exactlyOnce)),
            try await client.publishForConfirmation(
                MQTTOutgoingMessage("at most once", to: "f/message", qos: .atMostOnce)),
        ]
        for confirmation in confirmations { #expect(try await confirmation.confirmed().reasonCode == .success) }
        try await client.enqueue(MQTTOutgoingMessage("enqueue", to: "f/text"))
        try await client.enqueue(MQTTOutgoingMessage(Question(number: 2), as: .json, to: "f/value"))
        try await client.enqueue(MQTTOutgoingMessage(Question(number: 2), to: question))
        try await client.enqueue(MQTTOutgoingMessage("enqueue", to: "f/message", qos: .atLeastOnce))
        #expect(try client.tryPublish(MQTTOutgoingMessage("try", to: "f/text")))
        #expect(try client.tryPublish(MQTTOutgoingMessage(Question(number: 3), as: .json, to: "f/value")))
        #expect(try client.tryPublish(MQTTOutgoingMessage(Question(number: 3), to: question)))
        let received = try await messages.first(12)
        #expect(
            Set(received.map { "\($0.topic) \($0.qos.rawValue) \($0.text ?? "")" }) == [
                "f/text 1 confirm", #"f/value 1 {"number":1}"#, #"f/typed 2 {"number":1}"#, "f/message 2 confirm",
                "f/message 0 at most once", "f/text 1 enqueue", #"f/value 1 {"number":2}"#,
                #"f/typed 2 {"number":2}"#, "f/message 1 enqueue", "f/text 0 try", #"f/value 0 {"number":3}"#,
                #"f/typed 0 {"number":3}"#,
            ])
        let types = received.filter { $0.topic == "f/value" || $0.topic == "f/typed" }.map(\.properties.contentType)
        #expect(types == Array(repeating: version == .v5_0 ? "application/json" : nil, count: 6))
        #expect(throws: MQTTError.self) {
            try client.tryPublish(MQTTOutgoingMessage(Double.nan, to: MQTTTopic("f/value", as: .json)))
        }
        #expect(throws: MQTTError.self) {
            try client.tryPublish(MQTTOutgoingMessage(Question(number: 3), to: MQTTTopic("f/+", as: .json)))
        }
        await #expect(throws: MQTTError.self) {
            try await client.enqueue(MQTTOutgoingMessage(Double.nan, as: .json, to: "f/value"))
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a request to a typed topic gets a reply, with or without a value`() async throws {
        let bench = try await Bench()
        let service = try await bench.connected { $0.version = .v5_0 }
        let topic = MQTTTopic<Question>("square", as: .json)
        let questions = try await service.subscribe(to: topic)
        let answering = Task {
            for try await question in questions {
                let number = try question.value.number
                switch number {
                case 1: try await service.reply(to: question.message, with: [0x31])
                case 2: try await service.reply(to: question.message, with: "four")
                default: try await service.reply(to: question.message, with: Answer(square: number * number), as: .json)
                }
            }
        }
        let client = try await bench.connected { $0.version = .v5_0 }
        #expect(try await client.request(Question(number: 1), to: topic, returning: Answer.self).text == "1")
        let text = try await client.request(Question(number: 2), to: topic, returning: Answer.self)
        #expect(throws: DecodeFailure.self) { try text.value }
        let answer: Answer = try await client.request(Question(number: 3), to: topic).value
        #expect(answer == Answer(square: 9))
        await client.disconnect()
        await service.disconnect()
        try await answering.value
        await bench.stop()
    }

    @Test func `an element of a typed subscription acknowledges its message, whether or not it has a value`()
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let questions = try await client.subscribe(to: "q/+", as: Question.self, acknowledgement: .manual)
        try await client.publish(Question(number: 1), as: .json, to: "q/1", qos: .atLeastOnce)
        try await client.publish("{", to: "q/2", qos: .atLeastOnce, properties: [.userProperty("key", "7")])
        var iterator = questions.makeAsyncIterator()
        let first = try #require(await iterator.next())
        #expect(first.topic == "q/1" && first.qos == .atLeastOnce && !first.isRetained && first.captures == ["1"])
        let second = try #require(await iterator.next())
        #expect(second.properties.userProperties.map(\.value) == ["7"])
        var acknowledged = bench.broker.arrivals().filter { $0.packet == .mqtt(.puback) }.makeAsyncIterator()
        first.acknowledge()
        #expect(await acknowledged.next()?.packet == .mqtt(.puback))
        second.acknowledge()
        #expect(await acknowledged.next()?.packet == .mqtt(.puback))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a will has text or a value, and a delay in whole seconds`() throws {
        let text = MQTTWill("offline", to: "lamp", retain: true, delay: .seconds(5))
        #expect(text.payload == Array("offline".utf8) && text.properties == [.willDelayInterval(5)])
        let value = try MQTTWill(
            Question(number: 1), as: .json, to: "lamp", qos: .atLeastOnce, delay: .milliseconds(1500))
        #expect(value.payload == Array(#"{"number":1}"#.utf8) && value.qos == .atLeastOnce)
        #expect(value.properties.willDelayInterval == 2 && value.properties.contentType == "application/json")
        #expect(MQTTWill([], to: "a", delay: .seconds(Int64.max)).properties.willDelayInterval == .max)
        #expect(MQTTWill([], to: "a", delay: .seconds(-1)).properties.willDelayInterval == 0)
        #expect(MQTTWill([], to: "a").properties.willDelayInterval == nil)
        #expect(throws: MQTTError.self) { try MQTTWill(Double.infinity, as: .json, to: "a") }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a will of a topic has the topic's format, QoS and retain flag`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let observer = try await bench.connected()
        let topic = MQTTTopic<[Int]>("wills", as: .json, qos: .exactlyOnce, retain: true)
        let will = try MQTTWill([1, 2], to: topic)
        #expect(will.qos == .exactlyOnce && will.retain)
        let wills = try await observer.subscribe(to: topic)
        let client = try await bench.connected {
            $0.version = version
            $0.will = will
            $0.reconnect = .never
        }
        await bench.broker.dropAllConnections()
        for try await element in wills {
            #expect(try element.value == [1, 2])
            break
        }
        #expect(throws: MQTTError.self) { try MQTTWill(Double.nan, to: MQTTTopic("wills", as: .json)) }
        await client.disconnect()
        await observer.disconnect()
        await bench.stop()
    }

    @Test func `a will of text for one of many topics is written without its type`() throws {
        let will = try MQTTWill("offline", to: .availability.at("bay", "lamp"))
        #expect(will.topic == "bay/lamp/availability" && will.qos == .atLeastOnce && will.retain)
    }

    @Test func `a will of text is published to the observer of a connection that was cut`() async throws {
        let bench = try await Bench()
        let observer = try await bench.connected { $0.version = .v5_0 }
        let wills = try await observer.subscribe(to: "wills/+", as: String.self)
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.will = MQTTWill("gone", to: "wills/a", delay: .zero)
        }
        // The result of the scope may be left unused.
        try await client.withConnection { client in
            try await client.enqueue(MQTTOutgoingMessage("queued", to: "wills/b"))
            try await client.disconnect(reason: .disconnectWithWillMessage)
            return 17
        }
        var seen: Set<String> = []
        for try await will in wills {
            seen.insert(try will.value)
            if seen == ["gone", "queued"] { break }
        }
        await observer.disconnect()
        await bench.stop()
    }
}

extension MQTTTopic<String> {
    fileprivate static let availability = MQTTTopic.text("+/+/availability", retain: true)
}
