import DeviceSupport

await Program.run(.motions, MotionsOptions.parse) { options, program in
    let motion = try RecordingLoader.motions(path: options.motion)
    program.console.line("\(motion.count) motions in \(motion.name)")
}
