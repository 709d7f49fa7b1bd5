import DeviceSupport

await Program.run(.locations, LocationsOptions.parse) { options, program in
    let source: ReplaySource<Fix>
    if options.track == "-" {
        source = .live(LiveSource.locations())
    } else {
        let recording = try RecordingLoader.locations(path: options.track)
        program.console.line("\(recording.count) fixes in \(recording.name)")
        if let note = recording.note { program.console.line(note) }
        source = .recorded(
            ReplaySteps(
                recording, speed: options.common.speed, selection: .thinned(options.interval),
                loops: options.common.loops))
    }
    try await Fleet.run(
        program, options.common, unit: "fixes", duration: source.duration, readsKeys: !source.isLive
    ) { post in
        try await LocationsDevice(post, options, source).run()
    }
}
