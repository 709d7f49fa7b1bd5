import MessagingShell
import MessagingWire
import TestSupport
import Testing

@Suite(.turns) struct ReconnectScheduleTests {
    private let second: Int64 = 1_000_000_000

    private func delay(_ decision: ReconnectSchedule.Decision) -> Int64? {
        if case .retry(let nanoseconds) = decision { nanoseconds } else { nil }
    }

    private func policy(
        initial: Duration = .seconds(1), maximum: Duration = .seconds(60), multiplier: Double = 2, jitter: Double = 0,
        stable: Duration = .seconds(10), attempts: Int? = nil, first: Int? = nil,
        failover: Duration = .milliseconds(100), spread: Duration = .seconds(1)
    ) -> ReconnectPolicy {
        ReconnectPolicy(
            initialDelay: initial, maximumDelay: maximum, multiplier: multiplier, jitter: jitter, stableAfter: stable,
            maximumAttempts: attempts, firstConnectAttempts: first, failoverDelay: failover, spread: spread)
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

    static let ages: [(Duration, Int64)] = [(.seconds(3600), 3600), (.seconds(1), 1), (.zero, 1), (.seconds(-5), 1)]

    @Test(arguments: ages)
    func `the age of a connection is drawn from half of the maximum to all of it`(age: Duration, seconds: Int64) {
        var policy = policy()
        #expect(ReconnectSchedule(policy: policy).ageLimit(random: 0) == nil)
        policy.maximumConnectionAge = age
        let schedule = ReconnectSchedule(policy: policy)
        #expect(schedule.ageLimit(random: 0) == seconds * second)
        #expect(schedule.ageLimit(random: 0.5) == seconds * second / 4 * 3)
        #expect(schedule.ageLimit(random: 1) == seconds * second / 2)
    }

    @Test func `only a connection that held starts the waits over`() {
        var schedule = ReconnectSchedule(policy: policy())
        #expect(delay(schedule.failed(at: 0, random: 0)) == second)
        schedule.established(at: 100 * second)
        #expect(delay(schedule.failed(at: 109 * second, random: 0)) == 2 * second)
        schedule.established(at: 200 * second)
        #expect(delay(schedule.failed(at: 210 * second, random: 0)) == 0)
        #expect(delay(schedule.failed(at: 211 * second, random: 0)) == second)
        #expect(delay(schedule.failed(at: 211 * second, random: 0)) == 2 * second)
        schedule.resetDelay()
        #expect(delay(schedule.failed(at: 212 * second, random: 0)) == second)
    }

    @Test func `a connection without answers is a failed attempt, however long it lasted, and the waits start over`() {
        var schedule = ReconnectSchedule(policy: policy(attempts: 3))
        for round in 1...2 {
            schedule.established(at: 0)
            schedule.ends(for: .missingAnswer)
            #expect(schedule.endedAttempt(at: 100 * second) == round)
            #expect(delay(schedule.failed(at: 100 * second, random: 0)) == 0)
        }
        var other = schedule
        schedule.established(at: 0)
        schedule.ends(for: .missingAnswer)
        #expect(schedule.failed(at: 100 * second, random: 0) == .giveUp)
        other.established(at: 0)
        #expect(delay(other.failed(at: 100 * second, random: 0)) == 0)
        #expect(other.attempt == 1)
    }

    @Test func `a connection that ended because of a request has held, however short it lasted`() {
        var schedule = ReconnectSchedule(policy: policy(attempts: 3))
        for _ in 0..<2 { _ = schedule.failed(at: 0, random: 0) }
        for _ in 0..<5 {
            schedule.established(at: 0)
            schedule.ends(for: .refusedRequest)
            #expect(delay(schedule.failed(at: 0, random: 0.5)) == second / 2)
            #expect(schedule.attempt == 1)
        }
    }

    @Test func `after a loss the first wait is drawn from zero to the spread, or is that of a failover`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        var drawn: [Int64] = []
        for _ in 0..<1_000 {
            var schedule = ReconnectSchedule(policy: .automatic)
            schedule.established(at: 0)
            let wait = schedule.failed(at: 60 * second, random: .random(in: 0..<1, using: &random))
            drawn.append(try #require(delay(wait)))
            // What follows grows from the initial delay.
            #expect(delay(schedule.failed(at: 60 * second, random: 0)) == second / 2)
            #expect(delay(schedule.failed(at: 60 * second, random: 0)) == second)
        }
        #expect(drawn.allSatisfy { 0..<second ~= $0 })
        // 1,000 clients are spread evenly: about 100 in each tenth.
        for tenth in 0..<10 {
            let count = drawn.count { $0 / (second / 10) == tenth }
            #expect((50..<150).contains(count), "\(tenth): \(count)")
        }
        var moving = ReconnectSchedule(policy: .automatic)
        moving.established(at: 0)
        #expect(delay(moving.failed(at: 60 * second, isFailover: true, random: 0.9)) == second / 10)
        // A server that drops clients at once is not helped by haste.
        moving.established(at: 61 * second)
        #expect(delay(moving.failed(at: 61 * second, isFailover: true, random: 0)) == second / 2)
        // None is longer than the maximum.
        let short = policy(maximum: .milliseconds(5))
        var limited = ReconnectSchedule(policy: short)
        #expect(limited.failoverDelay == 5_000_000)
        limited.established(at: 0)
        #expect(try #require(delay(limited.failed(at: 60 * second, random: 0.999))) <= 5_000_000)
    }

    @Test func `one count for waits, attempts and maximumAttempts starts over with a connection that held`() {
        var schedule = ReconnectSchedule(policy: policy(attempts: 8))
        for round in 1...7 {
            #expect(schedule.attempt == round)
            // Every second attempt succeeds, and its connection is lost at once.
            if round.isMultiple(of: 2) { schedule.established(at: 0) }
            if round == 1 { schedule.keepTrying() }
            #expect(schedule.attempt == round)
            #expect(schedule.failed(at: second, random: 0) != .giveUp)
        }
        #expect(schedule.attempt == 8)
        var other = schedule
        other.established(at: 0)
        #expect(other.failed(at: 9 * second, random: 0) == .giveUp)
        schedule.established(at: 0)
        #expect(schedule.failed(at: 10 * second, random: 0) != .giveUp)
        #expect(schedule.attempt == 1)
    }

    @Test func `gives up after the attempts that the policy allows`() {
        var schedule = ReconnectSchedule(policy: policy(attempts: 3, first: 2))
        #expect(schedule.attempt == 1)
        #expect(schedule.failed(at: 0, random: 0) != .giveUp)
        #expect(schedule.attempt == 2)
        #expect(schedule.failed(at: 0, random: 0) == .giveUp)

        schedule.established(at: 0)
        // The loss of a connection that held is not a failed attempt.
        for _ in 0..<3 { #expect(schedule.failed(at: 10 * second, random: 0) != .giveUp) }
        #expect(schedule.failed(at: 10 * second, random: 0) == .giveUp)
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
                let odd = policy(
                    initial: initial, maximum: maximum, multiplier: odd, jitter: odd, stable: initial,
                    failover: initial, spread: initial)
                var schedule = ReconnectSchedule(policy: odd)
                for round in 0..<70 {
                    if round % 10 == 0 { schedule.established(at: 0) }
                    let isFailover = round % 20 == 0
                    let drawn = try #require(
                        delay(schedule.failed(at: 1, isFailover: isFailover, random: 0.999)))
                    #expect(drawn >= 0)
                    #expect(drawn <= max(0, maximum.inNanoseconds))
                }
            }
        }
    }
}
