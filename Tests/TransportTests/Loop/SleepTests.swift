import Foundation
import TestSupport
import Testing

@testable import Transport

/// What a loop does when the system wakes from sleep: on a clock whose sleep is a test's.
@Suite(.turns) struct SleepTests {
    /// Notes what it is notified of.
    private final class Sleeper: LoopHandler, @unchecked Sendable {
        // Sendable because what it notes is locked, and the descriptor never changes.
        let descriptor: Int32
        let noted = Collected<String>()

        init(loop: EventLoop, descriptor: Int32 = -1) {
            self.descriptor = descriptor
            super.init(loop: loop)
        }

        override func ready(_ readiness: Readiness, at now: Int64) {
            var byte: UInt8 = 0
            if read(descriptor, &byte, 1) == 1 { noted.append("read") }
        }

        override func deadlineReached(at now: Int64) { noted.append("due") }

        override func systemSlept(since start: Int64, at now: Int64) {
            noted.append("slept for \((now - start) / 1_000_000) ms")
        }
    }

    private static let second: Int64 = 1_000_000_000

    @Test(arguments: SelectorKind.allCases)
    func `after a sleep a loop reads first, then reports the sleep, then does what is due`(
        selector: SelectorKind
    ) async throws {
        let clock = try ManualClock(selector: selector)
        let loop = clock.loop
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (far, near) = (ends[0], ends[1])
        let sleeper = Sleeper(loop: loop, descriptor: far)
        await loop.result {
            loop.register(sleeper, descriptor: far, interest: .read)
            loop.setDeadline(sleeper, to: loop.now + 10 * Self.second)
            var byte: UInt8 = 1
            _ = Foundation.write(near, &byte, 1)
            loop.manualTime?.sleep(forNanoseconds: 30 * Self.second)
        }
        await clock.waitUntilQuiet()
        #expect(sleeper.noted.all == ["read", "slept for 30000 ms", "due"])
        await loop.result { loop.unregister(sleeper, descriptor: far) }
        close(near)
        close(far)
    }

    @Test func `each sleep is reported once, to all that has a deadline`() async throws {
        let clock = try ManualClock()
        let loop = clock.loop
        let (sleeper, idle) = (Sleeper(loop: loop), Sleeper(loop: loop))
        await loop.result { loop.setDeadline(sleeper, to: loop.now + 3_600 * Self.second) }
        await clock.letSystemSleep(for: .seconds(5))
        await clock.advance(by: .seconds(60))
        await clock.letSystemSleep(for: .seconds(7))
        await clock.advance(by: .seconds(60))
        #expect(sleeper.noted.all == ["slept for 5000 ms", "slept for 7000 ms"])
        #expect(idle.noted.all == [])
        await loop.result { loop.setDeadline(sleeper, to: .max) }
    }

    @Test func `a deadline that another handler has cancelled after a sleep is reported to none`() async throws {
        final class Canceller: LoopHandler, @unchecked Sendable {
            // Sendable because the other handler is constant.
            let other: Sleeper
            init(_ other: Sleeper) {
                self.other = other
                super.init(loop: other.loop)
            }
            override func systemSlept(since start: Int64, at now: Int64) { loop.setDeadline(other, to: .max) }
        }
        let clock = try ManualClock()
        let loop = clock.loop
        let sleeper = Sleeper(loop: loop)
        let canceller = Canceller(sleeper)
        await loop.result {
            loop.setDeadline(canceller, to: loop.now + 3_600 * Self.second)
            loop.setDeadline(sleeper, to: loop.now + 3_601 * Self.second)
        }
        await clock.letSystemSleep(for: .seconds(5))
        let alarms = await loop.result { loop.alarms.map { $0 === canceller } }
        #expect(sleeper.noted.all == [] && alarms == [true])
        await loop.result { loop.setDeadline(canceller, to: .max) }
    }

    @Test func `time that passes while the system is awake is no sleep, and neither is a moment`() async throws {
        let clock = try ManualClock()
        let loop = clock.loop
        let sleeper = Sleeper(loop: loop)
        await loop.result { loop.setDeadline(sleeper, to: loop.now + 3_600 * Self.second) }
        await clock.advance(by: .seconds(600))
        // As when the time of day was set, which ends the wait.
        await loop.result {}
        await clock.letSystemSleep(for: .milliseconds(900))
        #expect(sleeper.noted.all == [])
        await loop.result { loop.setDeadline(sleeper, to: .max) }
    }

    @Test func `the clock of deadlines counts the time asleep`() {
        let (before, asleep) = (MonotonicClock.now, MonotonicClock.timeAsleep)
        #if os(Linux)
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            let now = Int64(time.tv_sec) * Self.second + Int64(time.tv_nsec)
            #expect(before <= now && now <= MonotonicClock.now)
        #endif
        // A machine that sleeps during its tests would show it here.
        #expect(asleep >= -Self.second && MonotonicClock.timeAsleep - asleep < 3_600 * Self.second)
    }

    #if os(Linux)
        @Test func `a wait ends when the time of day jumps, as it does when the system wakes`() throws {
            func words(_ descriptor: Int32) throws -> [[Substring]] {
                let text = try String(contentsOfFile: "/proc/self/fdinfo/\(descriptor)", encoding: .utf8)
                return text.split(separator: "\n").map { $0.split { $0 == " " || $0 == "\t" } }
            }
            let selector = try EpollSelector()
            let timer = try words(selector.clockDescriptor)
            // CLOCK_REALTIME; absolute, and cancelled when the clock is set.
            #expect(timer.contains(["clockid:", "0"]))
            #expect(timer.contains(["settime", "flags:", "03"]))
            #expect(timer.contains(["ticks:", "0"]))
            // In a hundred years at the earliest: nothing wakes an idle loop.
            let value = try #require(timer.first { $0.first == "it_value:" })
            #expect(try #require(Int(value[1].filter(\.isNumber))) > 3_000_000_000)
            let watch = try words(selector.epoll).first {
                $0.starts(with: ["tfd:", Substring("\(selector.clockDescriptor)")])
            }
            // EPOLLET | EPOLLIN, and the two that are always reported.
            #expect(try #require(watch).starts(with: ["tfd:", Substring("\(selector.clockDescriptor)"), "events:"]))
            #expect(try #require(watch)[3] == "80000019")
        }
    #endif
}
