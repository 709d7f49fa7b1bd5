import MessagingWire
import Transport

/// When and how often a lost connection is opened again.
///
/// With several servers, or several addresses of one, an attempt is a round in which each of them is tried, one after the
/// other; the client waits between rounds.
///
/// After a connection is lost, the client waits for `failoverDelay` if it tries another server, and for a random part of
/// `spread` if it tries the same one. The waits after further failures in a row begin with `initialDelay` and grow.
public struct ReconnectPolicy: Sendable, Equatable {
    /// The wait after the first attempt that fails, from which the waits grow. Default: 0.5 seconds.
    public var initialDelay: Duration
    /// The longest wait, also of those that `failoverDelay` and `spread` demand. Default: 60 seconds.
    public var maximumDelay: Duration
    /// Factor by which each delay is longer than the one before. Default: 2.
    public var multiplier: Double
    /// The part of each growing wait that is drawn at random, from 0 to 1, so that many clients do not come back at the same
    /// time. Default: 0.5.
    public var jitter: Double
    /// A connection must have lasted for this long before the waits and the count of attempts start over. Default: 10
    /// seconds.
    public var stableAfter: Duration
    /// After this many failed attempts in a row the client stops; nil, the default, for no limit; 0 never reconnects. An
    /// attempt whose connection is lost before `stableAfter` has failed as well.
    public var maximumAttempts: Int?
    /// How many attempts `connect()` makes before the first success; nil for no limit. Default: 1. Not used after `start()`,
    /// where `maximumAttempts` counts from the beginning.
    public var firstConnectAttempts: Int?
    /// The wait before another server, or another address of the same one, is tried. Default: 0.1 seconds.
    public var failoverDelay: Duration
    /// After a connection is lost, the wait before the same server is tried again is drawn evenly from 0 to this, so that the
    /// clients of a broker that restarts come back one after the other. For a fleet: the number of clients divided by the
    /// connects a second that the broker takes, with a `maximumDelay` that is no shorter. Default: 1 second.
    public var spread: Duration

    /// The age at which a connection ends gracefully and the client opens another, so that the clients of several servers, or
    /// of one behind a load balancer, spread again after a server has come back. For each connection it is drawn evenly from
    /// half of this to all of it, so that clients that connected together do not leave together. Less than one second counts
    /// as one. Default: nil, no limit.
    ///
    /// With ``ServerOrder/listed`` the client begins with the first server again, with ``ServerOrder/shuffled`` with any of
    /// them. The same state survives as after a loss, and the server publishes no will.
    public var maximumConnectionAge: Duration?

    /// Makes a policy.
    public init(
        initialDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(60), multiplier: Double = 2,
        jitter: Double = 0.5, stableAfter: Duration = .seconds(10), maximumAttempts: Int? = nil,
        firstConnectAttempts: Int? = 1, failoverDelay: Duration = .milliseconds(100), spread: Duration = .seconds(1),
        maximumConnectionAge: Duration? = nil
    ) {
        self.initialDelay = initialDelay
        self.maximumDelay = maximumDelay
        self.multiplier = multiplier
        self.jitter = jitter
        self.stableAfter = stableAfter
        self.maximumAttempts = maximumAttempts
        self.firstConnectAttempts = firstConnectAttempts
        self.failoverDelay = failoverDelay
        self.spread = spread
        self.maximumConnectionAge = maximumConnectionAge
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
    /// Attempts in a row that failed, or whose connection did not hold.
    private var failures = 0
    /// The next delay, before jitter; nil while the delays have not begun.
    private var nextDelay: Double?
    /// Whether failures count against `maximumAttempts`: there was a connection, or the client was told to keep trying.
    package private(set) var keepsTrying = false
    private var connectedAt: Int64?
    /// Why the connection ends whose end is judged.
    private var cause = ConnectionEndCause.other

    package init(policy: ReconnectPolicy) {
        self.init(Shared(policy))
    }

    init(_ policy: Shared<ReconnectPolicy>) {
        self.policy = policy
    }

    /// The number of the attempt that is under way or comes next, from 1; a round through all servers is one.
    package var attempt: Int { failures + 1 }

    /// The longest time between two attempts, in nanoseconds.
    package var longestDelay: Int64 { max(0, policy.value.maximumDelay.inNanoseconds) }

    /// Whether the connection has lasted for as long as the policy asks for.
    package func isStable(at now: Int64) -> Bool {
        cause == .refusedRequest
            || connectedAt.map { now - $0 >= policy.value.stableAfter.inNanoseconds } ?? false
    }

    /// Whether the connection has not failed.
    private func hasHeld(at now: Int64) -> Bool { isStable(at: now) && cause != .missingAnswer }

    /// The connection has ended; ``failed(at:isFailover:random:)`` or ``retriesAtOnce(at:)`` follows.
    package mutating func ends(for cause: ConnectionEndCause) { self.cause = cause }

    /// The number of the attempt that has just failed or whose connection was just lost; 1 if that connection held.
    package func endedAttempt(at now: Int64) -> Int { hasHeld(at: now) ? 1 : attempt }

    /// The wait before another server is tried, in nanoseconds.
    package var failoverDelay: Int64 {
        max(0, min(policy.value.failoverDelay, policy.value.maximumDelay).inNanoseconds)
    }

    package mutating func established(at now: Int64) {
        keepsTrying = true
        connectedAt = now
    }

    /// How long the connection has lasted, in nanoseconds.
    package func age(at now: Int64) -> Int64 { connectedAt.map { now - $0 } ?? 0 }

    /// How long a new connection may last, in nanoseconds; nil for no limit.
    ///
    /// - Parameter random: uniform in 0..<1.
    package func ageLimit(random: @autoclosure () -> Double) -> Int64? {
        guard let age = policy.value.maximumConnectionAge else { return nil }
        let longest = Double(max(1_000_000_000, age.inNanoseconds))
        return Int64(exactly: (longest * (1 - random() / 2)).rounded(.down)) ?? .max
    }

    /// A connection was lost or an attempt failed.
    ///
    /// - Parameters:
    ///   - isFailover: whether another server or address is tried next than the one whose connection was lost.
    ///   - random: uniform in 0..<1; draws the first wait or the jitter.
    package mutating func failed(at now: Int64, isFailover: Bool = false, random: Double) -> Decision {
        let wasConnected = connectedAt != nil
        startOver(at: now)
        if !hasHeld(at: now) { failures += 1 }
        (connectedAt, cause) = (nil, .other)
        let limit = keepsTrying ? policy.value.maximumAttempts : policy.value.firstConnectAttempts
        if let limit, failures >= limit { return .giveUp }
        guard wasConnected, nextDelay == nil else { return .retry(after: delay(random: random)) }
        // Haste does not help a server that drops clients at once: the next wait is one of the growing waits.
        nextDelay = initialDelay
        return .retry(after: isFailover ? failoverDelay : spread(random: random))
    }

    /// A connection was lost or an attempt failed, and the next follows without a delay.
    ///
    /// The time that this connection lasted does not count for the next one.
    package mutating func retriesAtOnce(at now: Int64) {
        startOver(at: now)
        (connectedAt, cause) = (nil, .other)
    }

    /// Starts over if the connection that was lost has held.
    private mutating func startOver(at now: Int64) {
        if isStable(at: now) { nextDelay = nil }
        if hasHeld(at: now) { failures = 0 }
    }

    /// The first connection is tried like one that was lost.
    package mutating func keepTrying() {
        keepsTrying = true
    }

    /// The network has improved: the delay after the next failure is the initial one.
    package mutating func resetDelay() {
        nextDelay = nil
    }

    // Any value in a policy, "not a number" included, leads to a delay from zero to the maximum.

    private var maximumDelay: Double { Double(max(0, policy.value.maximumDelay.inNanoseconds)) }
    private var initialDelay: Double { min(Double(max(0, policy.value.initialDelay.inNanoseconds)), maximumDelay) }

    private func spread(random: Double) -> Int64 {
        let spread = min(Double(max(0, policy.value.spread.inNanoseconds)), maximumDelay)
        return Int64(exactly: (spread * random).rounded(.down)) ?? .max
    }

    private mutating func delay(random: Double) -> Int64 {
        let policy = policy.value
        let full = nextDelay ?? initialDelay
        let longer = full * (policy.multiplier > 1 ? policy.multiplier : 1)
        nextDelay = longer < maximumDelay ? longer : maximumDelay
        let jitter = policy.jitter > 0 ? min(policy.jitter, 1) : 0
        return Int64(exactly: (full * (1 - jitter * random)).rounded(.down)) ?? .max
    }
}
