import Messaging
import Synchronization
import TestSupport
import Testing
import Transport

/// A supervisor with a client whose attempts fail as a script says.
@Suite(.turns) struct SupervisorTests {
    enum Failure: Error, Equatable {
        case failed(Int)
        case stopped, cancelled, notStarted
    }

    private final class Client: SupervisedClient {
        static let stopped = Failure.stopped
        static func notStarted(_ error: TransportError) -> Failure { .notStarted }
        private let script: [ReconnectVerdict]
        private let state = Mutex<(asked: Int, attempts: [String], waits: Int)>((0, [], 0))

        init(_ script: [ReconnectVerdict]) { self.script = script }

        /// One word for each attempt: its number, its server, and whether other credentials are needed.
        var attempts: [String] { state.withLock { $0.attempts } }
        var waits: Int { state.withLock { $0.waits } }

        func prepare(_ attempt: ConnectionAttempt) {
            let mark = attempt.credentialsWereRefused ? "!" : ""
            state.withLock { $0.attempts.append("\(attempt.number)@\(attempt.server)\(mark)") }
        }
        func openStream(_ attempt: ConnectionAttempt) async throws(Failure) -> OpenedStream {
            throw .failed(attempts.count)
        }
        func attach(_ opened: OpenedStream) {}
        func dropConnection() {}
        func stateChanged(to state: ConnectionState<Failure>) {
            if case .waiting = state { self.state.withLock { $0.waits += 1 } }
        }
        func failure(ofAll failures: [(server: Int, failure: Failure)]) -> Failure {
            failures[failures.count - 1].failure
        }
        static func firstFailure(_ failure: Failure) -> Failure { failure }
        /// The last verdict of the script is repeated.
        func verdict(on failure: Failure, wasConnected: Bool) -> ReconnectVerdict {
            state.withLock { state in
                state.asked += 1
                return script[min(state.asked, script.count) - 1]
            }
        }
    }

    struct Row: Sendable {
        let script: [ReconnectVerdict]
        var servers = 1
        var maximumAttempts: Int? = 1
        let attempts: [String]
        var waits = 0
    }

    static let rows = [
        Row(script: [.giveUp], attempts: ["1@0"]),
        Row(script: [.giveUp], servers: 3, attempts: ["1@0"]),
        Row(script: [.wait], attempts: ["1@0"]),
        Row(script: [.wait], maximumAttempts: 3, attempts: ["1@0", "2@0", "3@0"], waits: 2),
        Row(script: [.wait], servers: 2, maximumAttempts: 2, attempts: ["1@0", "1@1", "2@0", "2@1"], waits: 1),
        Row(script: [.retryNow, .retryNow, .giveUp], attempts: ["1@0", "1@0", "1@0"]),
        Row(script: [.retryNow, .wait], servers: 2, attempts: ["1@0", "1@0", "1@1"]),
        Row(script: [.askForCredentials, .giveUp], attempts: ["1@0", "1@0!"]),
        Row(script: [.askForCredentials], maximumAttempts: nil, attempts: ["1@0", "1@0!"]),
        Row(
            script: [.askForCredentials, .wait, .askForCredentials], servers: 2, maximumAttempts: nil,
            attempts: ["1@0", "1@0!", "1@1"]),
    ]

    @Test(arguments: rows) func `a verdict decides what is tried next`(row: Row) async throws {
        let client = Client(row.script)
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let policy = ReconnectPolicy(
            initialDelay: .zero, maximumDelay: .zero, firstConnectAttempts: row.maximumAttempts)
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), serverCount: row.servers, serverOrder: .listed, connectTimeout: 60_000_000_000,
            loop: loop)
        supervisor.supervise(client)
        await #expect(throws: Failure.failed(row.attempts.count)) {
            try await supervisor.connect(cancelled: .cancelled)
        }
        #expect(client.attempts == row.attempts)
        #expect(client.waits == row.waits)
    }

    @Test func `a started client makes its first attempts as often as others`() async throws {
        let client = Client([.wait])
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let policy = ReconnectPolicy(
            initialDelay: .zero, maximumDelay: .zero, maximumAttempts: 4, firstConnectAttempts: 1)
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), serverCount: 1, serverOrder: .listed, connectTimeout: 60_000_000_000, loop: loop)
        supervisor.supervise(client)
        await #expect(throws: Failure.failed(4)) { try await supervisor.run() }
        #expect(client.waits == 3)
    }
}
