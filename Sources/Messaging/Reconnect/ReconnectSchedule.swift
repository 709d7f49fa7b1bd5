import Transport

/// The arithmetic of reconnecting, without a clock: what to do after each failure.
package struct ReconnectSchedule: Sendable {
    package enum Decision: Equatable, Sendable {
        /// Try again after so many nanoseconds.
        case retry(after: Int64)
        case giveUp
    }

    package let policy: ReconnectPolicy
    private var failures = 0
    private var delayStep = 0
    private var everConnected = false
    private var connectedAt: Int64?

    package init(policy: ReconnectPolicy) {
        self.policy = policy
    }

    /// The number of the attempt that is under way or comes next, from 1.
    package var attempt: Int { failures + 1 }

    package mutating func established(at now: Int64) {
        everConnected = true
        connectedAt = now
        failures = 0
    }

    /// A connection was lost or an attempt failed.
    ///
    /// - Parameter random: uniform in 0..<1; draws the jitter.
    package mutating func failed(at now: Int64, random: Double) -> Decision {
        if let connectedAt {
            // Only a connection that held starts the waits over: a server that drops us at once is not helped.
            if now - connectedAt >= policy.stableAfter.inNanoseconds { delayStep = 0 }
            self.connectedAt = nil
        } else {
            failures += 1
        }
        let limit = everConnected ? policy.maximumAttempts : policy.firstConnectAttempts
        if let limit, failures >= limit { return .giveUp }
        defer { delayStep += 1 }
        return .retry(after: delay(random: random))
    }

    /// The network changed for the better: the next failure waits as short as the first.
    package mutating func resetDelay() {
        delayStep = 0
    }

    private func delay(random: Double) -> Int64 {
        let initial = Double(max(0, policy.initialDelay.inNanoseconds))
        let maximum = Double(max(0, policy.maximumDelay.inNanoseconds))
        var full = initial
        for _ in 0..<min(delayStep, 64) where full < maximum { full *= max(1, policy.multiplier) }
        full = min(full, maximum)
        let jitter = min(max(policy.jitter, 0), 1)
        return Int64(full * (1 - jitter * random))
    }
}
