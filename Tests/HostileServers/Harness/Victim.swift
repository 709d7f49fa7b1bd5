import MessagingShell

/// Runs a client against a hostile server until it reports an error or the time is over.
enum Victim {
    /// The client ended its connection without an error.
    struct Quiet: Error, CustomStringConvertible {
        let description: String
    }

    static func outcome(
        _ listener: Listener, until deadline: ContinuousClock.Instant,
        _ body: @escaping @Sendable () async throws -> Void
    ) async -> Outcome {
        // Not a task group, which would wait for a client that never ends.
        let (ends, end) = AsyncStream.makeStream(of: (String, Bool).self)
        Task.detached {
            do {
                try await body()
                end.yield(("done", true))
            } catch {
                end.yield(("\(error)", true))
            }
        }
        Task.detached {
            try? await Task.sleep(until: deadline)
            end.yield(("no error", false))
        }
        let first = await ends.first { _ in true } ?? ("nothing", false)
        // Connections that came about in the last moment.
        try? await Task.sleep(for: .milliseconds(50))
        return Outcome(end: first.0, hasEnded: first.1, connections: listener.connections, sent: listener.received)
    }
}

/// A client of either protocol, as far as scenarios need it.
protocol VictimClient: Sendable {
    associatedtype Failure: Error, Sendable
    associatedtype Messages: AsyncSequence, Sendable

    var states: Updates<ConnectionState<Failure>> { get }
    func connect() async throws(Failure)
    func disconnect() async
    /// Subscribes to everything that the scenario sends.
    func listen() async throws -> Messages
    func unsubscribe(_ messages: Messages) async throws
    /// Publishes without waiting for an answer.
    func publishUnanswered(_ payload: [UInt8]) async throws
    /// Publishes and waits for the answer.
    func publishAnswered() async throws
    /// The same with two answers, where the protocol has that.
    func publishExactlyOnce() async throws
}

extension VictimClient {
    func publishExactlyOnce() async throws { try await publishAnswered() }

    /// Connects, acts, and throws the reason for the end of the connection.
    func suffer(_ act: Scenario.Act) async throws {
        let states = self.states
        let watching = Task {
            for await state in states {
                if case .disconnected(let reason?) = state { throw reason }
            }
            throw Victim.Quiet(description: "the client ended")
        }
        try await connect()
        switch act {
        case .nothing: break
        case .subscribe:
            for try await _ in try await listen() {}
        case .subscribeAndSleep:
            let messages = try await listen()
            try await watching.value
            _ = messages
        case .publish: try await publishAnswered()
        case .publishExactlyOnce: try await publishExactlyOnce()
        case .publishWithoutEnd:
            let payload = [UInt8](repeating: 1, count: 1000)
            while true { try await publishUnanswered(payload) }
        case .publishSlowly:
            while true {
                try await publishUnanswered([1])
                try await Task.sleep(for: .milliseconds(20))
            }
        case .unsubscribe:
            try await unsubscribe(try await listen())
        case .disconnect:
            await disconnect()
            return
        }
        try await watching.value
    }
}
