public import Testing

/// Lets only a few of the tests that carry it run at the same time, and limits how long each of them takes.
///
/// Swift Testing starts all tests at once. Hundreds of them, with sockets, processes and brokers on two cores, would
/// wait for each other longer than any of their time-outs allows; a few at a time find the machine as they expect it.
/// The limit does not include the time that a test waits for its turn, which Swift Testing's own `timeLimit` does.
public struct Turns: SuiteTrait, TestTrait, TestScoping {
    let limit: Duration

    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await Permits.turns.hold {
            try await limited(to: limit, "after its turn had come", test, function)
        }
    }
}

extension Trait where Self == Turns {
    /// Waits for its turn, then takes ten minutes at most: see ``Turns``.
    public static var turns: Turns { turns(minutes: 10) }

    /// Waits for its turn, then takes this many minutes at most: see ``Turns``.
    public static func turns(minutes: Int) -> Turns { Turns(limit: .seconds(60 * minutes)) }
}
