import Synchronization
import Transport

/// Plays steps on a clock.
package struct Replay<ReplayClock: Clock>: Sendable where ReplayClock.Duration == Duration {
    package enum Ending: Sendable, Equatable {
        case atEnd
        case stopped
    }

    private let clock: ReplayClock
    package let time: ReplayTime<ReplayClock.Instant>

    /// The replay starts now.
    package init(clock: ReplayClock) {
        self.clock = clock
        time = ReplayTime(start: clock.now)
    }

    package func pause() { time.pause(at: clock.now) }
    package func resume() { time.resume(at: clock.now) }
    package var elapsed: Int64 { time.elapsed(at: clock.now) }

    /// Calls `body` for each step when it is due; one that is late goes at once. Cancelling the task stops it.
    package func play<Value>(
        _ steps: ReplaySteps<Value>, _ body: (ReplaySteps<Value>.Step) async throws -> Void
    ) async throws -> Ending {
        for step in steps {
            guard await wait(for: step.due) else { return .stopped }
            try await body(step)
        }
        return Task.isCancelled ? .stopped : .atEnd
    }

    /// False when the task was cancelled before the time came.
    func wait(for due: Int64) async -> Bool {
        while !Task.isCancelled {
            await time.untilResumed()
            let deadline = time.deadline(due)
            guard clock.now < deadline else {
                // A replay that is late or very fast must still let others run and notice that it is stopped.
                await Task.yield()
                return !Task.isCancelled
            }
            // A pause meanwhile has moved the deadline, so it is looked at again.
            try? await clock.sleep(until: deadline, tolerance: nil)
        }
        return false
    }
}

/// When things are due on a clock that can be stopped and set going again, for all devices of a program.
///
/// A deadline is the start plus what is due plus all pauses so far: computed anew each time and never added up from
/// sleeps, so that a late wake-up delays one step and not the rest.
package final class ReplayTime<Time: InstantProtocol>: Sendable where Time.Duration == Duration {
    fileprivate struct State {
        var paused: Duration = .zero
        var pausedSince: Time?
        var waiters: [PendingCall<Void>] = []
    }

    private let start: Time
    private let state = Mutex(State())

    package init(start: Time) {
        self.start = start
    }

    package func deadline(_ due: Int64) -> Time {
        start.advanced(by: .nanoseconds(due) + state.withLock { $0.paused })
    }

    /// Nanoseconds of replay so far, without the pauses.
    package func elapsed(at now: Time) -> Int64 {
        state.withLock { state in
            start.duration(to: state.pausedSince ?? now) - state.paused
        }.wholeNanoseconds
    }

    /// Nothing becomes due from here on; repeated calls are harmless.
    package func pause(at now: Time) {
        state.withLock { state in
            if state.pausedSince == nil { state.pausedSince = now }
        }
    }

    package func resume(at now: Time) {
        let waiters = state.withLock { state in
            guard let since = state.pausedSince else { return state.takeWaiters() }
            state.paused += since.duration(to: now)
            state.pausedSince = nil
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.end(()) }
    }

    /// Returns at once unless paused, and when the task is cancelled.
    package func untilResumed() async {
        let call = PendingCall<Void>()
        let isPaused = state.withLock { state in
            guard state.pausedSince != nil else { return false }
            // Waiters that were cancelled are not needed any more.
            state.waiters.removeAll(where: \.isOver)
            state.waiters.append(call)
            return true
        }
        if isPaused { await call.answer { call.end(()) } }
    }
}

extension ReplayTime.State {
    fileprivate mutating func takeWaiters() -> [PendingCall<Void>] {
        defer { waiters = [] }
        return waiters
    }
}

extension Replay {
    /// Passes on the values of a live source as they are read: recorded times do not pace them.
    ///
    /// - Parameters:
    ///   - interval: At most one value goes out per interval, the newest; one below a nanosecond passes on every
    ///     value. The last value before the end of the source always goes out.
    ///   - isWanted: Called for each value when it is read; false skips it.
    package func play<Value>(
        _ source: LiveSource<Value>, interval: Duration, isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ body: (Value) async throws -> Void
    ) async throws -> Ending {
        let first: () async throws -> Value? = {
            while let value = try await source.next() {
                if isWanted(value) { return value }
            }
            return nil
        }
        if interval.wholeNanoseconds == 0 {
            while let value = try await first() { try await body(value) }
            return Task.isCancelled ? .stopped : .atEnd
        }
        guard let value = try await first() else { return Task.isCancelled ? .stopped : .atEnd }
        try await body(value)
        // The others are read while the interval lasts, so that the source is never held up.
        let newest = NewestValue<Value>()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do throws(DeviceFailure) {
                    while let value = try await source.next() {
                        if isWanted(value) { newest.put(value) }
                    }
                    newest.finish()
                } catch {
                    newest.finish(error)
                }
            }
            defer { group.cancelAll() }
            var due = elapsed + interval.wholeNanoseconds
            while try await newest.arrives() {
                guard await wait(for: due), let value = newest.take() else { break }
                try await body(value)
                due = elapsed + interval.wholeNanoseconds
            }
            return Task.isCancelled ? .stopped : .atEnd
        }
    }
}

/// Holds one value until it is taken; a newer one takes its place.
final class NewestValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var hasEnded = false
        var failure: DeviceFailure?
        var waiter: PendingCall<Void>?

        var isReady: Bool { value != nil || hasEnded }

        mutating func takeWaiter() -> PendingCall<Void>? { waiter.take() }
    }

    private let state = Mutex(State())

    func put(_ value: Value) {
        change { $0.value = value }
    }

    /// No value will follow. The last one can still be taken.
    func finish(_ failure: DeviceFailure? = nil) {
        change {
            $0.hasEnded = true
            $0.failure = failure
        }
    }

    func take() -> Value? {
        state.withLock { $0.value.take() }
    }

    /// Waits for a value; for one task at a time. False at the end and when the task is cancelled.
    ///
    /// - Throws: The failure of `finish`, after the last value.
    func arrives() async throws(DeviceFailure) -> Bool {
        let call = PendingCall<Void>()
        let isReady = state.withLock { state in
            if !state.isReady { state.waiter = call }
            return state.isReady
        }
        if !isReady { await call.answer { call.end(()) } }
        let (hasValue, failure) = state.withLock { ($0.value != nil, $0.failure) }
        if !hasValue, let failure { throw failure }
        return hasValue
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.takeWaiter()
        }
        waiter?.end(())
    }
}
