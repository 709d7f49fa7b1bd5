import MQTT
import STOMP
import Transport

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

extension MQTTClient {
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
            let messages = try await subscribe(to: "#", qos: .exactlyOnce)
            for try await _ in messages {}
        case .subscribeAndSleep:
            let messages = try await subscribe(to: "#", qos: .exactlyOnce)
            try await watching.value
            _ = messages
        case .publish: _ = try await publish("x", to: "a", qos: .atLeastOnce)
        case .publishExactlyOnce: _ = try await publish("x", to: "a", qos: .exactlyOnce)
        case .publishWithoutEnd:
            let payload = [UInt8](repeating: 1, count: 1000)
            while true { _ = try await publish(payload, to: "a") }
        case .publishSlowly:
            while true {
                _ = try await publish("x", to: "a")
                try await Task.sleep(for: .milliseconds(20))
            }
        case .unsubscribe:
            let messages = try await subscribe(to: "a", qos: .atLeastOnce)
            try await messages.unsubscribe()
        case .disconnect:
            await disconnect()
            return
        }
        try await watching.value
    }
}

extension STOMPClient {
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
            for try await _ in try await subscribe(to: "/queue/a") {}
        case .subscribeAndSleep:
            let messages = try await subscribe(to: "/queue/a")
            try await watching.value
            _ = messages
        case .publish, .publishExactlyOnce: try await sendAndConfirm("x", to: "/queue/a")
        case .publishWithoutEnd:
            let body = [UInt8](repeating: 1, count: 1000)
            while true { try await send(body, to: "/queue/a") }
        case .publishSlowly:
            while true {
                try await send("x", to: "/queue/a")
                try await Task.sleep(for: .milliseconds(20))
            }
        case .unsubscribe:
            let messages = try await subscribe(to: "/queue/a")
            try await messages.unsubscribe()
        case .disconnect:
            await disconnect()
            return
        }
        try await watching.value
    }
}
