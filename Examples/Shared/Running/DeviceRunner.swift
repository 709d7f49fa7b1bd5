/// Runs the devices of a fleet side by side, each started a moment after the one before.
package enum DeviceRunner {
    /// A tenth of a second apart, and ten seconds for all of them at most: a broker is not to be stormed.
    package static func stagger(devices: Int) -> Duration {
        min(.milliseconds(100), .seconds(10) / max(1, devices))
    }

    /// Runs `device` once per id and adds up the summaries.
    ///
    /// The first failure stops the others, lets them leave properly, and is then thrown. Devices whose turn has not
    /// come when the program stops do not start.
    package static func run(
        _ ids: [String], stop: StopSwitch, stagger: Duration? = nil,
        _ device: @escaping @Sendable (_ index: Int, _ id: String) async throws -> DeviceSummary
    ) async throws -> DeviceSummary {
        let stagger = stagger ?? Self.stagger(devices: ids.count)
        let start = ContinuousClock.now
        return try await withThrowingTaskGroup(of: DeviceSummary.self) { group in
            for (index, id) in ids.enumerated() {
                group.addTask {
                    if index > 0 {
                        _ = try? await stop.untilStopped {
                            try await Task.sleep(until: start + stagger * index, clock: .continuous)
                        }
                        guard !stop.isStopped else { return DeviceSummary() }
                    }
                    return try await device(index, id)
                }
            }
            var total = DeviceSummary()
            var failure: (any Error)?
            while let result = await group.nextResult() {
                switch result {
                case .success(let summary):
                    total = total + summary
                case .failure(let error):
                    failure = failure ?? error
                    stop.stop(.failure)
                }
            }
            if let failure { throw failure }
            return total
        }
    }
}
