import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Mosquitto 2.0.11 sends more messages without an acknowledgement than Receive Maximum allows, after a resumed session and
/// on a slow link: every message arrives all the same.
@Suite(.serialized, .requires(.mosquitto), .turns)
struct MosquittoWindowTests {
    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce], [1024, 20] as [UInt16])
    func `all messages arrive in order over a link that stalls`(qos: QoS, receiveMaximum: UInt16) async throws {
        let count = Campaign.rounds(20_000, least: 1000)
        let broker = try await Mosquitto.start { $0.extraLines = ["max_queued_messages 0"] }
        let relay = try TCPRelay.start(to: broker.port, stallingOneReadIn: 50)
        let receiver = KeptSessions.client(relay.port, "receiver") { $0.receiveMaximum = receiveMaximum }
        let sender = KeptSessions.client(broker.port, "sender")
        let messages = receiver.subscription(
            to: "window", qos: qos, buffer: BufferPolicy(messages: .max, bytes: .max))
        try await receiver.connect()
        // Granted, at the latest when the broker has answered another request.
        _ = try await receiver.subscribe(to: "other")
        try await sender.connect()
        let receiving = Task { () -> [Int] in
            var received: [Int] = []
            for try await message in messages {
                received.append(Int(message.text ?? "") ?? -1)
                if received.count == count { break }
            }
            return received
        }
        try await KeptSessions.publish(0..<count, to: "window", qos, by: sender)
        let received = try await receiving.value(within: .patience, "all messages")
        #expect(received == Array(0..<count))
        #expect(receiver.counters.connections == 1)
        await sender.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce], [false, true])
    func `a worker that is killed three times acknowledges every message`(qos: QoS, isDeclared: Bool) async throws {
        let count = Campaign.rounds(4000, least: 200)
        let broker = try await Mosquitto.start { $0.extraLines = ["max_queued_messages 0"] }
        let sender = KeptSessions.client(broker.port, "sender")
        try await sender.connect()
        var handled: Set<Int> = []
        var isPublished = false
        for round in 1...4 {
            let worker = KeptSessions.client(broker.port, "worker") {
                $0.receiveMaximum = 20
                $0.reconnect = .never
            }
            var jobs: MQTTSubscription?
            if isDeclared { jobs = worker.subscription(to: "jobs/#", qos: qos, acknowledgement: .manual) }
            try await worker.connect()
            if !isDeclared { jobs = try await worker.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual) }
            let sequence = try #require(jobs)
            if !isPublished {
                // Granted, at the latest when the broker has answered another request.
                _ = try await worker.subscribe(to: "other")
                try await KeptSessions.publish(0..<count, to: "jobs/a", qos, by: sender)
                isPublished = true
            }
            let goal = count * round / 4
            let known = handled
            handled = try await withTimeout(.patience, "\(goal) messages") {
                var handled = known
                for try await job in sequence {
                    handled.insert(Int(job.text ?? "") ?? -1)
                    job.acknowledge()
                    if handled.count >= goal { break }
                }
                return handled
            }
            // The process dies: nothing that it still holds is acknowledged.
            if round < 4 { worker.core.link.dropConnection() } else { await worker.disconnect() }
            #expect(await eventually { !worker.state.isConnected })
        }
        #expect(handled == Set(0..<count))
        await sender.disconnect()
        await broker.stop()
    }
}
