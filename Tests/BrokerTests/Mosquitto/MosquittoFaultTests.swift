import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// A Mosquitto that freezes, restarts in the middle of everything, and is killed.
@Suite(.serialized, .requires(.mosquitto), .turns)
struct MosquittoFaultTests {
    private func client(
        _ broker: Mosquitto, _ id: String, _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        KeptSessions.client(broker.port, id) {
            $0.connectTimeout = .seconds(150)
            change(&$0)
        }
    }

    @Test func `a frozen broker is noticed by its missing PINGRESP, and found again`() async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker, "frozen") {
            $0.keepAlive = .seconds(5)
            $0.pingTimeout = .seconds(5)
        }
        try await client.connect()
        let states = client.states
        await broker.freeze()
        // On a busy machine the broker may have closed a connection before.
        let lost = await states.first { if case .waiting = $0 { "\($0)".contains("PINGREQ") } else { false } }
        #expect(lost != nil)
        broker.thaw()
        #expect(await eventually { client.state.isConnected })
        try await client.publish("alive", to: "a", qos: .exactlyOnce)
        await client.disconnect()
        await broker.stop()
    }

    enum Fault: Sendable {
        case restart, cut
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce], [Fault.restart, .cut])
    func `faults in the middle of many messages lose none, and repeat none of QoS 2`(
        qos: QoS, fault: Fault
    ) async throws {
        let count = Campaign.rounds(100_000, least: 2000)
        // Mosquitto 2.0 publishes what was in flight beyond its own limit, 20 by default, once more after a restart, even
        // when only PUBCOMP was missing: its limit is the receiver's Receive Maximum here.
        let broker = try await Mosquitto.start {
            $0.persistence = true
            $0.extraLines = ["max_queued_messages 0", "max_inflight_messages 1024"]
        }
        let receiver = client(broker, "receiver") { $0.receiveMaximum = 1024 }
        let sender = client(broker, "sender") { $0.maximumInFlight = 20 }
        try await receiver.connect()
        try await sender.connect()
        let messages = try await receiver.subscribe(
            to: "restart", qos: qos, buffer: BufferPolicy(messages: .max, bytes: .max))
        let progress = Atomic(0)
        let receiving = Task { () -> [Int] in
            var received: [Int] = []
            var distinct: Set<Int> = []
            for try await message in messages {
                let number = Int(message.text ?? "") ?? -1
                received.append(number)
                distinct.insert(number)
                progress.store(distinct.count, ordering: .relaxed)
                if distinct.count == count { break }
            }
            return received
        }
        let sending = Task { try await KeptSessions.publish(0..<count, to: "restart", qos, by: sender) }
        for round in 1...3 {
            let mark = count * round / 4
            _ = await eventually(timeout: .seconds(300)) { progress.load(ordering: .relaxed) >= mark }
            switch fault {
            case .restart: try await broker.restart()
            case .cut: for client in [sender, receiver] { client.core.link.dropConnection() }
            }
            #expect(await eventually { [sender, receiver].allSatisfy { $0.counters.connections > round } })
        }
        try await sending.value
        let received = try await receiving.value(within: .patience, "all messages")
        if qos == .exactlyOnce {
            #expect(received == Array(0..<count))
        } else {
            #expect(Set(received) == Set(0..<count))
        }
        #expect(receiver.counters.connections == 4 && sender.counters.connections == 4)
        await sender.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `a killed broker has forgotten: it is told, subscribed again, and what is open is published again`()
        async throws
    {
        let count = Campaign.rounds(1000, least: 5)
        let window = 20
        let broker = try await Mosquitto.start()
        let receiver = client(broker, "receiver")
        let sender = client(broker, "sender") { $0.maximumInFlight = UInt16(window) }
        try await receiver.connect()
        try await sender.connect()
        let messages = try await receiver.subscribe(to: "killed", qos: .exactlyOnce)
        var events = sender.events.makeAsyncIterator()
        var resubscribed = receiver.events.makeAsyncIterator()
        await broker.freeze()
        let waiting = Task {
            try await sender.publish(
                (0..<count).map { .init(Array("\($0)".utf8), to: "killed", qos: .exactlyOnce) }
            ).check()
        }
        let areSent = await eventually {
            let backlog = sender.backlog
            return backlog.messagesInFlight == min(count, window) && backlog.outboxBytes == 0
        }
        #expect(areSent, "\(sender.backlog)")
        await broker.kill()
        sender.networkChanged()
        try await broker.restart()
        var lost: (Int, Int)?
        while lost == nil, let event = await events.next() {
            if case .sessionLost(let republished, let duplicates) = event { lost = (republished, duplicates) }
        }
        // What was on its way; the rest was never sent.
        #expect(lost?.0 == min(count, window) && lost?.1 == min(count, window))
        try await waiting.value
        while let event = await resubscribed.next() {
            if case .resubscribed(let filter, let code) = event {
                #expect(filter == "killed" && !code.isError)
                break
            }
        }
        try await sender.publish("end", to: "killed", qos: .exactlyOnce)
        var iterator = messages.makeAsyncIterator()
        while try await iterator.next()?.text != "end" {}
        await sender.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `what a process enqueued is delivered by the next one, exactly once`() async throws {
        let broker = try await Mosquitto.start { $0.persistence = true }
        let scratch = try ScratchDirectory("session")
        let receiver = client(broker, "receiver")
        try await receiver.connect()
        let messages = try await receiver.subscribe(to: "stored", qos: .exactlyOnce)
        for round in 0..<5 {
            let sender = client(broker, "sender") {
                $0.sessionStore = FileSessionStore(directory: scratch.file("s"))
            }
            let first: [UInt8] = [UInt8(round * 10)]
            #expect(
                await eventually {
                    (try? await sender.enqueue(MQTTOutgoingMessage(first, to: "stored", qos: .exactlyOnce))) != nil
                })
            if round % 2 == 0 { try await sender.connect() }
            for number in 1..<10 {
                try await sender.enqueue(
                    MQTTOutgoingMessage([UInt8(round * 10 + number)], to: "stored", qos: .exactlyOnce))
            }
            if round == 2 { try await broker.restart() }
            // Gone without a word, whatever is on its way.
        }
        let last = client(broker, "sender") { $0.sessionStore = FileSessionStore(directory: scratch.file("s")) }
        #expect(await eventually { (try? await last.connect()) != nil })
        var received: [UInt8] = []
        var iterator = messages.makeAsyncIterator()
        while received.count < 50, let message = try await iterator.next() { received += message.bytes }
        #expect(received == Array(0..<50))
        await last.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `messages of a session without a subscription are kept over two processes`() async throws {
        let broker = try await Mosquitto.start { $0.persistence = true }
        let scratch = try ScratchDirectory("kept")
        let count = Campaign.rounds(1000, least: 15)
        func next() -> MQTTClient {
            client(broker, "keeper") { $0.sessionStore = FileSessionStore(directory: scratch.file("s")) }
        }
        do {
            let first = next()
            try await first.connect()
            let subscription = try await first.subscribe(to: "kept/+", qos: .exactlyOnce)
            await first.disconnect()
            for try await _ in subscription {}
        }
        let sender = client(broker, "sender")
        try await sender.connect()
        try await sender.publish(
            (0..<count).map {
                MQTTOutgoingMessage("\($0)", to: "kept/\($0 % 2)", qos: $0 % 3 == 0 ? .atLeastOnce : .exactlyOnce)
            }
        ).check()
        do {
            // Takes what the session held, stores it, acknowledges, and goes without having looked at it.
            let second = next()
            #expect(await eventually { (try? await second.connect()) != nil })
            #expect(
                await eventually { second.core.link.perform { $0.unmatched.count } == count })
            try await second.enqueue(MQTTOutgoingMessage([0], to: "elsewhere"))
            await second.disconnect()
        }
        let third = next()
        #expect(await eventually { (try? await third.connect()) != nil })
        let messages = try await third.subscribe(to: "kept/#", qos: .exactlyOnce)
        try await sender.publish("end", to: "kept/0", qos: .exactlyOnce)
        var received: [Int] = []
        var iterator = messages.makeAsyncIterator()
        while let message = try await iterator.next(), message.text != "end" {
            if let number = message.text.flatMap({ Int($0) }) { received.append(number) }
        }
        // The order of each QoS: Mosquitto passes a QoS 2 message on when it is released, and others overtake it.
        let all = Array(0..<count)
        #expect(received.filter { $0 % 3 == 0 } == all.filter { $0 % 3 == 0 })
        #expect(received.filter { $0 % 3 != 0 } == all.filter { $0 % 3 != 0 })
        #expect(received.count == count)
        await third.disconnect()
        await sender.disconnect()
        await broker.stop()
    }
}
