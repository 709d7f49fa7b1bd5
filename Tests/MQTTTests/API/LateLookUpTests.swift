import Dispatch
import MQTT
import MessagingShell
import TestSupport
import Testing
import Transport

/// A name of which the server's address is known before the other family's look-up has an answer.
@Suite(.turns) struct LateLookUpTests {
    /// A name whose IPv4 address is known at once; IPv6 has its answer when the test says so.
    private final class Names: Sendable {
        private let answer = DispatchSemaphore(value: 0)
        private let late: String?

        init(late: String?) { self.late = late }

        var resolver: Resolver {
            Resolver(ask: { [self] in ask($0) }, known: { _ in nil })
        }

        func release() { answer.signal() }

        private func ask(_ query: NameQuery) -> NameQuery.Answer {
            func known(_ address: String) -> NameQuery.Answer {
                NameQuery(address, .any).lookUp()
            }
            guard query.family == .ipv6 else { return known("127.0.0.1") }
            answer.wait()
            // Later questions have their answers at once.
            answer.signal()
            return late.map(known) ?? .failure(TransportError(.unknownHost, "There is no such address."))
        }
    }

    private func client(_ port: UInt16, _ names: Names) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "late")
        configuration.reconnect = .never
        return MQTTClient(
            ["mqtt://broker.example:\(port)"], configuration: configuration, loop: .shared, resolver: names.resolver)
    }

    @Test(arguments: [false, true])
    func `a server that refuses gets one CONNECT, whether the other look-up is answered or not`(
        isAnswered: Bool
    ) async throws {
        let names = Names(late: nil)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if isAnswered { names.release() }
            step.refuse(.serverUnavailable)
        }
        let listener = try await server.listen()
        let client = client(listener.port, names)
        let error = await #expect(throws: MQTTError.self) { try await client.connect() }
        #expect(error?.reasonCode == .serverUnavailable, "\(String(describing: error))")
        #expect(server.connectionCount == 1)
        names.release()
        await listener.close()
    }

    @Test(.enabled(if: hasSecondLoopback, "there is no 127.0.0.2"))
    func `an address that is found late is tried when the first one has refused`() async throws {
        let names = Names(late: "127.0.0.2")
        let refusing = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(.serverUnavailable)
            names.release()
        }
        let accepting = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let first = try await refusing.listen()
        let second = try await accepting.listen(on: .host("127.0.0.2", port: first.port))
        let client = client(first.port, names)
        try await client.connect()
        #expect(refusing.connectionCount == 1 && accepting.connectionCount == 1)
        await client.disconnect()
        names.release()
        await first.close()
        await second.close()
    }

    private static var hasSecondLoopback: Bool {
        #if os(Linux)
            true
        #else
            false
        #endif
    }
}
