import DeviceSupport

/// The track that the devices drive.
struct LocationsInput: Sendable {
    private let input: DeviceInput<Fix>

    init(_ options: LocationsOptions, _ program: Program) throws(DeviceFailure) {
        if options.track == "-" {
            input = .live(LiveSource.locations())
        } else {
            input = DeviceInput(
                try RecordingLoader.locations(path: options.track), unit: "fixes",
                selection: .thinned(options.interval), options.common, program)
        }
    }

    var isRecorded: Bool { input.isRecorded }

    func source(for post: Fleet.Post) -> ReplaySource<Fix> {
        let metres = post.place.metresAside
        guard metres != 0 else { return input.source(for: post) }
        return input.source(for: post) { $0.fix(at: $1, metresAside: metres) }
    }
}
