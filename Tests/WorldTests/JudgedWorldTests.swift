import MessagingJudge
import MessagingSimulation
import Testing
import Transport

@testable import LoopbackBroker

/// Worlds fail when a client breaks a rule of its protocol.
@Suite struct JudgedWorldTests {
    /// CONNECT of the client `a`, and PUBACK of a message that there was not.
    private static let bytes: [UInt8] =
        [0x10, 13, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 1, 0x61] + [0x40, 2, 0, 9]

    @Sendable private static func breakRule(_ world: Simulation, mayBreak: Set<Clause>) async throws {
        var options = LoopbackBrokerOptions()
        options.judging.mayBreak = mayBreak
        let broker = try await world.startBroker(options)
        let port = UInt16(clamping: broker.ports.mqtt ?? 0)
        let stream = world.world.open(to: .host("127.0.0.1", port: port), writing: bytes, on: world.clock.loop)
        try await world.clock.sleep(for: .seconds(5))
        stream?.close()
        await broker.stop()
    }

    @Test func `A world fails at the first rule that a client breaks`() async throws {
        var options = SimulationOptions()
        options.faults = []
        let error = await #expect(throws: SimulationFailure.self) {
            try await Simulation.run(seed: 1, options: options) { try await Self.breakRule($0, mayBreak: []) }
        }
        let text = "\(error.map { "\($0)" } ?? "")"
        #expect(text.contains("'a' broke the rule 'answerWithoutPublish' on connection 1."), "\(text)")
        #expect(text.contains("PUBACK id 9 [v5 MQTT-2.2.1-5, v3 MQTT-2.3.1-6]"), "\(text)")
        try await Simulation.run(seed: 1, options: options) {
            try await Self.breakRule($0, mayBreak: [.answerWithoutPublish])
        }
    }
}
