import LoopbackBroker
import MessagingJudge
import TestSupport
import Testing

/// The MQTT side, spoken to in hand-written bytes.
@Suite(.turns) struct MQTTTests {
    @Test(arguments: [3, 4] as [UInt8]) func acceptsBothOldVersions(level: UInt8) async throws {
        try await withBroker { broker in
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a", level: level))
            try await client.send(MQTTBytes.ping)
            try await client.expect([0xD0, 0])
        }
    }

    @Test func accepts5AndSaysWhatItTakes() async throws {
        try await withBroker { broker in
            let client = try await RawClient.open(broker.ports.mqtt)
            try await client.send(MQTTBytes.connect("", level: 5))
            let connack = try await client.read(5)
            #expect(connack[0] == 0x20 && connack[2] == 0 && connack[3] == 0)
            let properties = try await client.read(Int(connack[4]))
            // Assigned Client Identifier.
            #expect(properties.contains(0x12))
        }
    }

    @Test func `the filters of a session are bounded by bytes`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumSessionBytes = 100
        try await withBroker(options) { broker in
            let (one, other) = (String(repeating: "a", count: 60), String(repeating: "b", count: 60))
            let first = try await RawClient.mqtt(broker, MQTTBytes.connect("a", clean: false))
            try await first.send(MQTTBytes.subscribe(one) + MQTTBytes.subscribe(other, id: 2))
            try await first.expect([0x90, 3, 0, 1, 0, 0x90, 3, 0, 2, 0x80])
            try await first.send(MQTTBytes.disconnect)
            try await first.expectEnd()
            let second = try await RawClient.mqtt(broker, MQTTBytes.connect("a", clean: false), present: 1)
            // What it has, it may ask for again.
            try await second.send(MQTTBytes.subscribe(other) + MQTTBytes.subscribe(one, qos: 1, id: 2))
            try await second.expect([0x90, 3, 0, 1, 0x80, 0x90, 3, 0, 2, 1])
            try await second.send(MQTTBytes.unsubscribe(one) + MQTTBytes.subscribe(other, id: 2))
            try await second.expect([0xB0, 2, 0, 1, 0x90, 3, 0, 2, 0])
            // Both in one packet.
            let both = [0, 3] + MQTTBytes.text(one) + [0] + MQTTBytes.text("c") + [0]
            try await second.send(MQTTBytes.packet(0x82, both))
            try await second.expect([0x90, 4, 0, 3, 0x80, 0])
        }
    }

    @Test func `a will is bounded by bytes`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumSessionBytes = 100
        try await withBroker(options) { broker in
            let will = (topic: "will", payload: String(repeating: "x", count: 97), qos: UInt8(0), retain: false)
            let client = try await RawClient.open(broker.ports.mqtt)
            try await client.send(MQTTBytes.connect("a", will: will))
            // Server unavailable; 3.1.1 has no better code.
            try await client.expect([0x20, 2, 0, 3])
            try await client.expectEnd()
            let shorter = (will.topic, String(repeating: "x", count: 96), will.qos, will.retain)
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("a", will: shorter))
        }
    }

    @Test func deliversToEveryMatchingSubscriberOnceAtTheLowerQoS() async throws {
        try await withBroker { broker in
            let one = try await RawClient.mqtt(broker, MQTTBytes.connect("one"))
            try await one.send(MQTTBytes.subscribe("a/+", qos: 0))
            try await one.expect([0x90, 3, 0, 1, 0])
            let both = try await RawClient.mqtt(broker, MQTTBytes.connect("both"))
            try await both.send(MQTTBytes.subscribe("a/#", qos: 0) + MQTTBytes.subscribe("a/b", qos: 1, id: 2))
            try await both.expect([0x90, 3, 0, 1, 0, 0x90, 3, 0, 2, 1])
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            try await sender.send(MQTTBytes.publish("a/b", "hi", qos: 1, id: 9))
            try await sender.expect([0x40, 2, 0, 9])
            try await one.expect(MQTTBytes.publish("a/b", "hi"))
            try await both.expect(MQTTBytes.publish("a/b", "hi", qos: 1))
            try await both.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
        }
    }

    @Test func takesQoS2Once() async throws {
        try await withBroker { broker in
            let reader = try await RawClient.mqtt(broker, MQTTBytes.connect("reader"))
            try await reader.send(MQTTBytes.subscribe("t", qos: 2))
            try await reader.expect([0x90, 3, 0, 1, 2])
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            try await sender.send(MQTTBytes.publish("t", "x", qos: 2, id: 7))
            try await sender.expect([0x50, 2, 0, 7])
            try await sender.send(MQTTBytes.publish("t", "x", qos: 2, id: 7, isDuplicate: true))
            try await sender.expect([0x50, 2, 0, 7])
            try await sender.send([0x62, 2, 0, 7])
            try await sender.expect([0x70, 2, 0, 7])
            try await reader.expect(MQTTBytes.publish("t", "x", qos: 2))
            try await reader.send([0x50, 2, 0, 1])
            try await reader.expect([0x62, 2, 0, 1])
            try await reader.send([0x70, 2, 0, 1])
            try await reader.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
        }
    }

    @Test(arguments: [4, 5] as [UInt8])
    func `tells a publisher of MQTT 5.0 which of its messages match no subscription`(level: UInt8) async throws {
        try await withBroker { broker in
            // A session without a connection has subscriptions too.
            let absent = try await RawClient.mqtt(broker, MQTTBytes.connect("absent", clean: false))
            try await absent.send(MQTTBytes.subscribe("kept"))
            try await absent.expect([0x90, 3, 0, 1, 0])
            try await absent.send(MQTTBytes.disconnect)
            let sender = try await RawClient.open(broker.ports.mqtt)
            try await sender.send(MQTTBytes.connect("sender", level: level))
            let connack = try await sender.read(level == 4 ? 4 : 5)
            if level == 5 { _ = try await sender.read(Int(connack[4])) }
            func publish(_ topic: String, qos: UInt8, id: UInt8) -> [UInt8] {
                let body = MQTTBytes.text(topic) + [0, id] + (level == 5 ? [0] : [])
                return MQTTBytes.packet(0x30 | qos << 1, body)
            }
            func answer(_ type: UInt8, _ id: UInt8, isUnmatched: Bool) -> [UInt8] {
                isUnmatched && level == 5 ? [type, 3, 0, id, 0x10] : [type, 2, 0, id]
            }
            let published =
                publish("nobody", qos: 1, id: 1) + publish("kept", qos: 1, id: 2) + publish("nobody", qos: 2, id: 3)
                + publish("kept", qos: 2, id: 4) + publish("nobody", qos: 1, id: 5)
            try await sender.send(published)
            for (type, id, isUnmatched) in [
                (0x40, 1, true), (0x40, 2, false), (0x50, 3, true), (0x50, 4, false), (0x40, 5, true),
            ] as [(UInt8, UInt8, Bool)] { try await sender.expect(answer(type, id, isUnmatched: isUnmatched)) }
            try await sender.send([0x62, 2, 0, 3])
            try await sender.expect([0x70, 2, 0, 3])
        }
    }

    @Test func keepsARetainedMessageUntilAnEmptyOneClearsIt() async throws {
        try await withBroker { broker in
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            try await sender.send(MQTTBytes.publish("r", "old", retain: true))
            try await sender.send(MQTTBytes.publish("r", "new", qos: 1, retain: true))
            try await sender.expect([0x40, 2, 0, 1])
            let reader = try await RawClient.mqtt(broker, MQTTBytes.connect("reader"))
            try await reader.send(MQTTBytes.subscribe("#"))
            try await reader.expect([0x90, 3, 0, 1, 0] + MQTTBytes.publish("r", "new", retain: true))
            // To a subscription that is there already it comes as an ordinary message.
            try await sender.send(MQTTBytes.publish("r", "", qos: 1, retain: true))
            try await sender.expect([0x40, 2, 0, 1])
            try await reader.expect(MQTTBytes.publish("r", ""))
            #expect(broker.retainedCount == 0)
            try await reader.send(MQTTBytes.subscribe("#", id: 3))
            try await reader.expect([0x90, 3, 0, 3, 0])
            try await reader.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
        }
    }

    @Test func hidesDollarTopicsFromWildcards() async throws {
        try await withBroker { broker in
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
            try await client.send(MQTTBytes.subscribe("#") + MQTTBytes.subscribe("$x/#", id: 2))
            try await client.expect([0x90, 3, 0, 1, 0, 0x90, 3, 0, 2, 0])
            try await client.send(MQTTBytes.publish("$x/y", "1"))
            try await client.expect(MQTTBytes.publish("$x/y", "1"))
            try await client.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
        }
    }

    @Test func `after DISCONNECT with any reason but normal disconnection the will is published`() async throws {
        try await withBroker { broker in
            let watcher = try await RawClient.mqtt(broker, MQTTBytes.connect("watcher"))
            try await watcher.send(MQTTBytes.subscribe("gone/#"))
            try await watcher.expect([0x90, 3, 0, 1, 0])
            for reason in [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
                as [UInt8]
            {
                let client = try await RawClient.open(broker.ports.mqtt)
                try await client.send(
                    MQTTBytes.connect("client", level: 5, will: ("gone/\(reason)", "x", 0, false)))
                let connack = try await client.read(5)
                _ = try await client.read(Int(connack[4]))
                try await client.send([0xE0, 1, reason])
                try await client.expectEnd()
                if reason != 0 { try await watcher.expect(MQTTBytes.publish("gone/\(reason)", "x")) }
                try await watcher.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
            }
        }
    }

    @Test func publishesTheWillWhenAConnectionBreaksAndNotAfterDisconnect() async throws {
        try await withBroker { broker in
            let watcher = try await RawClient.mqtt(broker, MQTTBytes.connect("watcher"))
            try await watcher.send(MQTTBytes.subscribe("gone/#"))
            try await watcher.expect([0x90, 3, 0, 1, 0])
            do {
                let polite = try await RawClient.mqtt(
                    broker, MQTTBytes.connect("polite", will: ("gone/polite", "x", 0, false)))
                try await polite.send(MQTTBytes.disconnect)
                try await polite.expectEnd()
                let rude = try await RawClient.mqtt(
                    broker, MQTTBytes.connect("rude", will: ("gone/rude", "x", 0, false)))
                try await rude.send(MQTTBytes.ping)
                try await rude.expect([0xD0, 0])
            }
            try await watcher.expect(MQTTBytes.publish("gone/rude", "x"))
            let silent = try await RawClient.mqtt(
                broker, MQTTBytes.connect("silent", keepAlive: 1, will: ("gone/silent", "x", 0, false)))
            try await watcher.expect(MQTTBytes.publish("gone/silent", "x"))
            try await silent.expectEnd()
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("twin", will: ("gone/twin", "x", 0, false)))
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("twin"))
            try await watcher.expect(MQTTBytes.publish("gone/twin", "x"))
        }
    }

    @Test func `CONNACK names the session expiry that the broker uses instead of the client's`() async throws {
        for keepsSessions in [true, false] {
            var options = LoopbackBrokerOptions()
            options.keepsSessions = keepsSessions
            try await withBroker(options) { broker in
                for (asked, isTold) in [([0x11, 0, 0, 14, 16], !keepsSessions), ([], false)] as [([UInt8], Bool)] {
                    let client = try await RawClient.open(broker.ports.mqtt)
                    try await client.send(MQTTBytes.connect("a", level: 5, properties: asked))
                    let head = try await client.read(2)
                    let rest = try await client.read(Int(head[1]))
                    #expect(head[0] == 0x20 && rest[1] == 0)
                    #expect((rest.firstRange(of: [0x11, 0, 0, 0, 0]) != nil) == isTold, "\(keepsSessions) \(asked)")
                }
            }
        }
    }

    @Test func `keeps a message of the client to itself that comes with its DISCONNECT`() async throws {
        try await withBroker { broker in
            let first = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false))
            try await first.send(MQTTBytes.subscribe("a", qos: 1))
            try await first.expect([0x90, 3, 0, 1, 1])
            try await first.send(
                MQTTBytes.publish("a", "lost") + MQTTBytes.publish("a", "kept", qos: 1) + MQTTBytes.disconnect)
            _ = try await first.connection.receive { _ in false }
            let second = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false), present: 1)
            try await second.expect(MQTTBytes.publish("a", "kept", qos: 1))
            #expect(broker.statistics.messagesDropped == 0)
        }
    }

    @Test func keepsASessionAndWhatCameMeanwhile() async throws {
        try await withBroker { broker in
            let first = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false))
            try await first.send(MQTTBytes.subscribe("q/#", qos: 1))
            try await first.expect([0x90, 3, 0, 1, 1])
            try await first.send(MQTTBytes.disconnect)
            try await first.expectEnd()
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            try await sender.send(MQTTBytes.publish("q/0", "lost"))
            try await sender.send(MQTTBytes.publish("q/1", "kept", qos: 1))
            try await sender.expect([0x40, 2, 0, 1])
            let second = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false), present: 1)
            let message = try await second.read(13)
            #expect(message == MQTTBytes.publish("q/1", "kept", qos: 1))
            // Not acknowledged: it comes again, marked as a repetition.
            try await second.send(MQTTBytes.disconnect)
            try await second.expectEnd()
            let third = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false), present: 1)
            try await third.expect(MQTTBytes.publish("q/1", "kept", qos: 1, isDuplicate: true))
            try await third.send([0x40, 2, 0, 1] + MQTTBytes.disconnect)
            try await third.expectEnd()
            let fourth = try await RawClient.mqtt(broker, MQTTBytes.connect("s"))
            try await fourth.send(MQTTBytes.disconnect)
            try await fourth.expectEnd()
            #expect(broker.sessionCount == 1)
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false))
        }
    }

    @Test func endsTheOldConnectionOfTheSameClient() async throws {
        try await withBroker { broker in
            let old = try await RawClient.mqtt(broker, MQTTBytes.connect("same", clean: false))
            try await old.send(MQTTBytes.subscribe("t"))
            try await old.expect([0x90, 3, 0, 1, 0])
            let new = try await RawClient.mqtt(broker, MQTTBytes.connect("same", clean: false), present: 1)
            try await old.expectEnd()
            try await new.send(MQTTBytes.publish("t", "mine"))
            try await new.expect(MQTTBytes.publish("t", "mine"))
            #expect(await eventually { broker.connectionCount == 1 })
        }
    }

    @Test func answersWhatFollowsConnectAtOnce() async throws {
        try await withBroker(mayBreak: [.packetIdentifierInUse]) { broker in
            let first = try await RawClient.mqtt(broker, MQTTBytes.connect("s", clean: false))
            try await first.send(MQTTBytes.disconnect)
            try await first.expectEnd()
            let client = try await RawClient.open(broker.ports.mqtt)
            try await client.send(
                MQTTBytes.connect("s", clean: false) + MQTTBytes.subscribe("t") + MQTTBytes.publish("t", "x", qos: 1))
            try await client.expect([0x20, 2, 1, 0, 0x90, 3, 0, 1, 0])
            try await client.expect(MQTTBytes.publish("t", "x") + [0x40, 2, 0, 1])
        }
    }

    @Test func refusesWrongCredentials() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "secret")]
        try await withBroker(options) { broker in
            _ = try await RawClient.mqtt(broker, MQTTBytes.connect("a", user: ("ann", "secret")))
            let wrong = try await RawClient.open(broker.ports.mqtt)
            try await wrong.send(MQTTBytes.connect("b", user: ("ann", "guess")))
            try await wrong.expect([0x20, 2, 0, 4])
            try await wrong.expectEnd()
            let none = try await RawClient.open(broker.ports.mqtt)
            try await none.send(MQTTBytes.connect("c"))
            try await none.expect([0x20, 2, 0, 5])
            try await none.expectEnd()
            let five = try await RawClient.open(broker.ports.mqtt)
            try await five.send(MQTTBytes.connect("d", level: 5, user: ("bob", "secret")))
            let connack = try await five.read(4)
            #expect(connack[3] == 0x86)
        }
    }

    @Test func sharesASubscriptionInTurns() async throws {
        try await withBroker { broker in
            let one = try await RawClient.mqtt(broker, MQTTBytes.connect("one"))
            let two = try await RawClient.mqtt(broker, MQTTBytes.connect("two"))
            for client in [one, two] {
                try await client.send(MQTTBytes.subscribe("$share/g/t"))
                try await client.expect([0x90, 3, 0, 1, 0])
            }
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            for number in 0..<4 { try await sender.send(MQTTBytes.publish("t", "\(number)")) }
            try await one.expect(MQTTBytes.publish("t", "0") + MQTTBytes.publish("t", "2"))
            try await two.expect(MQTTBytes.publish("t", "1") + MQTTBytes.publish("t", "3"))
        }
    }

    @Test func closesOnNonsense() async throws {
        try await withBroker(mayBreak: [.malformedPacket]) { broker in
            let client = try await RawClient.open(broker.ports.mqtt)
            try await client.send("GET / HTTP/1.1\r\n\r\n")
            try await client.expectEnd()
            #expect(await eventually { broker.connectionCount == 0 })
        }
    }
}
