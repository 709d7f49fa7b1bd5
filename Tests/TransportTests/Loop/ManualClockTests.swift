import Synchronization
import TestSupport
import Testing

@testable import Transport

@Suite(.turns) struct ManualClockTests {
    /// A clock that collects what it would print, after a few milliseconds.
    private func impatient() async throws -> (clock: ManualClock, warnings: Collected<String>) {
        let clock = try ManualClock()
        let warnings = Collected<String>()
        await clock.loop.result { [loop = clock.loop] in
            loop.manualTime?.patience = 10_000_000
            loop.manualTime?.warn = { warnings.append($0) }
        }
        return (clock, warnings)
    }

    @Test func `a clock that was advanced before the work had begun prints once how far the next deadline is`()
        async throws
    {
        let (clock, warnings) = try await impatient()
        await clock.advance(by: .seconds(30))
        let late = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(30))) }
        #expect(await eventually { !warnings.all.isEmpty })
        #expect(warnings.all.first?.contains("due in 30.0 seconds") == true)
        #expect(warnings.all.first?.hasSuffix("\n") == true)
        await clock.advance(by: .seconds(30))
        try await late.value
        let later = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(30))) }
        // Longer than its patience: a pause that is too short can only miss a second line.
        try await Task.sleep(for: .milliseconds(50))
        await clock.advance(by: .seconds(30))
        try await later.value
        #expect(warnings.all.count == 1)
    }

    @Test func `a clock that was not advanced far enough prints how far the next deadline is`() async throws {
        let (clock, warnings) = try await impatient()
        // Not before the advance, however late the system lets this task continue.
        await clock.loop.result { [loop = clock.loop] in loop.manualTime?.patience = 3_600_000_000_000 }
        let late = Task(executorPreference: clock.loop) {
            try await clock.sleep(until: clock.now.advanced(by: .seconds(90)))
        }
        await clock.loop.result {}
        await clock.advance(by: .seconds(30))
        await clock.loop.result { [loop = clock.loop] in loop.manualTime?.patience = 10_000_000 }
        #expect(await eventually { !warnings.all.isEmpty })
        #expect(warnings.all.first?.contains("due in 60.0 seconds") == true)
        await clock.advance(by: .seconds(60))
        try await late.value
    }

    @Test func `an advance that waits for work outside the clock prints what that may be`() async throws {
        let (clock, warnings) = try await impatient()
        clock.loop.beginWork()
        let advance = Task { await clock.advance(by: .seconds(1)) }
        #expect(await eventually { !warnings.all.isEmpty })
        #expect(warnings.all.first?.contains("a credentialsProvider") == true)
        clock.loop.executeNow { clock.loop.endWork() }
        await advance.value
    }

    @Test func `a clock on which nothing is due prints nothing`() async throws {
        let (clock, warnings) = try await impatient()
        await clock.advance(by: .seconds(1))
        await clock.waitUntilQuiet()
        // Longer than its patience: a pause that is too short can only miss a warning that is wrong.
        try await Task.sleep(for: .milliseconds(50))
        #expect(warnings.all.isEmpty)
    }
}
