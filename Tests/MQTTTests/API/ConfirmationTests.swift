import LoopbackBroker
import MQTT
import MQTTCore
import TestSupport
import Testing

@Suite("Client: confirmations awaited later", .turns)
struct ConfirmationTests {
    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `an acknowledgement can be awaited later, by several tasks`(qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let messages = try await client.subscribe(to: "a")
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        var confirmations: [MQTTClient.Confirmation] = []
        for number in 0..<20 {
            confirmations.append(
                try await client.publishForConfirmation(MQTTOutgoingMessage(Array("\(number)".utf8), to: "a", qos: qos))
            )
        }
        #expect(client.counters.messagesSent == 20)
        let first = confirmations[0]
        let cancelled = Task { try await first.confirmed() }
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        let waiting = (0..<3).map { _ in Task { try await first.confirmed() } }
        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
        await bench.cut()
        for task in waiting { #expect(try await task.value.reasonCode.isError == false) }
        for confirmation in confirmations { #expect(try await confirmation.confirmed().reasonCode.isError == false) }
        // In the order of their publishing; after the lost connection some may arrive twice.
        let texts = try await messages.first(20).compactMap(\.text).compactMap(Int.init)
        #expect(texts.first == 0 && Set(texts).isSubset(of: Set(0..<20)))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a confirmation has the server's answer, and throws its refusal`() async throws {
        var properties = MQTTProperties()
        properties.reasonString = "no subscribers"
        let accepted = properties
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        server.remark { message in
            message.flags.qos == .atLeastOnce
                ? [.puback(.init(packetID: message.packetID, reasonCode: .noMatchingSubscribers, properties: accepted))]
                : [.pubrec(.init(packetID: message.packetID, reasonCode: .notAuthorized, properties: accepted))]
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let confirmation = try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a"))
        #expect(try await confirmation.confirmed() == MQTTPublishResult(.noMatchingSubscribers, properties: accepted))
        #expect(try await confirmation.confirmed() == MQTTPublishResult(.noMatchingSubscribers, properties: accepted))
        let refused = try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a", qos: .exactlyOnce))
        await #expect { try await refused.confirmed() } throws: {
            ($0 as? MQTTError)?.code == .refused && ($0 as? MQTTError)?.reasonCode == .notAuthorized
        }
        #expect(
            try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a", qos: .atMostOnce)).confirmed()
                .reasonCode == .success)
        await client.disconnect()
    }

    @Test func `a message that cannot be published has no confirmation`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        await #expect { try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a/#")) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        await client.disconnect()
        await #expect { try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a")) } throws: {
            ($0 as? MQTTError)?.code == .notConnected
        }
        #expect(client.counters.messagesSent == 0)
        await bench.stop()
    }

    @Test func `a confirmation fails when the client stops, before and after that`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let confirmation = try await client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a"))
        let waiting = Task { try await confirmation.confirmed() }
        await client.disconnect()
        await #expect { try await waiting.value } throws: { ($0 as? MQTTError)?.code == .disconnected }
        await #expect { try await confirmation.confirmed() } throws: { ($0 as? MQTTError)?.code == .disconnected }
        await bench.stop()
    }
}
