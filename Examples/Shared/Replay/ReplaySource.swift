/// Where the values of a replay come from.
package enum ReplaySource<Value: Sendable>: Sendable {
    case recorded(ReplaySteps<Value>)
    case live(LiveSource<Value>)

    /// How long the replay takes, or one pass of a loop, in nanoseconds; nil if that is unknown.
    package var duration: Int64? {
        if case .recorded(let steps) = self { steps.lap ?? steps.duration } else { nil }
    }

    /// Whether it starts over at its end.
    package var loops: Bool {
        if case .recorded(let steps) = self { steps.lap != nil } else { false }
    }

    package var isLive: Bool {
        if case .live = self { true } else { false }
    }
}

/// How far the replay of a recording is.
package struct ReplayPlace: Sendable, Equatable {
    /// Nanoseconds since the start.
    package let due: Int64
    /// How often the end of the recording has been passed.
    package let pass: Int
}

extension Replay {
    /// Plays the source, whichever kind it is.
    ///
    /// - Parameters:
    ///   - interval: Of live values; the steps of a recording have theirs.
    ///   - isWanted: Called for each live value when it is read; false skips it.
    package func play<Value>(
        _ source: ReplaySource<Value>, interval: Duration,
        isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ body: (Value, ReplayPlace?) async throws -> Void
    ) async throws -> Ending {
        switch source {
        case .recorded(let steps):
            return try await play(steps) { try await body($0.value, ReplayPlace(due: $0.due, pass: $0.pass)) }
        case .live(let values):
            return try await play(values, interval: interval, isWanted: isWanted) { try await body($0, nil) }
        }
    }
}
