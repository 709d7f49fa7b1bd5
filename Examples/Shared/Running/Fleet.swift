package import MessagingShell

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
    /// Several devices on a terminal: what each of them does is counted in the status lines instead of printed, so that
    /// texts and alerts stay in sight.
    let isCompact: Bool
    /// Lines of values or frames push the others off the screen, so that the status lines repeat what is to stay.
    let isScrolling: Bool
    private let keys = Broadcaster<Key>(capacity: 64)

    /// Runs one device per id, shows what they share, and ends with a summary.
    ///
    /// - Parameters:
    ///   - unit: What the devices send: "fixes".
    ///   - isConfirmed: Whether the broker confirms what the devices send.
    ///   - place: Where the recording was made, for the page.
    ///   - readsKeys: Unless standard input brings the recording.
    package static func run(
        _ program: Program, _ options: DeviceOptions, unit: String, isConfirmed: Bool, place: String? = nil,
        readsKeys: Bool,
        device: @escaping @Sendable (Post) async throws -> Void
    ) async throws {
        let console = program.console
        let start = ContinuousClock.now
        if options.isInsecure {
            console.problem(
                "WARNING: --insecure: the broker's certificate is not checked. "
                    + "Anyone on the network path can read and change everything, the password included.")
        }
        let isCompact = console.isTerminal && options.deviceIDs.count > 1 && !options.isVerbose
        if isCompact, let first = options.deviceIDs.first, let last = options.deviceIDs.last {
            let count = options.deviceIDs.count
            console.line("\(count) devices: \(first) to \(last); --verbose prints what each of them does")
        } else {
            for id in options.deviceIDs { console.line("device: \(id)") }
        }
        let embedded =
            options.brokers.isEmpty ? try await EmbeddedBroker.start(for: program.device, options, place: place) : nil
        for line in embedded?.lines ?? [] { console.line(line, .strong) }
        let name = embedded?.urls.first ?? options.brokers.map(\.name).joined(separator: ", ")
        let isScrolling = !isCompact || options.showsFrames
        var pinned = [[embedded?.pageAddress ?? name]]
        if isScrolling {
            if let embedded { pinned = (embedded.pageAddress.map { [[$0]] } ?? []) + [embedded.urls] }
            if options.deviceIDs.count == 1 { pinned += options.deviceIDs.map { ["device: \($0)"] } }
        }
        let fleet = Fleet(
            program: program, options: options, name: name,
            urls: embedded.map { Array($0.urls.prefix(1)) } ?? options.brokerURLs,
            meter: ProgressMeter(
                unit: unit, devices: options.deviceIDs.count, isConfirmed: isConfirmed,
                pinned: pinned, console: console),
            frames: embedded?.frames, publisher: embedded?.publisher, isCompact: isCompact, isScrolling: isScrolling)
        if options.opensPage, let address = embedded?.pageAddress { fleet.open(address) }
        let helpers = [Task { await fleet.meter.run() }] + (readsKeys ? [Task { await fleet.passKeysOn() }] : [])
        var failure: (any Error)?
        do {
            try await DeviceRunner.run(options.deviceIDs, stop: program.stop) { index, id in
                try await device(Post(fleet: fleet, index: index, id: id))
            }
        } catch {
            failure = error
        }
        for helper in helpers { helper.cancel() }
        fleet.meter.finish(leavesLine: failure != nil)
        await embedded?.stop()
        if let failure { throw failure }
        let elapsed = ContinuousClock.now - start
        console.list(
            "summary:",
            fleet.meter.summary.items(for: program.device, devices: options.deviceIDs.count, elapsed: elapsed))
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

        /// Begins each line when there are several devices: `3: `, or the name where the numbers are not listed.
        package var prefix: String {
            fleet.options.deviceIDs.count == 1 ? "" : fleet.isCompact ? "\(id): " : "\(index + 1): "
        }

        /// One line on standard output.
        package func say(_ text: String, _ style: TextStyle = .plain) {
            console.line(prefix + text, style)
        }

        /// A value that was sent: a line, unless the status lines count it.
        package func showSent(_ text: String) {
            if !fleet.isCompact { say(text) }
        }

        /// An event of the connection: a line, or the newest one among the status lines.
        package func report(_ text: String, _ style: TextStyle = .plain) {
            if fleet.isCompact {
                fleet.meter.notice(StyledText(prefix + text, style))
            } else {
                say(text, style)
            }
        }

        /// A text from headquarters.
        package func showText(_ text: String) {
            let text = "text: \(text)"
            say(text, .accent)
            keepInSight(prefix + text)
        }

        /// An alert from headquarters, by the name of its colour.
        package func showAlert(_ name: String) {
            console.alert(name, prefix: prefix)
            keepInSight("\(prefix)alert: \(name)")
        }

        private func keepInSight(_ text: String) {
            if fleet.isScrolling { fleet.meter.received(StyledText(text, .accent)) }
        }

        /// Prints that the recording starts over: once for all devices of a fleet, by the first. The status lines count
        /// the runs as well.
        package func announceRun(_ number: Int) {
            if index == 0, !fleet.isCompact { console.line("the replay starts over: run \(number)", .faint) }
        }

        /// Where the device drives, if it is one of a fleet that is spread.
        package var place: FleetPlace {
            fleet.options.isSpread ? .place(of: index, among: fleet.options.deviceIDs.count) : .alone
        }
    }
}

/// Runs the devices of a fleet side by side, each started a moment after the one before.
package enum DeviceRunner {
    /// A tenth of a second apart, and ten seconds for all of them at most: a broker is not to be stormed.
    package static func stagger(devices: Int) -> Duration {
        min(.milliseconds(100), .seconds(10) / max(1, devices))
    }

    /// Runs `device` once per id.
    ///
    /// The first failure stops the others, lets them leave properly, and is then thrown. Devices whose turn has not
    /// come when the program stops do not start.
    package static func run(
        _ ids: [String], stop: StopSwitch, stagger: Duration? = nil,
        _ device: @escaping @Sendable (_ index: Int, _ id: String) async throws -> Void
    ) async throws {
        let stagger = stagger ?? Self.stagger(devices: ids.count)
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, id) in ids.enumerated() {
                group.addTask {
                    if index > 0 {
                        _ = try? await stop.untilStopped {
                            try await Task.sleep(until: start + stagger * index, clock: .continuous)
                        }
                        guard !stop.isStopped else { return }
                    }
                    try await device(index, id)
                }
            }
            var first: (any Error)?
            while let result = await group.nextResult() {
                guard case .failure(let error) = result else { continue }
                first = first ?? error
                stop.stop(.failure)
            }
            if let first { throw first }
        }
    }
}
