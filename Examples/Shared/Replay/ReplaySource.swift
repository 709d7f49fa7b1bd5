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
    /// Plays whatever the source is; `body` gets nil for the time of a live value.
    package func play<Value>(
        _ source: ReplaySource<Value>, speed: Double, interval: Duration,
        _ body: (Value, _ due: Int64?) async throws -> Void
    ) async throws -> Ending {
        switch source {
        case .recorded(let steps):
            return try await play(steps) { try await body($0.value, $0.due) }
        case .live(let rows):
            let next: () async throws -> LiveSource<Value>.Row? = { try await rows.next() }
            return try await play(live: next, speed: speed, interval: interval) { try await body($0, nil) }
        }
    }
}
