import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct SubscriptionTests {
    private func message(_ subscription: String?, _ destination: String = "/q", _ body: String = "hi") -> String {
        "MESSAGE\n" + (subscription.map { "subscription:\($0)\n" } ?? "")
            + "message-id:1\ndestination:\(destination)\n\n\(body)\0\n"
    }

    @Test func subscribeSaysIdDestinationAndMode() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(
            id: "s:1", destination: "/topic/a", acknowledgement: .clientIndividual, headers: ["selector": "a = 1"],
            token: 1, at: 0)
        #expect(
            client.takeOutput()
                == "SUBSCRIBE\nid:s\\c1\ndestination:/topic/a\nack:client-individual\nselector:a = 1\n\n\0")
    }

    @Test func messagesCarryTheTokenOfTheirSubscription() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
        try client.engine.subscribe(id: "b", destination: "/q", token: 2, at: 0)
        client.receive(message("b") + message("a", "/other", "x") + message("c") + message("d", "/nobody"))
        #expect(
            client.takeLog() == [
                "message 2 /q hi", "message 1 /other x", "message - /q hi", "message - /nobody hi",
            ])
    }

    private func subscribe(
        _ client: ScriptedEngine, _ id: String, _ mode: STOMPAckMode
    ) -> STOMPUsageError.Code? {
        client.misuse { e throws(STOMPUsageError) in
            try e.engine.subscribe(
                id: id, destination: "/q", acknowledgement: mode, token: UInt64(id.utf8.first ?? 0), at: 0)
        }
    }

    /// RabbitMQ acknowledges in mode `client` all messages of the connection up to that one.
    @Test(arguments: [
        (STOMPAckMode.client, STOMPAckMode.client), (.client, .clientIndividual), (.clientIndividual, .client),
    ])
    func `an acknowledgement that would count for another subscription of RabbitMQ is not made possible`(
        first: STOMPAckMode, second: STOMPAckMode
    ) throws {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        #expect(subscribe(client, "a", .auto) == nil)
        #expect(subscribe(client, "b", first) == nil)
        #expect(subscribe(client, "c", second) == .unsupportedByBroker)
        #expect(subscribe(client, "d", .auto) == nil)
        try client.engine.unsubscribe(id: "b", at: 0)
        #expect(subscribe(client, "c", second) == nil)
        #expect(subscribe(client, "e", .clientIndividual) == (second == .client ? .unsupportedByBroker : nil))
        let other = try ScriptedEngine.connected(server: "ActiveMQ/5.17.2")
        #expect(subscribe(other, "b", first) == nil && subscribe(other, "c", second) == nil)
    }

    /// RabbitMQ keeps them until the connection ends.
    @Test func `nor one that would count for messages which an ended subscription of RabbitMQ left unanswered`() throws
    {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        #expect(subscribe(client, "a", .clientIndividual) == nil)
        client.receive(message("a"))
        try client.engine.unsubscribe(id: "a", at: 0)
        #expect(subscribe(client, "b", .client) == .unsupportedByBroker)
        #expect(subscribe(client, "b", .clientIndividual) == nil)
        client.close()
        client.connect(server: "RabbitMQ/3.10.8")
        #expect(subscribe(client, "b", .client) == nil)
    }

    @Test func firstOfRepeatedHeadersCounts() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
        client.receive("MESSAGE\nsubscription:a\nsubscription:b\nmessage-id:7\ndestination:/1\ndestination:/2\n\nhi\0")
        #expect(client.takeLog() == ["message 1 /1 hi"])
    }

    @Test func `a record names where destination, message-id and content-type are`() throws {
        let client = try ScriptedEngine.connected()
        let head = "subscription:a\nmessage-id:7\r\nmessage-id:8\ncontent-type:text/plain\ndestination:/1\n"
        let bytes = Array("MESSAGE\n\(head)\nhi\0MESSAGE\nsubscription:a\nmessage-id:\ndestination:/2\n\n\0".utf8)
        var effects = STOMPEffects()
        #expect(client.engine.receive(bytes.span.bytes, at: 0, into: &effects) == bytes.count)
        func texts(_ record: STOMPMessageRecord, _ bytes: [UInt8]) -> [String] {
            [record.destination, record.messageID, record.contentType, record.body].map {
                String(decoding: bytes[$0], as: UTF8.self)
            }
        }
        #expect(effects.messages.map { texts($0, bytes) } == [["/1", "7", "text/plain", "hi"], ["/2", "", "", ""]])
        // The same frame at another place.
        let second = effects.messages[1]
        let moved = second.moved(by: second.frame.lowerBound)
        #expect(moved.frame.lowerBound == 0 && texts(moved, Array(bytes[second.frame])) == ["/2", "", "", ""])
        #expect(texts(second.moved(by: -3), [0, 0, 0] + bytes) == ["/2", "", "", ""])
    }

    /// Lines that come again are compared with those of the frame before, which may be another connection's: each frame
    /// must be read as by an engine that never saw the one before.
    @Test func `frames do not depend on those that were received before them`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        let lines = [
            "subscription:a", "subscription:a\r", " subscription : a ", "message-id:1", "message-id:2", "message-id:",
            "destination:/1", "destination:/2", "destination:/\\c", "destination:/\\q", "destination:/\r/", "d:1",
            "d:2",
            "content-type:text/plain", "content-length:2", "content-length:3", "content-length: 2", "é:1", "x:\r",
            "x:" + String(repeating: "y", count: 200), "subscription:b", "no colon",
        ]
        let mandatory = "subscription:a\nmessage-id:7\ndestination:/q\n"
        func engine(_ version: STOMPVersion, _ longest: Int) throws -> ScriptedEngine {
            var configuration = STOMPEngineConfiguration()
            configuration.limits.maximumLineBytes = longest
            let client = try ScriptedEngine.connected(version, configuration: configuration)
            try client.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
            return client
        }
        func read(_ frame: [UInt8], by client: ScriptedEngine, _ effects: inout STOMPEffects) -> [String] {
            effects.removeAll()
            // The second part comes with the next read.
            let part = Array(frame[..<(frame.count / 2)])
            let consumed = client.engine.receive(part.span.bytes, at: 0, into: &effects)
            let rest = Array(frame[consumed...])
            _ = client.engine.receive(rest.span.bytes, at: 0, into: &effects)
            let records = effects.messages.map { record in
                let ranges = [record.headers, record.body, record.destination, record.messageID, record.contentType]
                let texts = ranges.map { String(decoding: rest[$0], as: UTF8.self) }
                return "\(record.subscription) \(record.flags) \(texts)"
            }
            return records + effects.events.map { "\($0.kind)" }
        }
        var shared = STOMPEffects()
        for version in [STOMPVersion.v12, .v11, .v10, .v12] {
            for round in 0..<400 {
                let picked = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    lines.randomElement(using: &random) ?? ""
                }
                let some = picked.map { $0 + "\n" }.joined()
                let head = Bool.random(using: &random) ? mandatory + some : some + mandatory
                let frame = Array("MESSAGE\n\(head)\nhi\0".utf8)
                let longest = round % 5 == 0 ? 14 : 4096
                var fresh = STOMPEffects()
                let expected = read(frame, by: try engine(version, longest), &fresh)
                #expect(read(frame, by: try engine(version, longest), &shared) == expected, "\(head)")
            }
        }
    }

    @Test func messageMayComeBeforeTheReceiptOfSubscribe() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", token: 1, receiptToken: 9, at: 0)
        client.receive(message("a") + "RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["message 1 /q hi", "receipt 9 received"])
    }

    @Test func messagesAfterUnsubscribeAreUnmatched() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
        _ = client.takeOutput()
        try client.engine.unsubscribe(id: "a", headers: ["durable": "true"], at: 0)
        #expect(client.takeOutput() == "UNSUBSCRIBE\nid:a\ndurable:true\n\n\0")
        client.receive(message("a"))
        #expect(client.takeLog() == ["message - /q hi"])
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.unsubscribe(id: "a", at: 0) }
                == .unknownSubscription)
    }

    @Test func idsAreUniqueOnAConnectionAndFreeOnTheNext() throws {
        let client = try ScriptedEngine.connected()
        let subscribe: (ScriptedEngine) throws(STOMPUsageError) -> Void = { e throws(STOMPUsageError) in
            try e.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
        }
        #expect(client.misuse(subscribe) == nil)
        #expect(client.misuse(subscribe) == .duplicateSubscription)
        client.close()
        client.connect()
        #expect(client.misuse(subscribe) == nil)
    }

    @Test func oneDotZeroWithoutSubscriptionHeaderGoesByDestination() throws {
        let client = try ScriptedEngine.connected(.v10, server: "ActiveMQ/5.17.2")
        try client.engine.subscribe(id: "a", destination: "/topic/x.*", token: 1, at: 0)
        try client.engine.subscribe(id: "b", destination: "/topic/x.y", token: 2, at: 0)
        #expect(client.takeOutput().hasPrefix("SUBSCRIBE\nid:a\n"), "the id is sent in 1.0 too")
        client.receive(message(nil, "/topic/x.y") + message(nil, "/topic/x.z") + message(" a ", "/topic/q"))
        #expect(
            client.takeLog() == [
                "message 2 /topic/x.y hi", "message 1 /topic/x.z hi",
                "message 1 /topic/q hi",
            ])
    }

    @Test func idsThatTheServerWritesInAnotherFormAreFound() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a:\\b", destination: "/q", token: 1, at: 0)
        client.receive(message("a\\c\\\\b") + message("a:\\\\b"))
        #expect(client.takeLog() == ["message 1 /q hi", "message 1 /q hi"])
    }

    @Test func repliesOfTemporaryQueuesCanBeExpected() throws {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        try client.engine.expectMessages(subscription: "/temp-queue/foo", destination: "/temp-queue/foo", token: 4)
        #expect(client.takeOutput() == "")
        client.receive(message("/temp-queue/foo"))
        #expect(client.takeLog() == ["message 4 /q hi"])
    }

    @Test func destinationsAreOpaque() throws {
        let client = try ScriptedEngine.connected()
        let destination = "//Queue/../a%2Fb/ é\u{301} ?x=y&z"
        try client.engine.send(destination: destination, body: [], at: 0)
        #expect(client.takeOutput() == "SEND\ndestination:\(destination)\n\n\0")
    }

    @Test func clientIndividualNeedsOneDotOne() throws {
        let client = try ScriptedEngine.connected(.v10)
        #expect(
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.subscribe(id: "a", destination: "/q", acknowledgement: .clientIndividual, token: 1, at: 0)
            } == .unsupportedByVersion)
    }

    @Test func thousandsOfSubscriptionsAreFoundWhateverWasRemoved() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        let client = try ScriptedEngine.connected()
        var live: [String: UInt64] = [:]
        for round in 0..<Campaign.rounds(200_000, least: 4_000) {
            let id = "subscription-\(Int.random(in: 0..<600, using: &generator))"
            if live[id] == nil {
                try client.engine.subscribe(id: id, destination: "/q", token: UInt64(round), at: 0)
                live[id] = UInt64(round)
            } else if Bool.random(using: &generator) {
                try client.engine.unsubscribe(id: id, at: 0)
                live[id] = nil
            }
            client.receive(message(id))
            let token = live[id].map { "\($0)" } ?? "-"
            #expect(client.takeLog() == ["message \(token) /q hi"], "seed \(Campaign.seed), round \(round)")
            client.engine.output.removeAll(keepingCapacity: true)
        }
    }

    @Test func recordBoundsFrameHeadersAndBody() throws {
        let client = try ScriptedEngine.connected()
        let text = Array("\nMESSAGE\na:b\nmessage-id:1\nsubscription:0\ndestination:/x\\cy\n\nbody\0\n".utf8)
        #expect(client.engine.receive(text.span.bytes, at: 0, into: &client.effects) == text.count)
        let record = try #require(client.effects.messages.first)
        func part(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
        #expect(part(record.frame) == "MESSAGE\na:b\nmessage-id:1\nsubscription:0\ndestination:/x\\cy\n\nbody\0")
        #expect(part(record.headers) == "a:b\nmessage-id:1\nsubscription:0\ndestination:/x\\cy\n")
        #expect(part(record.body) == "body" && part(record.destination) == "/x\\cy")
        #expect(record.flags == .escaped)
        let headers = STOMPHeaderReader(version: .v12).headers(in: text[record.headers].span.bytes)
        #expect(headers == ["a": "b", "message-id": "1", "subscription": "0", "destination": "/x:y"])
        #expect(MemoryLayout<STOMPMessageRecord>.stride <= 40)
    }
}
