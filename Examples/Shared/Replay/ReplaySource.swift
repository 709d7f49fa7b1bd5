/// Where the values of a replay come from: a recording, or standard input.
package enum ReplaySource<Value: Sendable>: Sendable {
    case recorded(ReplaySteps<Value>)
    case live(LiveSource<Value>)

    /// Takes a recording and prints what it is.
    ///
    /// - Parameter unit: What its values are called: "fixes".
    init(
        _ recording: Recording<Value>, unit: String, selection: ReplaySteps<Value>.Selection, _ options: DeviceOptions,
        _ program: Program
    ) {
        program.console.line("\(ReplayProgress.count(recording.count, unit)) in \(recording.name)")
        if let note = recording.note { program.console.line(note, .caution) }
        let loops = program.startsOver(options)
        if loops, !options.loops {
            program.console.line("the replay starts over at its end, until Ctrl-C; --once ends it after one run")
        }
        self = .recorded(ReplaySteps(recording, speed: options.speed, selection: selection, loops: loops))
    }

    /// What one device of a fleet replays.
    ///
    /// - Parameter adjust: Makes the value to be sent from the recording and an index; nil sends the recorded value.
    package func source(
        for post: Fleet.Post, adjust: (@Sendable (Recording<Value>, _ index: Int) -> Value)? = nil
    ) -> ReplaySource {
        switch self {
        case .live: self
        case .recorded(let steps):
            .recorded(steps.moved(to: post.place.start, pace: post.place.pace, adjust: adjust))
        }
    }

    /// Where the recording was made, if it says so.
    package var place: String? {
        if case .recorded(let steps) = self { steps.recording.place } else { nil }
    }

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

extension ReplaySource<Fix> {
    /// The track that the devices drive.
    package static func track(_ options: LocationsOptions, _ program: Program) throws(DeviceFailure) -> ReplaySource {
        if options.track == "-" { return .live(.locations { program.console.line($0, .caution) }) }
        let recording = try RecordingLoader.locations(path: options.track, wantsWaypoints: options.wantsWaypoints)
        return ReplaySource(
            options.usesRecordedTime ? recording.withTimes() : recording, unit: "fixes",
            selection: .thinned(options.interval), options.common, program)
    }

    /// What one device replays, beside the track if it is one of a fleet with a name.
    package func track(for post: Fleet.Post) -> ReplaySource {
        let metres = post.place.metresAside
        guard metres != 0 else { return source(for: post) }
        return source(for: post) { $0.fix(at: $1, metresAside: metres) }
    }
}

extension ReplaySource<Attitude> {
    /// The motions that the devices replay.
    package static func motions(_ options: MotionsOptions, _ program: Program) throws(DeviceFailure) -> ReplaySource {
        if options.motion == "-" { return .live(.motions { program.console.line($0, .caution) }) }
        return ReplaySource(
            try RecordingLoader.motions(path: options.motion), unit: "motions", selection: .sampled(options.interval),
            options.common, program)
    }
}
