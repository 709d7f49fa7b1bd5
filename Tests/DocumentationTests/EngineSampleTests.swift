import MQTTCore
import Testing

/// The loop of "Bring your own transport" over memory, with an engine in the server's role at the other end.
@Suite struct EngineSampleTests {
    /// A server that sends one reading to whoever subscribes, and leaves once it has been answered.
    private final class Memory: ByteLine {
        var now: Int64 = 1
        var server = MQTTEngine(configuration: MQTTEngineConfiguration(role: .server))
        var effects = MQTTEffects()
        var answers: [String] = []
        var isClosed = false

        func write(_ written: [UInt8]) {
            // Below macOS 26 only contiguous arrays have a public `span`.
            let bytes = ContiguousArray(written)
            let consumed = server.receive(bytes.span.bytes, at: now, into: &effects)
            #expect(consumed == bytes.count)
            for message in effects.messages {
                answers.append(
                    effects.topic(of: message, in: bytes.span.bytes) + ": "
                        + String(decoding: bytes[message.payload], as: UTF8.self))
                server.acknowledge(message.delivery, at: now)
            }
            let events = effects.events
            effects.removeAll()
            for event in events { answer(event.kind) }
        }

        private func answer(_ event: MQTTEngineEvent.Kind) {
            switch event {
            case .connectReceived:
                #expect(throws: Never.self) {
                    try server.acceptConnection(sessionPresent: false, at: now, into: &effects)
                }
            case .subscribeReceived(let subscribe):
                #expect(throws: Never.self) {
                    try server.acknowledgeSubscribe(subscribe.packetID, codes: [.grantedQoS1], at: now)
                    _ = try server.publish(
                        topic: "readings/7", payload: Array("21.5".utf8), qos: .atLeastOnce, token: 1, at: now)
                }
            default: break
            }
        }

        func read(until deadline: Int64) -> [UInt8]? {
            // Time passes whenever there is nothing to read: the loop has to notice the deadline.
            if server.output.isEmpty {
                if !answers.isEmpty { return nil }
                now = deadline
                return []
            }
            // Cut into single bytes.
            return [server.output.removeFirst()]
        }

        func close() { isClosed = true }
    }

    @Test func `The loop and what it performs work as shown`() throws {
        var line = Memory()
        #expect(throws: Never.self) { try line.server.connectionOpened(at: 1) }
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration(clientID: "sample"))
        try wantReadings(&engine)
        try runConnection(&engine, over: &line) { engine, effects, bytes throws(MQTTUsageError) in
            try answerReadings(&engine, effects, bytes, at: 2)
        }
        #expect(line.answers == ["seen/readings/7: 21.5"])
        #expect(line.isClosed && engine.phase == .closed)
    }
}
