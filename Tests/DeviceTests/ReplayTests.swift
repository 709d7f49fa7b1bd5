import Synchronization
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct ReplayTests {
    private static let second: Int64 = 1_000_000_000

    /// Values 0, 1, 2… at these milliseconds.
    private func recording(_ milliseconds: [Int64]) -> Recording<Int> {
        var recording = Recording<Int>(name: "test", step: .seconds(1))
        for (value, time) in milliseconds.enumerated() {
            recording.append(value, recordedAt: time * 1_000_000)
        }
        return recording
    }

    private func steps(
        _ milliseconds: [Int64], speed: Double = 1, _ selection: ReplaySteps<Int>.Selection = .thinned(.zero),
        loops: Bool = false, count: Int = 100
    ) -> [String] {
        ReplaySteps(recording(milliseconds), speed: speed, selection: selection, loops: loops).prefix(count).map {
            "\($0.value)@\(Double($0.due) / 1e6)"
        }
    }

    // MARK: Which value when

    @Test func valuesGoOutAtTheirRecordedTimesOverTheSpeed() {
        #expect(steps([0, 1000, 1500, 9000]) == ["0@0.0", "1@1000.0", "2@1500.0", "3@9000.0"])
        #expect(steps([0, 1000, 1500, 9000], speed: 10) == ["0@0.0", "1@100.0", "2@150.0", "3@900.0"])
        #expect(steps([0, 1000], speed: 0.5) == ["0@0.0", "1@2000.0"])
        #expect(steps([]) == [])
    }

    @Test func thinningKeepsTheIntervalBetweenWhatIsSent() {
        let times: [Int64] = [0, 400, 900, 1000, 1100, 2500, 3400, 3500]
        #expect(steps(times, .thinned(.seconds(1))) == ["0@0.0", "3@1000.0", "5@2500.0", "7@3500.0"])
        // The interval is in the time of sending, not of recording.
        #expect(steps(times, speed: 2, .thinned(.seconds(1))) == ["0@0.0", "5@1250.0"])
    }

    @Test func samplingTakesTheLastValueRecordedByThen() {
        let times: [Int64] = [0, 400, 900, 1000, 1100, 2500, 3400]
        #expect(steps(times, .sampled(.seconds(1))) == ["0@0.0", "3@1000.0", "4@2000.0", "5@3000.0"])
        #expect(steps(times, speed: 2, .sampled(.seconds(1))) == ["0@0.0", "4@1000.0"])
        #expect(steps([0, 20, 40], .sampled(.zero)) == ["0@0.0", "1@20.0", "2@40.0"])
        // Less than a nanosecond.
        #expect(steps([0, 20, 40], .sampled(.seconds(1e-10))) == ["0@0.0", "1@20.0", "2@40.0"])
    }

    @Test func loopsStartOverAfterOneGapOfTheUsualSize() {
        #expect(
            steps([0, 500, 2000], loops: true, count: 5) == ["0@0.0", "1@500.0", "2@2000.0", "0@3000.0", "1@3500.0"])
        #expect(
            steps([0, 500, 2000], .sampled(.seconds(1)), loops: true, count: 5)
                == ["0@0.0", "1@1000.0", "2@2000.0", "0@3000.0", "1@4000.0"])
        #expect(steps([0], loops: true, count: 3) == ["0@0.0", "0@1000.0", "0@2000.0"])
        // One interval skips several passes.
        #expect(steps([0, 100], .sampled(.seconds(1)), loops: true, count: 3) == ["0@0.0", "0@1000.0", "0@2000.0"])
    }

    @Test func aMillionLoopsDoNotDrift() {
        var steps = ReplaySteps(recording([0, 333]), speed: 3, selection: .thinned(.zero), loops: true)
        var last: Int64 = 0
        let passes = Campaign.rounds(1_000_000)
        for _ in 0..<(2 * passes) { last = steps.next()?.due ?? -1 }
        // A pass is 666 ms of recording, so 222 ms, and the last value is 111 ms into the last pass.
        #expect(last == Int64(passes - 1) * 222_000_000 + 111_000_000)
    }

    @Test func anIntervalMayCoverAnyNumberOfPasses() {
        #expect(
            steps([0, 20], speed: 1000, .thinned(.seconds(86_400)), loops: true, count: 3)
                == ["0@0.0", "0@86400000.0", "0@172800000.0"])
    }

    @Test func extremeTimesAndSpeedsDoNotTrap() {
        let far: [Int64] = [0, 7_000_000_000_000, 0, 7_000_000_000_000, 1]
        for speed in [0.001, 1, 1_000_000] {
            for selection in [ReplaySteps<Int>.Selection.thinned(.seconds(86_400)), .sampled(.seconds(86_400))] {
                let steps = ReplaySteps(recording(far), speed: speed, selection: selection, loops: true)
                let due = steps.prefix(1000).map(\.due)
                #expect(due == due.sorted())
            }
        }
    }

    @Test func theDurationIsThatOfTheLastValue() {
        #expect(
            ReplaySteps(recording([0, 9000]), speed: 3, selection: .thinned(.zero), loops: false).duration == 3
                * Self.second)
        #expect(ReplaySteps(recording([0, 9000]), speed: 3, selection: .thinned(.zero), loops: true).duration == nil)
    }

    @Test func aReplayThatStartsInTheMiddlePlaysAllOfTheRecordingOnce() {
        func steps(
            _ selection: ReplaySteps<Int>.Selection, start: Double, loops: Bool = false, count: Int = 100
        ) -> [String] {
            ReplaySteps(
                recording([0, 500, 1000, 2000]), speed: 1, selection: selection, loops: loops, start: start
            ).prefix(count).map { "\($0.value)@\($0.due / 1_000_000) \($0.pass)" }
        }
        #expect(steps(.thinned(.zero), start: 0.5) == ["2@0 0", "3@1000 0", "0@1666 1", "1@2166 1"])
        #expect(
            steps(.thinned(.zero), start: 0.75, loops: true, count: 6)
                == ["3@0 0", "0@666 1", "1@1166 1", "2@1666 1", "3@2666 1", "0@3333 2"])
        #expect(steps(.sampled(.seconds(1)), start: 0.5) == ["2@0 0", "3@1000 0", "0@2000 1"])
        #expect(
            steps(.sampled(.seconds(1)), start: 0.5, loops: true, count: 4)
                == ["2@0 0", "3@1000 0", "0@2000 1", "2@3000 1"])
        #expect(steps(.thinned(.zero), start: 0).count == 4)
    }

    @Test func theDurationOfAReplayThatStartsInTheMiddleIsAWholePass() {
        let recording = recording([0, 500, 1000, 2000])
        let steps = ReplaySteps(recording, speed: 2, selection: .thinned(.zero), loops: false, start: 0.5)
        #expect(steps.duration == recording.period / 2)
        #expect(steps.lap == nil)
        let loop = ReplaySteps(recording, speed: 2, selection: .thinned(.zero), loops: true)
        #expect(loop.lap == recording.period / 2)
    }

    @Test func valuesAreAdjustedWhenTheirTimeComes() {
        let steps = ReplaySteps(
            recording([0, 500]), speed: 1, selection: .thinned(.zero), loops: false,
            adjust: { recording, index in recording.values[index] * 10 + recording.count })
        #expect(steps.map(\.value) == [2, 12])
    }

    // MARK: On a clock

    @Test func latenessOfOneStepDoesNotDelayTheNext() async throws {
        let clock = VirtualClock(lateness: .milliseconds(7))
        let replay = Replay(clock: clock)
        let start = clock.now
        var times: [Duration] = []
        let ending = try await replay.play(
            ReplaySteps(recording((0..<1000).map { $0 * 10 }), speed: 1, selection: .thinned(.zero), loops: false)
        ) { step in
            times.append(start.duration(to: clock.now))
        }
        #expect(ending == .atEnd)
        #expect(times.last == .milliseconds(9997))
    }

    @Test func aSlowBodyMakesStepsLateAndLosesNone() async throws {
        let clock = VirtualClock()
        let replay = Replay(clock: clock)
        var values: [Int] = []
        _ = try await replay.play(
            ReplaySteps(recording([0, 10, 20, 1000]), speed: 1, selection: .thinned(.zero), loops: false)
        ) { step in
            if step.value == 0 { clock.advance(by: .milliseconds(500)) }
            values.append(step.value)
        }
        #expect(values == [0, 1, 2, 3])
        #expect(replay.elapsed == Self.second)
    }

    @Test func aPauseShiftsEverythingAfterIt() async throws {
        let clock = VirtualClock()
        let replay = Replay(clock: clock)
        let start = clock.now
        var times: [Duration] = []
        _ = try await replay.play(
            ReplaySteps(recording([0, 1000, 2000]), speed: 1, selection: .thinned(.zero), loops: false)
        ) { step in
            times.append(start.duration(to: clock.now))
            if step.value == 1 {
                replay.pause()
                replay.pause()
                clock.advance(by: .seconds(60))
                #expect(replay.elapsed == Self.second)
                replay.resume()
                replay.resume()
            }
        }
        #expect(times == [.zero, .seconds(1), .seconds(62)])
        #expect(replay.elapsed == 2 * Self.second)
    }

    @Test func nothingGoesOutWhilePausedUntilResumedElsewhere() async throws {
        let replay = Replay(clock: ContinuousClock())
        let values = Mutex<[Int]>([])
        replay.pause()
        let recording = recording([0, 1])
        let task = Task {
            try await replay.play(
                ReplaySteps(recording, speed: 1, selection: .thinned(.zero), loops: false)
            ) { step in values.withLock { $0.append(step.value) } }
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(values.withLock { $0 }.isEmpty)
        replay.resume()
        #expect(try await task.value == .atEnd)
        #expect(values.withLock { $0 } == [0, 1])
    }

    @Test(arguments: [true, false])
    func cancellingStopsAReplayThatSleepsOrIsPaused(isPaused: Bool) async throws {
        let replay = Replay(clock: ContinuousClock())
        if isPaused { replay.pause() }
        let recording = recording([0, 1_000_000])
        let task = Task {
            try await replay.play(
                ReplaySteps(recording, speed: 1, selection: .thinned(.zero), loops: true)
            ) { _ in }
        }
        try await Task.sleep(for: .milliseconds(20))
        task.cancel()
        #expect(try await task.value == .stopped)
    }
}
