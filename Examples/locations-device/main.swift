import DeviceSupport

await Program.run(.locations, LocationsOptions.parse) { options, program in
    let track = try RecordingLoader.locations(path: options.track)
    program.console.line("\(track.count) fixes in \(track.name)")
}
