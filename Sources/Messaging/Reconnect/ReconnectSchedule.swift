import Transport
import Wire

/// The arithmetic of reconnecting, without a clock: what to do after each failure.
package struct ReconnectSchedule: Sendable {
    package enum Decision: Equatable, Sendable {
        /// Try again after so many nanoseconds.
        case retry(after: Int64)
        case giveUp
    }

    let policy: Shared<ReconnectPolicy>
    private var failures = 0
    /// The wait that comes next, before jitter; nil for the first one.
    private var nextDelay: Double?
    package private(set) var everConnected = false
    private var connectedAt: Int64?

    package init(policy: ReconnectPolicy) {
        self.init(Shared(policy))
    }

    init(_ policy: Shared<ReconnectPolicy>) {
        self.policy = policy
    }

    /// The number of the attempt that is under way or comes next, from 1; a round through all servers is one.
    package var attempt: Int { failures + 1 }

    /// Whether the connection has held for as long as the policy asks for.
    package func isStable(at now: Int64) -> Bool {
        connectedAt.map { now - $0 >= policy.value.stableAfter.inNanoseconds } ?? false
    }

    package mutating func established(at now: Int64) {
        everConnected = true
        connectedAt = now
        failures = 0
    }

    /// A connection was lost or an attempt failed.
    ///
    /// - Parameter random: uniform in 0..<1; draws the jitter.
    package mutating func failed(at now: Int64, random: Double) -> Decision {
        if connectedAt != nil {
            // Only a connection that held starts the waits over: a server that drops us at once is not helped.
            if isStable(at: now) { nextDelay = nil }
            connectedAt = nil
        } else {
            failures += 1
        }
        let limit = everConnected ? policy.value.maximumAttempts : policy.value.firstConnectAttempts
        if let limit, failures >= limit { return .giveUp }
        return .retry(after: delay(random: random))
    }

    /// A connection was lost or an attempt failed, and the next follows without a wait: what the connection had
    /// achieved does not count for the one after it.
    package mutating func retriesAtOnce(at now: Int64) {
        if isStable(at: now) { nextDelay = nil }
        connectedAt = nil
    }

    /// The network changed for the better: the next failure waits as short as the first.
    package mutating func resetDelay() {
        nextDelay = nil
    }

    private mutating func delay(random: Double) -> Int64 {
        let policy = policy.value
        // Whatever a policy holds, "not a number" included, ends as a delay between nothing and the maximum.
        let maximum = Double(max(0, policy.maximumDelay.inNanoseconds))
        let initial = Double(max(0, policy.initialDelay.inNanoseconds))
        let full = min(nextDelay ?? initial, maximum)
        let longer = full * (policy.multiplier > 1 ? policy.multiplier : 1)
        nextDelay = longer < maximum ? longer : maximum
        let jitter = policy.jitter > 0 ? min(policy.jitter, 1) : 0
        return Int64(exactly: (full * (1 - jitter * random)).rounded(.down)) ?? .max
    }
}
