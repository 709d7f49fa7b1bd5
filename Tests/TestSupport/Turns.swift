public import Testing

/// Lets only a few of the tests that carry it run at the same time.
///
/// Swift Testing starts all tests at once. Hundreds of them, with sockets, processes and brokers on two cores, would
/// wait for each other longer than any of their time-outs allows; a few at a time find the machine as they expect it.
public struct Turns: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await Permits.turns.hold { try await function() }
    }
}

extension Trait where Self == Turns {
    /// Waits for its turn: see ``Turns``.
    public static var turns: Turns { Turns() }
}
