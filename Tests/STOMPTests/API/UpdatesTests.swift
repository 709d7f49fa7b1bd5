import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite("Client: states, events and frames", .turns)
struct ClientUpdatesTests {
    @Test func `sequences made before a connection bring all of it, however late they are iterated`() async throws {
        try await withBroker { broker in
            try await ClientChecks.earlySequences(of: broker.client()) {
                if case .connected = $0 { true } else { false }
            }
        }
    }
}
