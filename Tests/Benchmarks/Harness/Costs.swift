import Foundation

/// What something took: on the wall, and of all threads of this process together.
struct Costs {
    var seconds = 0.0
    var processorSeconds = 0.0
    var allocations = 0
    /// Calls to the system that read or wrote.
    var calls = 0
}

/// What `body` costs. `calls` counts reads and writes, if there are any.
func measured(calls: () -> Int = { 0 }, _ body: () async throws -> Void) async rethrows -> Costs {
    let start = ContinuousClock.now
    let before = Costs(
        seconds: 0, processorSeconds: processorSeconds(), allocations: Allocations.count, calls: calls())
    try await body()
    return Costs(
        seconds: (ContinuousClock.now - start) / .seconds(1),
        processorSeconds: processorSeconds() - before.processorSeconds,
        allocations: Allocations.count - before.allocations, calls: calls() - before.calls)
}

private func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
