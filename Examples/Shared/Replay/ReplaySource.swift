/// Where the values of a replay come from.
package enum ReplaySource<Value: Sendable>: Sendable {
    case recorded(ReplaySteps<Value>)
    case live(LiveSource<Value>)

    /// How long the replay takes, nanoseconds; nil when nobody knows.
    package var duration: Int64? {
        if case .recorded(let steps) = self { steps.duration } else { nil }
    }

    package var isLive: Bool {
        if case .live = self { true } else { false }
    }
}

extension Replay {
    /// Plays the source, whichever kind it is; `body` gets nil for the time of a live value.
    ///
    /// - Parameters:
    ///   - interval: Of live values; the steps of a recording have theirs.
    ///   - isWanted: Called for each live value when it is read; false skips it.
    package func play<Value>(
        _ source: ReplaySource<Value>, interval: Duration,
        isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ body: (Value, _ due: Int64?) async throws -> Void
    ) async throws -> Ending {
        switch source {
        case .recorded(let steps):
            return try await play(steps) { try await body($0.value, $0.due) }
        case .live(let values):
            return try await play(values, interval: interval, isWanted: isWanted) { try await body($0, nil) }
        }
    }
}
