import DeviceSupport

await Program.run(.motions, MotionsOptions.parse) { options, program in
    let input = try DeviceInput.motions(options, program)
    try await Fleet.run(
        program, options.common, unit: "motions", isConfirmed: options.qos > 0, readsKeys: input.isRecorded
    ) { post in
        try await MotionsDevice(post, options, input.source(for: post)).run()
    }
}
