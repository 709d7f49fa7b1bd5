import DeviceSupport

await Program.run(.motions, MotionsOptions.parse) { options, program in
    if options.losesSession {
        program.console.problem(
            "WARNING: --keep-session without --device-id: the next run has another identifier and gets nothing of this session. Give both the same --device-id."
        )
    }
    let input = try DeviceInput.motions(options, program)
    try await Fleet.run(
        program, options.common, unit: "motions", isConfirmed: options.qos > 0, readsKeys: input.isRecorded
    ) { post in
        try await MotionsDevice(post, options, input.source(for: post)).run()
    }
}
