import MessagingShell
import STOMP
import TestSupport
import Testing

/// One time for an attempt to connect, from the credentials to CONNECTED.
@Suite(.turns) struct TimeToConnectTests {
    @Test func credentialsThatNeverComeFailTheAttempt() async throws {
        let server = FakeServer()
        let client = server.client {
            $0.connectTimeout = .milliseconds(100)
            $0.credentialsProvider = { _ in
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                return nil
            }
        }
        await #expect { try await client.connect() } throws: { ($0 as? STOMPError)?.code == .noCredentials }
        #expect(server.count == 0)
    }

    @Test func connectedHasToComeInTimeWhateverReceiptsMayTake() async throws {
        let clock = try ManualClock()
        let server = FakeServer()
        let client = server.client(clock: clock) {
            $0.connectTimeout = .milliseconds(500)
            $0.requestTimeout = .seconds(3600)
        }
        let connecting = Task { try await client.connect() }
        try await server.connection(0).expect("CONNECT")
        await clock.advance(by: .milliseconds(500))
        await expectError(.timedOut) { try await connecting.value }
        #expect(server.count == 1)
    }
}
