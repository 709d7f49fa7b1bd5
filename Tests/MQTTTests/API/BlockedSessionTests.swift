import MQTT
import MQTTCore
import TestSupport
import Testing
import Transport

@Suite("Client: messages that break the protocol", .turns)
struct BlockedSessionTests {
    /// A server that resumes the session of each connection with a message to a topic that holds a wildcard.
    private func server(qos: QoS, version: MQTTVersion) -> ScriptedServer {
        ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept(sessionPresent: true)
            var poison: [UInt8] = []
            // Not one of those that the engine uses.
            let id = UInt16(1000 + step.connection)
            let topic = Array("poison/+".utf8)
            poison.append(0x30 | qos.rawValue << 1)
            poison.append(UInt8(2 + topic.count + (qos == .atMostOnce ? 0 : 2) + (version == .v5_0 ? 1 : 0) + 1))
            poison += [0, UInt8(topic.count)] + topic
            if qos != .atMostOnce { poison += [UInt8(id >> 8), UInt8(id & 0xFF)] }
            if version == .v5_0 { poison.append(0) }
            poison.append(7)
            step.perform { machine in
                machine.engine.output += poison
                _ = try? machine.engine.publish(
                    topic: "good", payload: [1], qos: .atLeastOnce, at: MonotonicClock.now)
            }
        }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `three resumed sessions that end with the same violation on the same packet stop the client`(
        version: MQTTVersion
    ) async throws {
        let server = server(qos: .atLeastOnce, version: version)
        let client = server.client {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.reconnect.initialDelay = .milliseconds(1)
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var failure: MQTTError?
        while failure == nil, let event = await events.next() {
            if case .stateChanged(.disconnected(let error)) = event { failure = error }
        }
        #expect(failure?.code == .sessionBlocked)
        #expect(failure?.message.contains("'poison/+'") == true)
        #expect(failure?.message.contains("mqtt://scripted") == true)
        #expect(failure?.message.contains("dropsInvalidMessages") == true)
        #expect(server.connectionCount == 3)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], QoS.allCases)
    func `with dropsInvalidMessages such a message is acknowledged, dropped and reported`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let server = server(qos: qos, version: version)
        let client = server.client {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.dropsInvalidMessages = true
        }
        var events = client.events.makeAsyncIterator()
        var frames = client.inspect().makeAsyncIterator()
        let messages = await client.unmatchedMessages()
        try await client.connect()
        #expect(try await messages.first(1).first?.topic == "good")
        var topic: String?
        while topic == nil, let event = await events.next() {
            if case .invalidMessageDropped(let found, _) = event { topic = found }
        }
        #expect(topic == "poison/+")
        let answer: MQTTPacketType? =
            switch qos {
            case .atMostOnce: nil
            case .atLeastOnce: .puback
            case .exactlyOnce: .pubrec
            }
        var isAnswered = answer == nil
        while !isAnswered, let frame = await frames.next() {
            isAnswered = frame.direction == .sent && frame.type == answer
        }
        #expect(server.connectionCount == 1)
        await client.disconnect()
    }
}
