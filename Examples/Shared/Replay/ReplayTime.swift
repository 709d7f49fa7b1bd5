import Synchronization
import Transport

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
