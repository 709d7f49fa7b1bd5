import DeviceSupport

await Program.run(.locations, LocationsOptions.parse) { options, program in
    let input = try DeviceInput.locations(options, program)
    try await Fleet.run(
        program, options.common, unit: "fixes", isConfirmed: true, place: input.place, readsKeys: input.isRecorded
    ) { post in
        try await LocationsDevice(post, options, input.locations(for: post)).run()
    }
}
