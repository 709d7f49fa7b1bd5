import Messaging
import TestSupport
import Testing
import Wire

@Suite(.turns) struct ReconnectScheduleTests {
    private let second: Int64 = 1_000_000_000

    private func delay(_ decision: ReconnectSchedule.Decision) -> Int64? {
        if case .retry(let nanoseconds) = decision { nanoseconds } else { nil }
    }

    private func policy(
        initial: Duration = .seconds(1), maximum: Duration = .seconds(60), multiplier: Double = 2, jitter: Double = 0,
        stable: Duration = .seconds(10), attempts: Int? = nil, first: Int? = nil
    ) -> ReconnectPolicy {
        ReconnectPolicy(
            initialDelay: initial, maximumDelay: maximum, multiplier: multiplier, jitter: jitter, stableAfter: stable,
            maximumAttempts: attempts, firstConnectAttempts: first)
    }

    @Test func `waits twice as long each time, up to the maximum`() {
        var schedule = ReconnectSchedule(policy: policy())
        let delays = (0..<9).compactMap { _ in delay(schedule.failed(at: 0, random: 0)) }
        #expect(delays == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { $0 * second })
    }

    @Test func `even slow growth reaches the maximum`() {
        var schedule = ReconnectSchedule(policy: policy(multiplier: 1.01))
        for _ in 0..<500 { _ = schedule.failed(at: 0, random: 0) }
        #expect(delay(schedule.failed(at: 0, random: 0)) == 60 * second)
    }

    @Test func `jitter takes away up to its part of the wait`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        var schedule = ReconnectSchedule(policy: policy(multiplier: 1, jitter: 0.25))
        #expect(delay(schedule.failed(at: 0, random: 0)) == second)
        for _ in 0..<Campaign.rounds(10_000, least: 100) {
            let drawn = try #require(delay(schedule.failed(at: 0, random: .random(in: 0..<1, using: &random))))
            #expect(drawn > 3 * second / 4 - 1 && drawn <= second)
        }
    }

    @Test func `only a connection that held starts the waits over`() {
        var schedule = ReconnectSchedule(policy: policy())
        #expect(delay(schedule.failed(at: 0, random: 0)) == second)
        schedule.established(at: 100 * second)
        #expect(delay(schedule.failed(at: 109 * second, random: 0)) == 2 * second)
        schedule.established(at: 200 * second)
        #expect(delay(schedule.failed(at: 210 * second, random: 0)) == second)
        #expect(delay(schedule.failed(at: 211 * second, random: 0)) == 2 * second)
        schedule.resetDelay()
        #expect(delay(schedule.failed(at: 212 * second, random: 0)) == second)
    }

    @Test func `gives up after the attempts that the policy allows`() {
        var schedule = ReconnectSchedule(policy: policy(attempts: 3, first: 2))
        #expect(schedule.attempt == 1)
        #expect(schedule.failed(at: 0, random: 0) != .giveUp)
        #expect(schedule.attempt == 2)
        #expect(schedule.failed(at: 0, random: 0) == .giveUp)

        schedule.established(at: 0)
        #expect(schedule.attempt == 1)
        // The loss itself is not an attempt.
        for _ in 0..<3 { #expect(schedule.failed(at: 0, random: 0) != .giveUp) }
        #expect(schedule.failed(at: 0, random: 0) == .giveUp)
    }

    @Test func `never means not even once, automatic that the first failure is thrown`() {
        var never = ReconnectSchedule(policy: .never)
        never.established(at: 0)
        #expect(never.failed(at: 0, random: 0) == .giveUp)
        var automatic = ReconnectSchedule(policy: .automatic)
        #expect(automatic.failed(at: 0, random: 0) == .giveUp)
        automatic.established(at: 0)
        for _ in 0..<1000 { #expect(automatic.failed(at: 0, random: 0.5) != .giveUp) }
    }

    @Test(arguments: [-1, 0, 0.5, 1, 1e300, .infinity, -.infinity, .nan])
    func `no policy traps, whatever it holds`(odd: Double) throws {
        let durations: [Duration] = [.seconds(-5), .zero, .nanoseconds(1), .seconds(Int64.max), .seconds(Int64.min)]
        for initial in durations {
            for maximum in durations {
                let odd = policy(initial: initial, maximum: maximum, multiplier: odd, jitter: odd, stable: initial)
                var schedule = ReconnectSchedule(policy: odd)
                for round in 0..<70 {
                    if round % 10 == 0 { schedule.established(at: 0) }
                    let drawn = try #require(delay(schedule.failed(at: 1, random: 0.999)))
                    #expect(drawn >= 0)
                    #expect(drawn <= max(0, maximum.inNanoseconds))
                }
            }
        }
    }
}
