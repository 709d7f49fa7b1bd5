import Foundation
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

    @Test func `a clock may be advanced to the end of time, and moments may be as far apart as they like`() async throws
    {
        let clock = try ManualClock()
        let start = clock.now
        await clock.advance(by: .seconds(Int64.max))
        #expect(start < clock.now)
        let past = clock.now.advanced(by: .seconds(Int64.min)).advanced(by: .seconds(Int64.min))
        #expect(past.duration(to: clock.now) > .seconds(18_000_000_000))
    }

    @Test func `the time of day passes with the clock`() async throws {
        let clock = try ManualClock()
        let start = clock.loop.timeOfDay
        #expect(abs(start - WallClock.milliseconds) < 600_000)
        await clock.advance(by: .seconds(3600))
        #expect(clock.loop.timeOfDay == start + 3_600_000)
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

    /// Notes when bytes arrive at the end of a pipe.
    private final class Reader: LoopHandler, @unchecked Sendable {
        // Sendable because the times are locked, and the descriptor never changes.
        let descriptor: Int32
        let times = Collected<Int64>()

        init(loop: EventLoop, descriptor: Int32) {
            self.descriptor = descriptor
            super.init(loop: loop)
        }

        override func ready(_ readiness: Readiness, at now: Int64) {
            var byte: UInt8 = 0
            if read(descriptor, &byte, 1) == 1 { times.append(now) }
        }
    }

    @Test(arguments: 1...4)
    func `no time passes before what a job has written to a pipe is read`(rounds: Int) async throws {
        let clock = try ManualClock()
        let loop = clock.loop
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (far, near) = (ends[0], ends[1])
        let reader = Reader(loop: loop, descriptor: far)
        await loop.result { loop.register(reader, descriptor: far, interest: .read) }
        // In the last of so many rounds that follow one another.
        @Sendable func write(after count: Int) {
            loop.execute {
                if count > 1 { return write(after: count - 1) }
                var byte: UInt8 = 1
                _ = Foundation.write(near, &byte, 1)
            }
        }
        var times: [Int64] = []
        for _ in 1...50 {
            times.append(loop.now)
            write(after: rounds)
            await clock.advance(by: .seconds(1))
        }
        #expect(reader.times.all == times)
        await loop.result { loop.unregister(reader, descriptor: far) }
        close(near)
        close(far)
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
