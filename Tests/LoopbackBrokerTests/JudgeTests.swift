import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import MessagingJudge
import Synchronization
import Testing

/// A broker that compares what its clients write with the rules of their protocol.
@Suite struct JudgeTests {
    /// PUBACK of a message that there was not, and a packet whose answer shows that it was read.
    private static let wrong: [UInt8] = [0x40, 2, 0, 9]

    private static func options(_ judging: Judging = Judging()) -> LoopbackBrokerOptions {
        var options = LoopbackBrokerOptions()
        options.judgesClients = true
        options.judging = judging
        return options
    }

    /// A broker that reports nothing by itself.
    private static func withBroker(
        _ options: LoopbackBrokerOptions, _ body: (LoopbackBroker) async throws -> Void
    ) async throws {
        let broker = try await LoopbackBroker.start(options)
        do {
            try await body(broker)
        } catch {
            await broker.stop()
            throw error
        }
        await broker.stop()
    }

    private static func breakRule(at broker: LoopbackBroker) async throws {
        let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
        try await client.send(wrong + [0xC0, 0])
        try await client.expect([0xD0, 0])
    }

    @Test func `A rule that a client breaks is named with its clause and the packet`() async throws {
        try await Self.withBroker(Self.options()) { broker in
            try await Self.breakRule(at: broker)
            #expect(
                broker.violations == [
                    "'a' broke the rule 'answerWithoutPublish' on connection 1. The server has written no PUBLISH on this "
                        + "connection that it answers. PUBACK id 9 [v5 MQTT-2.2.1-5, v3 MQTT-2.3.1-6]"
                ])
        }
    }

    @Test func `A rule of STOMP that a client breaks is named with its chapter and the frame`() async throws {
        try await Self.withBroker(Self.options()) { broker in
            let client = try await RawClient.stomp(broker, "client-id:a\n")
            try await client.send("UNSUBSCRIBE\nid:7\n\n\0")
            #expect(try await client.readFrame().hasPrefix("ERROR\n"))
            #expect(
                broker.violations == [
                    "'a' broke the rule 'subscriptionUnknown' on connection 1. The connection has no such subscription. "
                        + "UNSUBSCRIBE id:7 [STOMP 1.1 and 1.2 UNSUBSCRIBE]"
                ])
        }
    }

    @Test func `Clients are not judged unless that is asked for`() async throws {
        try await Self.withBroker(LoopbackBrokerOptions()) { broker in
            try await Self.breakRule(at: broker)
            #expect(broker.violations.isEmpty)
        }
    }

    @Test func `Stopping reports what was found, without rules that may be broken`() async throws {
        for mayBreak in [[], [.answerWithoutPublish]] as [Set<Clause>] {
            let reported = Mutex<[[Clause]]>([])
            var judging = Judging()
            judging.mayBreak = mayBreak
            judging.onStop = { found in reported.withLock { $0.append(found.map(\.clause)) } }
            let broker = try await LoopbackBroker.start(Self.options(judging))
            try await Self.breakRule(at: broker)
            await broker.stop()
            await broker.stop()
            #expect(reported.withLock { $0 } == [mayBreak.isEmpty ? [.answerWithoutPublish] : []])
        }
    }

    @Test func `A client that keeps the rules is not blamed, also over WebSocket`() async throws {
        try await Self.withBroker(Self.options()) { broker in
            for url in try [broker.mqttURL, broker.wsURL] {
                let client = MQTTClient(url, clientID: "good")
                try await client.connect()
                let messages = try await client.subscribe(to: "t", qos: .exactlyOnce)
                for qos in QoS.allCases { try await client.publish("x", to: "t", qos: qos) }
                var count = 0
                for try await _ in messages {
                    count += 1
                    if count == 3 { break }
                }
                await client.disconnect()
            }
            #expect(broker.violations == [])
        }
    }

    @Test func `A test that breaks a rule without saying so fails with the clause and the packet`() async throws {
        let broker = try await LoopbackBroker.judged()
        try await Self.breakRule(at: broker)
        await withKnownIssue {
            await broker.stop()
        } matching: { issue in
            issue.comments.contains { $0.rawValue.contains("PUBACK id 9 [v5 MQTT-2.2.1-5, v3 MQTT-2.3.1-6]") }
        }
        let other = try await LoopbackBroker.judged(mayBreak: [.answerWithoutPublish])
        try await Self.breakRule(at: other)
        await other.stop()
    }

    /// Those that start one without a judge are of programs and samples that users start as they are.
    @Test(arguments: ["ClientTestSupport", "InspectorTests", "LoopbackBrokerTests", "MQTTTests", "STOMPTests"])
    func `The brokers of these tests judge their clients`(folder: String) throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let place = tests.appending(path: folder)
        let files = try FileManager.default.subpathsOfDirectory(atPath: place.path).filter { $0.hasSuffix(".swift") }
        #expect(!files.isEmpty)
        for file in files where !file.hasSuffix("JudgeTests.swift") {
            let lines = try String(contentsOf: place.appending(path: file), encoding: .utf8).split(separator: "\n")
            let plain = lines.filter { $0.contains("LoopbackBroker.start(") && !$0.contains("//") }
            #expect(plain.isEmpty, "\(folder)/\(file): start it with LoopbackBroker.judged")
        }
    }
}
