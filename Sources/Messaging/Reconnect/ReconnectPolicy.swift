import Transport
import Wire

/// When and how often a lost connection is opened again.
///
/// With several servers an attempt is a round in which each of them is tried, one right after the other; the client waits
/// between rounds.
public struct ReconnectPolicy: Sendable, Equatable {
    /// Time before the first new attempt. Default: 0.5 seconds.
    public var initialDelay: Duration
    /// The longest time between two attempts. Default: 60 seconds.
    public var maximumDelay: Duration
    /// Factor by which each delay is longer than the one before. Default: 2.
    public var multiplier: Double
    /// The part of each delay that is drawn at random, from 0 to 1, so that a thousand clients do not come back at once.
    /// Default: 0.5.
    public var jitter: Double
    /// A connection must have lasted for this long before the delays start over from `initialDelay`. Default: 10 seconds.
    public var stableAfter: Duration
    /// Attempts in a row that may fail before the client stops connecting; nil, the default, for no limit.
    public var maximumAttempts: Int?
    /// Attempts that may fail before the first success; nil for no limit. With 1, the default, `connect()` throws the
    /// first failure. Not used after `start()`, where `maximumAttempts` counts from the beginning.
    public var firstConnectAttempts: Int?

    /// Makes a policy.
    public init(
        initialDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(60), multiplier: Double = 2,
        jitter: Double = 0.5, stableAfter: Duration = .seconds(10), maximumAttempts: Int? = nil,
        firstConnectAttempts: Int? = 1
    ) {
        self.initialDelay = initialDelay
        self.maximumDelay = maximumDelay
        self.multiplier = multiplier
        self.jitter = jitter
        self.stableAfter = stableAfter
        self.maximumAttempts = maximumAttempts
        self.firstConnectAttempts = firstConnectAttempts
    }

    /// Opens lost connections again for as long as the client lives.
    public static let automatic = ReconnectPolicy()
    /// Never opens a lost connection again.
    public static let never = ReconnectPolicy(maximumAttempts: 0)
}

/// The arithmetic of a policy, without a clock: what to do after each failure.
package struct ReconnectSchedule: Sendable {
    package enum Decision: Equatable, Sendable {
        /// Try again after so many nanoseconds.
        case retry(after: Int64)
        case giveUp
    }

    let policy: Shared<ReconnectPolicy>
    private var failures = 0
    /// The next delay, before jitter; nil for the first one.
    private var nextDelay: Double?
    /// Whether failures count against `maximumAttempts`: there was a connection, or the client was told to keep trying.
    package private(set) var keepsTrying = false
    private var connectedAt: Int64?

    package init(policy: ReconnectPolicy) {
        self.init(Shared(policy))
    }

    init(_ policy: Shared<ReconnectPolicy>) {
        self.policy = policy
    }

    /// The number of the attempt that is under way or comes next, from 1; a round through all servers is one.
    package var attempt: Int { failures + 1 }

    /// Whether the connection has lasted for as long as the policy asks for.
    package func isStable(at now: Int64) -> Bool {
        connectedAt.map { now - $0 >= policy.value.stableAfter.inNanoseconds } ?? false
    }

    package mutating func established(at now: Int64) {
        keepsTrying = true
        connectedAt = now
        failures = 0
    }

    /// A connection was lost or an attempt failed.
    ///
    /// - Parameter random: uniform in 0..<1; draws the jitter.
    package mutating func failed(at now: Int64, random: Double) -> Decision {
        if connectedAt != nil {
            // Only a stable connection resets the delay: a server that drops us at once is not helped by haste.
            if isStable(at: now) { nextDelay = nil }
            connectedAt = nil
        } else {
            failures += 1
        }
        let limit = keepsTrying ? policy.value.maximumAttempts : policy.value.firstConnectAttempts
        if let limit, failures >= limit { return .giveUp }
        return .retry(after: delay(random: random))
    }

    /// A connection was lost or an attempt failed, and the next follows without a delay.
    ///
    /// The time that this connection lasted does not count for the next one.
    package mutating func retriesAtOnce(at now: Int64) {
        if isStable(at: now) { nextDelay = nil }
        connectedAt = nil
    }

    /// The first connection is tried like one that was lost.
    package mutating func keepTrying() {
        keepsTrying = true
    }

    /// The network has improved: the delay after the next failure is the initial one.
    package mutating func resetDelay() {
        nextDelay = nil
    }

    private mutating func delay(random: Double) -> Int64 {
        let policy = policy.value
        // Any value in a policy, "not a number" included, leads to a delay from zero to the maximum.
        let maximum = Double(max(0, policy.maximumDelay.inNanoseconds))
        let initial = Double(max(0, policy.initialDelay.inNanoseconds))
        let full = min(nextDelay ?? initial, maximum)
        let longer = full * (policy.multiplier > 1 ? policy.multiplier : 1)
        nextDelay = longer < maximum ? longer : maximum
        let jitter = policy.jitter > 0 ? min(policy.jitter, 1) : 0
        return Int64(exactly: (full * (1 - jitter * random)).rounded(.down)) ?? .max
    }
}
