/// How long a client waits while the server owes it acknowledgements and sends none.
///
/// A server may answer pings or send heart-beats and still acknowledge nothing: a node of a cluster that lost its majority
/// does. The wait is counted from the last progress: any acknowledgement, or the peer's system acknowledging bytes that
/// were written when they were first counted. Later bytes are no progress: the system of a server that has stopped working
/// acknowledges those too.
///
/// The time doubles with each connection in a row that ended for it, until an acknowledgement arrives, so that a server
/// that needs longer is not asked for ever.
package struct AcknowledgementWait: Sendable {
    /// The longest wait on this connection; `Int64.max` for none.
    private var limit = Int64.max
    /// When the last progress was made, or the first awaited bytes were written.
    private var since: Int64 = 0
    /// When to count the bytes again, or to end the connection. Meaningless while `position` is negative.
    private var nextCheck = Int64.max
    /// The bytes of the connection up to this position are awaited; negative as long as they have not been counted.
    private var position = -1
    /// How many of them the peer's system had not acknowledged when they were last counted; at most what fits.
    private var unacknowledged: UInt32 = 0
    /// Connections in a row that ended for it.
    private var endedConnections: UInt8 = 0
    /// Whether the peer has answered something that was written later than what is awaited.
    private var isOvertaken = false

    package init() {}

    /// A connection is accepted.
    ///
    /// - Parameter timeout: the longest wait in nanoseconds, before it is doubled; `Int64.max` for none.
    package mutating func start(timeout: Int64, at now: Int64) {
        let (doubled, overflow) = timeout.multipliedReportingOverflow(by: 1 << Int64(endedConnections))
        limit = overflow ? .max : doubled
        restart(at: now)
    }

    /// The first awaited bytes were written, or the wait begins anew.
    package mutating func restart(at now: Int64) {
        since = now
        position = -1
    }

    /// All answers are awaited anew: unless this one cannot follow anything that was not read.
    package mutating func beginAnew(at now: Int64) {
        if position < 0 || !isOvertaken { restart(at: now) }
    }

    /// The clock has gone back to `time`.
    package mutating func limit(to time: Int64) { since = min(since, time) }

    /// Stops waiting for bytes that were written before `time`: the wait begins there, unless it began later.
    package mutating func skip(to time: Int64) {
        if time > since { restart(at: time) }
    }

    /// An acknowledgement arrived.
    package mutating func progressed(at now: Int64) {
        restart(at: now)
        guard endedConnections != 0 else { return }
        if limit != .max { limit >>= Int64(endedConnections) }
        endedConnections = 0
    }

    /// When to ask ``isOver(_:at:)``, as long as anything is awaited.
    package var deadline: Int64 {
        guard limit != .max else { return .max }
        return position < 0 ? since.advanced(byNanoseconds: period) : nextCheck
    }

    /// How often bytes are counted that the peer's system has not acknowledged.
    private var period: Int64 { max(1, limit >> 4) }

    /// Counts the bytes that the peer's system has acknowledged. Returns whether the wait is over.
    package mutating func isOver(_ progress: OutputProgress, at now: Int64) -> Bool {
        guard now >= deadline else { return false }
        if position < 0 {
            isOvertaken = false
            position = progress.total
            unacknowledged = UInt32(clamping: position - progress.acknowledged)
            // What was acknowledged by now was so, as far as is known, when it was written.
            if unacknowledged > 0 { since = now }
        } else if UInt32(clamping: position - progress.acknowledged) < unacknowledged {
            unacknowledged = UInt32(clamping: position - progress.acknowledged)
            since = now
        }
        let end = since.advanced(byNanoseconds: limit)
        guard now < end else { return true }
        nextCheck = unacknowledged > 0 ? min(end, now.advanced(byNanoseconds: period)) : end
        return false
    }

    /// The wait is over, and what is awaited may come behind bytes that are arriving: checks again after a sixteenth of it.
    /// Returns false if it has waited for twenty times as long, or the peer has answered something later.
    package mutating func postpone(at now: Int64) -> Bool {
        guard !isOvertaken, (now - since) / 20 < limit else { return false }
        nextCheck = now.advanced(byNanoseconds: period)
        return true
    }

    /// The peer has answered something else that was written at this time.
    package mutating func overtaken(by time: Int64) {
        if position >= 0, since <= time { isOvertaken = true }
    }

    /// The connection ends because nothing was acknowledged. Returns for how long, in nanoseconds.
    package mutating func gaveUp() -> Int64 {
        if endedConnections < 62 { endedConnections += 1 }
        return limit
    }
}
