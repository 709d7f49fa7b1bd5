import STOMP
import TestSupport
import Testing

/// How brokers escape headers otherwise than the version that was agreed upon says, and what arrives then.
@Suite(.serialized, .turns)
struct STOMPEscapingTests {
    /// Sends one message per value, from a client of one version to one of another, and returns what comes.
    private func values(
        _ values: [String], over broker: STOMPBroker, from: STOMPVersion, to: STOMPVersion
    ) async throws -> [String?] {
        let topic = "/topic/escaping-\(from)-\(to)"
        let receiver = try await broker.connected { $0.versions = [to] }
        let messages = try await receiver.subscribe(to: topic)
        let sender = try await broker.connected { $0.versions = [from] }
        for value in values {
            try await sender.sendAndConfirm("x", to: topic, options: STOMPSendOptions(headers: ["value": value]))
        }
        let received = try await messages.first(values.count).map { $0.header("value") }
        await sender.disconnect()
        await receiver.disconnect()
        return received
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQEscapesAndUnescapesInOneDotZeroToo() async throws {
        // What the specification calls plain text is unescaped…
        #expect(
            try await values(["a:b", #"a\nb\cc\\d"#], over: .rabbitMQ, from: .v10, to: .v12) == ["a:b", "a\nb:c\\d"])
        // …and what comes is to be read as it stands, since 1.0 knows no escapes.
        #expect(
            try await values(["a:b", "a\nb", #"a\b"#], over: .rabbitMQ, from: .v12, to: .v10)
                == [#"a\cb"#, #"a\nb"#, #"a\\b"#])
        // A backslash that begins no escape costs the connection, without an ERROR.
        let client = try await STOMPBroker.rabbitMQ.connected { $0.versions = [.v10] }
        await expectError(.connectionLost) {
            try await client.sendAndConfirm("x", to: "/topic/t", options: STOMPSendOptions(headers: ["a": #"x\ty"#]))
        }
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQUnescapesButDoesNotEscapeInOneDotZero() async throws {
        #expect(
            try await values(["a:b", #"a\nb\cc\\d"#, #"x\ty"#], over: .activeMQ, from: .v10, to: .v12)
                == ["a:b", "a\nb:c\\d", #"x\ty"#])
        #expect(
            try await values(["a:b", #"a\b"#, #"a\nb"#], over: .activeMQ, from: .v12, to: .v10)
                == ["a:b", #"a\b"#, #"a\nb"#])
        // A line feed comes as it is and begins a line that is none: the connection ends, and the next one is good.
        let receiver = try await STOMPBroker.activeMQ.connected { $0.versions = [.v10] }
        var events = receiver.events.makeAsyncIterator()
        let messages = try await receiver.subscribe(to: "/topic/escaping-broken")
        let sender = try await STOMPBroker.activeMQ.connected()
        try await sender.sendAndConfirm(
            "x", to: "/topic/escaping-broken", options: STOMPSendOptions(headers: ["value": "a\nb"]))
        await events.expectLoss(.protocolError, mentioning: "no colon")
        await events.expectReturn()
        try await receiver.sendAndConfirm("settled", to: "/queue/escaping-other")
        try await sender.sendAndConfirm("good", to: "/topic/escaping-broken")
        #expect(try await messages.texts(1) == ["good"])
        _ = try await receiver.subscribe(to: "/queue/escaping-other").first(1)
        await sender.disconnect()
        await receiver.disconnect()
    }

    @Test(.requires(.activeMQ, .rabbitMQ)) func carriageReturnsInOneDotOne() async throws {
        // ActiveMQ passes them on as they are.
        #expect(try await values(["a\rb"], over: .activeMQ, from: .v12, to: .v11) == ["a\rb"])
        #expect(try await values(["a\rb"], over: .activeMQ, from: .v11, to: .v12) == ["a\rb"])
        // RabbitMQ writes the escape that 1.1 does not define, which ends the connection…
        let receiver = try await STOMPBroker.rabbitMQ.connected { $0.versions = [.v11] }
        var events = receiver.events.makeAsyncIterator()
        let messages = try await receiver.subscribe(to: "/topic/escaping-cr")
        let options = STOMPSendOptions(headers: ["value": "a\rb"])
        let sender = try await STOMPBroker.rabbitMQ.connected()
        try await sender.sendAndConfirm("x", to: "/topic/escaping-cr", options: options)
        await events.expectLoss(.protocolError, mentioning: "1.1")
        await events.expectReturn()
        try await sender.sendAndConfirm("good", to: "/topic/escaping-cr")
        #expect(try await messages.texts(1) == ["good"])
        // …and it ends the connection of whoever sends one unescaped, as 1.1 has it.
        await expectError(.connectionLost) { try await receiver.sendAndConfirm("x", to: "/topic/t", options: options) }
        await receiver.disconnect()
        await sender.disconnect()
    }

    @Test(.requires(.activeMQ)) func undefinedEscapesOfOthersReachUsAsText() async throws {
        // ActiveMQ takes them for what they look like.
        let client = try await STOMPBroker.activeMQ.connected()
        let messages = try await client.subscribe(to: "/topic/escaping-undefined")
        let other = try await STOMPBroker.activeMQ.rawConnection()
        try await other.send("SEND\ndestination:/topic/escaping-undefined\nvalue:x\\ty\\r\n\n\0")
        #expect(try await messages.first(1).first?.header("value") == "x\\ty\r")
        await client.disconnect()
    }
}

extension Updates<STOMPEvent>.Iterator {
    /// Waits for the loss of the connection and looks at its reason.
    mutating func expectLoss(
        _ code: STOMPError.Code, mentioning text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        while let event = await next() {
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.code == code, sourceLocation: sourceLocation)
            #expect(error.message.contains(text), "\(error.message)", sourceLocation: sourceLocation)
            return
        }
    }

    /// Waits until the broker has confirmed a subscription over the next connection.
    mutating func expectReturn() async {
        while let event = await next() {
            if case .resubscribed = event { return }
        }
    }
}
