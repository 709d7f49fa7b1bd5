import Foundation

/// What something took: on the wall, and of all threads of this process together.
struct Costs {
    var seconds = 0.0
    var processorSeconds = 0.0
    var allocations = 0
    /// System calls for sockets, and to wait for them.
    var systemCalls = 0
    /// Calls to the system that read or wrote.
    var calls = 0
    /// The most memory that the process had meanwhile, in bytes; 0 where the system does not tell.
    var peakMemory = 0
}

/// What `body` costs. `calls` counts reads and writes, if there are any.
func measured(calls: () -> Int = { 0 }, _ body: () async throws -> Void) async rethrows -> Costs {
    let start = Reading(calls: calls())
    try await body()
    return start.costs(calls: calls())
}

/// The same where Swift's concurrency must not start.
func measuredWithoutTasks(_ body: () throws -> Void) rethrows -> Costs {
    let start = Reading(calls: 0)
    try body()
    return start.costs(calls: 0)
}

/// Where all counters stand.
private struct Reading {
    private let time: ContinuousClock.Instant
    private let processor: Double
    private let allocations: Int
    private let systemCalls: Int
    private let calls: Int

    init(calls: Int) {
        self.calls = calls
        Memory.forgetPeak()
        allocations = Counters.allocations
        systemCalls = Counters.systemCalls
        processor = processorSeconds()
        time = ContinuousClock.now
    }

    /// What it took from here on.
    func costs(calls: Int) -> Costs {
        var costs = Costs(
            seconds: (ContinuousClock.now - time) / .seconds(1), processorSeconds: processorSeconds() - processor,
            allocations: Counters.allocations - allocations, systemCalls: Counters.systemCalls - systemCalls,
            calls: calls - self.calls)
        costs.peakMemory = Memory.peak
        return costs
    }
}

private func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
