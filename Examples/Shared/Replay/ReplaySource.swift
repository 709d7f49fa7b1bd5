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

/// What the devices of a program replay: one recording for all, or standard input for the only one.
package enum DeviceInput<Value: Sendable>: Sendable {
    case recording(Recording<Value>, selection: ReplaySteps<Value>.Selection, loops: Bool)
    case live(LiveSource<Value>)

    /// Takes a recording and prints what it is.
    ///
    /// - Parameter unit: What its values are called: "fixes".
    package init(
        _ recording: Recording<Value>, unit: String, selection: ReplaySteps<Value>.Selection, _ options: DeviceOptions,
        _ program: Program
    ) {
        program.console.line("\(ReplayProgress.count(recording.count, unit)) in \(recording.name)")
        if let note = recording.note { program.console.line(note, .caution) }
        let loops = program.startsOver(options)
        if loops, !options.loops {
            program.console.line("the replay starts over at its end, until Ctrl-C; --once ends it after one run")
        }
        self = .recording(recording, selection: selection, loops: loops)
    }

    /// Where the recording was made, if it says so.
    package var place: String? {
        if case .recording(let recording, _, _) = self { recording.place } else { nil }
    }

    package var isRecorded: Bool {
        if case .recording = self { true } else { false }
    }

    /// What one device replays.
    ///
    /// - Parameter adjust: Makes the value to be sent from the recording and an index; nil sends the recorded value.
    package func source(
        for post: Fleet.Post, adjust: (@Sendable (Recording<Value>, _ index: Int) -> Value)? = nil
    ) -> ReplaySource<Value> {
        switch self {
        case .live(let source): .live(source)
        case .recording(let recording, let selection, let loops):
            .recorded(
                ReplaySteps(
                    recording, speed: post.fleet.options.speed * post.place.pace, selection: selection, loops: loops,
                    start: post.place.start, adjust: adjust))
        }
    }
}

extension DeviceInput<Fix> {
    /// The track that the devices drive.
    package static func locations(_ options: LocationsOptions, _ program: Program) throws(DeviceFailure) -> DeviceInput
    {
        if options.track == "-" { return .live(LiveSource.locations()) }
        let recording = try RecordingLoader.locations(path: options.track)
        return DeviceInput(
            options.usesRecordedTime ? recording.withTimes() : recording, unit: "fixes",
            selection: .thinned(options.interval), options.common, program)
    }

    /// What one device replays, beside the track if it is one of a fleet with a name.
    package func locations(for post: Fleet.Post) -> ReplaySource<Fix> {
        let metres = post.place.metresAside
        guard metres != 0 else { return source(for: post) }
        return source(for: post) { $0.fix(at: $1, metresAside: metres) }
    }
}

extension DeviceInput<Attitude> {
    /// The motions that the devices replay.
    package static func motions(_ options: MotionsOptions, _ program: Program) throws(DeviceFailure) -> DeviceInput {
        if options.motion == "-" { return .live(LiveSource.motions()) }
        return DeviceInput(
            try RecordingLoader.motions(path: options.motion), unit: "motions", selection: .sampled(options.interval),
            options.common, program)
    }
}
