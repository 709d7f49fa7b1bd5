import DeviceSupport

await Program.run(.motions, MotionsOptions.parse) { options, program in
    let source: ReplaySource<Attitude>
    if options.motion == "-" {
        source = .live(LiveSource.motions())
    } else {
        let recording = try RecordingLoader.motions(path: options.motion)
        program.console.line("\(recording.count) motions in \(recording.name)")
        if let note = recording.note { program.console.line(note) }
        source = .recorded(
            ReplaySteps(
                recording, speed: options.common.speed, selection: .sampled(options.interval),
                loops: options.common.loops))
    }
    try await Fleet.run(
        program, options.common, unit: "motions", duration: source.duration, readsKeys: !source.isLive
    ) { post in
        try await MotionsDevice(post, options, source).run()
    }
}
