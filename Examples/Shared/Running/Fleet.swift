package import Messaging

/// The devices of a program and what they share: the broker's URL, the keyboard, the bar, the tally.
package struct Fleet: Sendable {
    package let program: Program
    package let options: DeviceOptions
    /// The brokers as they are shown, without user information.
    package let name: String
    /// What the devices connect to, tried in turn.
    package let urls: [String]
    package let meter: ProgressMeter
    /// Where all devices put their frames, for the inspector page.
    package let frames: FrameLog?
    /// Publishes for the inspector page.
    let publisher: PagePublisher?
    private let keys = Broadcaster<Key>(capacity: 64)

    /// Runs one device per id, shows what they share, and ends with a summary.
    ///
    /// - Parameters:
    ///   - unit: What the devices send: "fixes".
    ///   - isConfirmed: Whether the broker confirms what the devices send.
    ///   - readsKeys: Unless standard input brings the recording.
    package static func run(
        _ program: Program, _ options: DeviceOptions, unit: String, isConfirmed: Bool, readsKeys: Bool,
        device: @escaping @Sendable (Post) async throws -> DeviceSummary
    ) async throws {
        let console = program.console
        let start = ContinuousClock.now
        if options.isInsecure {
            console.problem(
                "WARNING: --insecure: the broker's certificate is not checked. "
                    + "Anybody on the way can read and alter everything, the password included.")
        }
        for id in options.deviceIDs { console.line("device: \(id)") }
        let embedded =
            options.brokers.isEmpty ? try await EmbeddedBroker.start(for: program.device, options) : nil
        for line in embedded?.lines ?? [] { console.line(line, .strong) }
        let name = embedded?.url ?? options.brokers.map(\.url).joined(separator: ", ")
        let fleet = Fleet(
            program: program, options: options, name: name, urls: embedded.map { [$0.url] } ?? options.brokerURLs,
            meter: ProgressMeter(
                unit: unit, devices: options.deviceIDs.count, isConfirmed: isConfirmed,
                address: embedded?.pageAddress ?? name, shortAddress: embedded?.shortPageAddress, console: console),
            frames: embedded?.frames, publisher: embedded?.publisher)
        if options.opensPage, let address = embedded?.pageAddress { fleet.open(address) }
        let helpers = [Task { await fleet.meter.run() }] + (readsKeys ? [Task { await fleet.passKeysOn() }] : [])
        let result: Result<DeviceSummary, any Error>
        do {
            result = .success(
                try await DeviceRunner.run(options.deviceIDs, stop: program.stop) { index, id in
                    try await device(Post(fleet: fleet, index: index, id: id))
                })
        } catch {
            result = .failure(error)
        }
        for helper in helpers { helper.cancel() }
        fleet.meter.finish()
        await embedded?.stop()
        let summary = try result.get()
        console.line(
            summary.line(for: program.device, devices: options.deviceIDs.count, elapsed: ContinuousClock.now - start))
    }

    /// Shows the page in the browser; without one, the printed address is left.
    private func open(_ address: String) {
        if let problem = WebBrowser.open(address) { program.console.line(problem, .caution) }
    }

    /// Keys act on all devices.
    private func passKeysOn() async {
        let reader = KeyReader()
        reader.start()
        for await key in reader.keys { keys.send(key) }
    }

    /// One device's place in its fleet.
    package struct Post: Sendable {
        package let fleet: Fleet
        package let index: Int
        package let id: String

        package var keys: Updates<Key> { fleet.keys.updates }
        package var stop: StopSwitch { fleet.program.stop }
        package var console: Console { fleet.program.console }

        /// Told before each line when there are several devices: `3: `.
        package var prefix: String { fleet.options.deviceIDs.count > 1 ? "\(index + 1): " : "" }

        /// One line on standard output.
        package func say(_ text: String, _ style: TextStyle = .plain) {
            console.line(prefix + text, style)
        }

        /// Prints that the recording starts over: once for all devices of a fleet, by the first.
        package func announceRun(_ number: Int) {
            if index == 0 { console.line("the replay starts over: run \(number)", .faint) }
        }

        /// Where the device drives, if it is one of a fleet with a name.
        package var place: FleetPlace {
            fleet.options.isSpread ? .place(of: index, among: fleet.options.deviceIDs.count) : .alone
        }
    }
}
