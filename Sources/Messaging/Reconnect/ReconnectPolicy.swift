/// When and how often a lost connection is opened again.
///
/// With several servers an attempt is a round in which each of them is tried, one right after the other; the waits lie
/// between rounds.
public struct ReconnectPolicy: Sendable, Equatable {
    /// The wait before the first new attempt.
    public var initialDelay: Duration
    /// The longest wait between two attempts.
    public var maximumDelay: Duration
    /// By how much each wait is longer than the one before.
    public var multiplier: Double
    /// The part of each wait that is drawn at random, 0 to 1, so that a thousand clients do not come back at once.
    public var jitter: Double
    /// A connection must have held for this long before the waits start over from `initialDelay`.
    public var stableAfter: Duration
    /// Attempts in a row that may fail before the client gives up; nil for no limit.
    public var maximumAttempts: Int?
    /// Attempts that may fail before the first success; 1 makes `connect()` throw the first failure.
    public var firstConnectAttempts: Int?

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
