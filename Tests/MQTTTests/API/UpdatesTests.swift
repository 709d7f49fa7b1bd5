import ClientTestSupport
import LoopbackBroker
import MQTT
import TestSupport
import Testing

@Suite("Client: states, events and packets", .turns)
struct ClientUpdatesTests {
    @Test func `sequences made before a connection bring all of it, however late they are iterated`() async throws {
        let bench = try await Bench()
        try await ClientChecks.earlySequences(of: bench.client("early")) {
            if case .connected = $0 { true } else { false }
        }
        await bench.stop()
    }
}
