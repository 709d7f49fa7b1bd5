import Synchronization
public import Testing

/// Lets only a few of the tests that carry it run at the same time, and ends one that hangs after an hour.
///
/// Swift Testing starts all tests at once. Hundreds of them, with sockets, processes and brokers on two cores, would
/// wait for each other longer than any of their time-outs allows; a few at a time find the machine as they expect it.
/// The hour does not include the time that a test waits for its turn, which Swift Testing's own `timeLimit` does.
public struct Turns: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await Permits.turns.hold {
            try await Turn.$current.withValue(Turn()) {
                try await limited(to: .seconds(3_600), "after its turn had come", test, function)
            }
        }
    }
}

extension Trait where Self == Turns {
    /// Waits for its turn: see ``Turns``.
    public static var turns: Turns { Turns() }
}

/// The turn of the running test, which another test has while this one waits for a broker to start: otherwise a few tests that
/// wait would keep all others from running.
final class Turn: Sendable {
    @TaskLocal static var current: Turn?
    private let isLent = Atomic(false)

    /// Waits for the start of a broker or browser. A test that waits in several tasks lends its turn once.
    static func lend<Success>(_ body: () async throws -> Success) async rethrows -> Success {
        guard let current, !current.isLent.exchange(true, ordering: .relaxed) else { return try await body() }
        defer { current.isLent.store(false, ordering: .relaxed) }
        return try await Permits.turns.lend(body)
    }
}
