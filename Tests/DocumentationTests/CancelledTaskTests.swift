import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing

/// What each call does in a task that is cancelled, as the article about workers shows it.
@Suite("Calls in a cancelled task", .turns)
struct CancelledTaskTests {
    struct Subject: Sendable {
        let broker: LoopbackBroker
        let mqtt: MQTTClient
        let stomp: STOMPClient
        let packets: MQTTSubscription
        let packet: MQTTMessage
        let frames: STOMPSubscription
        let frame: STOMPMessage
        let transaction: STOMPTransactionHandle
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let calls: [@Sendable (Subject) async throws -> Void]

        init(_ name: String, _ calls: (@Sendable (Subject) async throws -> Void)...) {
            (self.name, self.calls) = (name, calls)
        }

        var testDescription: String { name }
    }

    @Test(arguments: stomp) func `STOMP calls do what the article shows`(row: Row) async throws {
        try await Self.check(row, in: "STOMP") {
            // After a graceful end there is no connection for a mark.
            if $0.stomp.state.isConnected { try await $0.stomp.sendAndConfirm("x", to: "/queue/marker") }
        }
    }

    @Test(arguments: mqtt) func `MQTT calls do what the article shows`(row: Row) async throws {
        try await Self.check(row, in: "MQTT") {
            if $0.mqtt.state.isConnected { try await $0.mqtt.publish("x", to: "marker", qos: .atLeastOnce) }
        }
    }

    @Test func `the article shows exactly these calls`() throws {
        #expect(try Set(CallTable("STOMP", in: "Workers").cells.keys) == Set(Self.stomp.map(\.name)))
        #expect(try Set(CallTable("MQTT", in: "Workers").cells.keys) == Set(Self.mqtt.map(\.name)))
    }

    /// Makes each call of a row in a cancelled task, each with a connection of its own.
    ///
    /// - Parameter mark: sends something that the broker receives after what the call has sent.
    static func check(_ row: Row, in table: String, mark: (Subject) async throws -> Void) async throws {
        let cells = try #require(try CallTable(table, in: "Workers").cells[row.name])
        for (number, call) in row.calls.enumerated() {
            let subject = try await Self.connect()
            var arrivals = subject.broker.arrivals().makeAsyncIterator()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                do {
                    try await call(subject)
                    return "returns"
                } catch let error as MQTTError {
                    return "`\(error.code)`"
                } catch let error as STOMPError {
                    return "`\(error.code)`"
                }
            }
            #expect(try await task.value == cells[0], "call \(number)")
            // The loop may send what the call has asked of it only at the end of the round in which it handles the answer to the
            // first mark. The second mark may be sent before that, the third one is not.
            for _ in 0..<3 { try await mark(subject) }
            var (marks, isSent) = (0, false)
            while marks < 3, !isSent, let arrival = await arrivals.next() {
                if arrival.topic?.contains("marker") == true { marks += 1 } else { isSent = true }
            }
            #expect(isSent == (cells[1] == "yes"), "call \(number)")
            await subject.mqtt.disconnect()
            await subject.stomp.disconnect()
            await subject.broker.stop()
        }
    }

    static func connect() async throws -> Subject {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration(clientID: "caller")
        configuration.version = .v5_0
        let mqtt = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration)
        let stomp = STOMPClient(broker.urls.stomp ?? "")
        try await mqtt.connect()
        try await stomp.connect()
        let packets = try await mqtt.subscribe(to: "held", acknowledgement: .manual)
        try await mqtt.publish("1", to: "held", qos: QoS.atLeastOnce, properties: [.responseTopic("answers")])
        let frames = try await stomp.subscribe(to: "/queue/held", acknowledgement: .clientIndividual)
        try await stomp.sendAndConfirm("1", to: "/queue/held", options: STOMPSendOptions(replyTo: "/queue/answers"))
        var (packet, frame): (MQTTMessage?, STOMPMessage?)
        for try await message in packets {
            packet = message
            break
        }
        for try await message in frames {
            frame = message
            break
        }
        let transaction = try stomp.begin()
        // Confirmed, so that the broker has received BEGIN too.
        try await stomp.sendAndConfirm("ready", to: "/queue/ready")
        return Subject(
            broker: broker, mqtt: mqtt, stomp: stomp, packets: packets, packet: try #require(packet), frames: frames,
            frame: try #require(frame), transaction: transaction)
    }

    // The rows of the article's tables. Each call is checked by itself.
    private static let stompReturns =
        "`acknowledge()`, `reject()`, `begin`, `abort`, `send`, `sendForReceipt`, `reply`, `disconnect`, `suspend`"
    private static let stompThrows =
        "`sendAndConfirm`, `commit`, `request`, `subscribe`, the next message, `connect`"
    private static let stompThrowsAndSends =
        "`sendAndConfirm` of an array, `withTransaction`, `unsubscribe()` of a subscription"
    private static let mqttReturns = "`acknowledge()`, `publish` with QoS 0, `tryPublish`, `disconnect`, `suspend`"
    private static let mqttThrows =
        "`publish` with QoS 1 and 2, `publishForConfirmation`, `enqueue`, `reply`, `request`, `subscribe`, the next message, `connect`"

    static let stomp = [
        Row(stompReturns, { try $0.frame.acknowledge() }, { try $0.frame.reject() }),
        Row(stompReturns, { _ = try $0.stomp.begin() }, { try $0.stomp.abort($0.transaction) }),
        Row(
            stompReturns, { try await $0.stomp.send("x", to: "/queue/x") },
            { try await $0.stomp.reply(to: $0.frame, with: "x") }),
        Row(stompReturns, { _ = try await $0.stomp.sendForReceipt(STOMPOutgoingMessage("x", to: "/queue/x")) }),
        Row(stompThrows, { try await $0.stomp.sendAndConfirm("x", to: "/queue/x") }),
        Row(
            stompThrowsAndSends,
            { subject in
                // Receipts that have arrived count even in a cancelled task: none does.
                await subject.broker.freeze()
                let results = await subject.stomp.sendAndConfirm([STOMPOutgoingMessage("x", to: "/queue/x")])
                await subject.broker.thaw()
                try results.check()
            }),
        Row(stompThrows, { try await $0.stomp.commit($0.transaction) }),
        Row(stompThrowsAndSends, { try await $0.stomp.withTransaction { _ in } }),
        Row(stompThrows, { _ = try await $0.stomp.request("x", to: "/queue/x") }),
        Row(stompThrows, { _ = try await $0.stomp.subscribe(to: "/queue/x") }),
        Row(
            stompThrows,
            {
                var messages = $0.frames.makeAsyncIterator()
                _ = try await messages.next()
            }),
        Row(stompThrowsAndSends, { try await $0.frames.unsubscribe() }),
        Row(stompThrows, { try await $0.stomp.connect() }),
        Row(stompReturns, { await $0.stomp.disconnect() }, { await $0.stomp.suspend() }),
    ]

    static let mqtt = [
        Row(mqttReturns, { $0.packet.acknowledge() }),
        Row(
            mqttReturns, { try await $0.mqtt.publish("x", to: "x") },
            { _ = try $0.mqtt.tryPublish(MQTTOutgoingMessage("x", to: "x")) }),
        Row(
            mqttThrows, { try await $0.mqtt.publish("x", to: "x", qos: QoS.atLeastOnce) },
            { try await $0.mqtt.publish("x", to: "x", qos: QoS.exactlyOnce) },
            { try await $0.mqtt.reply(to: $0.packet, with: "x") }),
        Row(
            mqttThrows,
            {
                try await $0.mqtt.publish([MQTTOutgoingMessage([1], to: "x", qos: QoS.atLeastOnce)]).check()
            }),
        Row(
            mqttThrows,
            { _ = try await $0.mqtt.publishForConfirmation(MQTTOutgoingMessage("x", to: "x", qos: QoS.atLeastOnce)) }),
        Row(mqttThrows, { try await $0.mqtt.enqueue(MQTTOutgoingMessage("x", to: "x", qos: QoS.atLeastOnce)) }),
        Row(mqttThrows, { _ = try await $0.mqtt.request("x", to: "x") }),
        Row(mqttThrows, { _ = try await $0.mqtt.subscribe(to: "x") }),
        Row(
            mqttThrows,
            {
                var messages = $0.packets.makeAsyncIterator()
                _ = try await messages.next()
            }),
        Row("`unsubscribe()` of a subscription", { try await $0.packets.unsubscribe() }),
        Row(mqttThrows, { try await $0.mqtt.connect() }),
        Row(mqttReturns, { await $0.mqtt.disconnect() }, { await $0.mqtt.suspend() }),
    ]
}
