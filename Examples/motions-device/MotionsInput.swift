import DeviceSupport

/// The motions that the devices replay.
struct MotionsInput: Sendable {
    private let input: DeviceInput<Attitude>

    init(_ options: MotionsOptions, _ program: Program) throws(DeviceFailure) {
        if options.motion == "-" {
            input = .live(LiveSource.motions())
        } else {
            input = DeviceInput(
                try RecordingLoader.motions(path: options.motion), unit: "motions",
                selection: .sampled(options.interval), options.common, program)
        }
    }

    var isRecorded: Bool { input.isRecorded }

    func source(for post: Fleet.Post) -> ReplaySource<Attitude> { input.source(for: post) }
}
