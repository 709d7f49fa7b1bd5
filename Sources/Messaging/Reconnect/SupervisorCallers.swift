import Transport

/// The callers that wait for what a ``Supervisor`` does; on the loop's thread.
struct SupervisorCallers<Failure: Error & Sendable> {
    typealias Call = PendingCall<Result<Void, Failure>>
    typealias Restart = (begun: PendingCall<Void>, run: Call?)

    /// Callers of `connect`.
    private var connects: [Call] = []
    /// Callers of `run`.
    private var runs: [Call] = []
    /// Callers of `stop` and `suspend`.
    private var stops: [PendingCall<Void>] = []
    /// Callers of `start` and `run` that wait until the client has disconnected.
    private var restarts: [Restart] = []

    mutating func addConnect(_ call: Call) { connects.append(call) }
    mutating func addRun(_ call: Call) { runs.append(call) }
    mutating func addStop(_ call: PendingCall<Void>) { stops.append(call) }
    mutating func addRestart(_ begun: PendingCall<Void>, run: Call?) { restarts.append((begun, run)) }

    /// Removes a caller of `connect`. Returns whether it waited and no other does.
    mutating func removeConnect(_ call: Call) -> Bool {
        guard let index = connects.firstIndex(where: { $0 === call }) else { return false }
        connects.remove(at: index)
        return connects.isEmpty
    }

    mutating func connected() { Self.end(&connects, .success(())) }

    /// Supervision has ended.
    ///
    /// - Parameters:
    ///   - failure: nil if the user disconnected.
    ///   - stopped: what `connect` then throws.
    mutating func ended(_ failure: Failure?, stopped: Failure) {
        Self.end(&connects, .failure(failure ?? stopped))
        Self.end(&runs, failure.map { .failure($0) } ?? .success(()))
    }

    /// The connection is closed. Returns the callers that wait to start anew.
    mutating func closed() -> [Restart] {
        Self.end(&stops, ())
        defer { restarts = [] }
        return restarts
    }

    /// A disconnect came after `start`, which therefore has no effect.
    mutating func cancelRestarts() {
        for (begun, run) in restarts {
            begun.end(())
            run?.end(.success(()))
        }
        restarts = []
    }

    private static func end<Answer>(_ calls: inout [PendingCall<Answer>], _ answer: Answer) {
        let ended = calls
        calls = []
        for call in ended { call.end(answer) }
    }
}
