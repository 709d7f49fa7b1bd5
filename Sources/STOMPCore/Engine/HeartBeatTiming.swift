import Wire

/// When to write a heart-beat and when to give the peer up (STOMP 1.2 "Heart-beating"). Nanoseconds throughout.
struct HeartBeatTiming {
    /// The agreed interval for writing; 0 turns it off.
    private var outgoing: Int64 = 0
    /// The agreed interval for reading; 0 turns it off.
    private var incoming: Int64 = 0
    private var lastWrite: Int64 = 0
    private var lastRead: Int64 = 0
    private var start: Int64 = 0
    /// While we do not read, silence is our own.
    private var isPaused = false

    static let off = HeartBeatTiming()

    init() {}

    init(_ agreed: STOMPHeartBeat, at now: Int64) {
        outgoing = Int64(agreed.outgoing) * 1_000_000
        incoming = Int64(agreed.incoming) * 1_000_000
        start = now
        lastRead = now
        lastWrite = now
    }

    mutating func wrote(at now: Int64) { lastWrite = max(lastWrite, now) }

    mutating func read(at now: Int64) { lastRead = max(lastRead, now) }

    mutating func pause() { isPaused = true }

    mutating func resume(at now: Int64) {
        isPaused = false
        lastRead = max(lastRead, now)
    }

    /// At three fifths of the interval: the peer wants data at least that often, and timers and networks are late.
    var writeDeadline: Int64 {
        outgoing == 0 ? .max : lastWrite.advanced(byNanoseconds: outgoing / 5 * 3)
    }

    /// After twice the interval of silence, and not before three times the interval after the start: ActiveMQ sends
    /// its first heart-beat after two intervals, whatever it sent before.
    var readDeadline: Int64 {
        incoming == 0 || isPaused
            ? .max : max(lastRead.advanced(byNanoseconds: incoming * 2), start.advanced(byNanoseconds: incoming * 3))
    }

    var nextDeadline: Int64 { min(writeDeadline, readDeadline) }
}
