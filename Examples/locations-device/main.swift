import DeviceSupport

await Program.run(.locations, LocationsOptions.parse) { options, program in
    let input = try LocationsInput(options, program)
    try await Fleet.run(program, options.common, unit: "fixes", isConfirmed: true, readsKeys: input.isRecorded) {
        post in
        try await LocationsDevice(post, options, input.source(for: post)).run()
    }
}
