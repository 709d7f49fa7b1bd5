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
