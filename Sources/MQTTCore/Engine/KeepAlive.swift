import MessagingWire

/// The arithmetic of keep alive: when to ping, and when the connection is dead.
///
/// The interval is measured on packets sent [MQTT 5.0 3.1.2-20], but a client that only sends would never notice that
/// nothing comes back, so it also pings when nothing was read for the interval. After PINGREQ anything that is read
/// within the timeout counts as life: PINGRESP may follow a large message. So does the acknowledgement, by the peer's
/// system, of bytes that were written before PINGREQ: on a slow link PINGREQ waits behind them, longer than any timeout.
/// Bytes behind PINGREQ do not count, because the system of a peer that has stopped reading acknowledges those too.
package struct KeepAlive: Sendable {
    enum Action {
        case none
        case ping
        case dead
    }

    /// The interval in nanoseconds; 0 is off.
    package private(set) var interval: Int64 = 0
    private var pingTimeout: Int64 = .max
    /// When the last packet was encoded or written.
    package private(set) var lastSent: Int64 = 0
    /// The clock of all that is awaited from the peer. Its signs of life are bytes that were read, and progress of those that
    /// PINGREQ waits behind.
    var listening = ListeningClock()
    /// When the oldest unanswered PINGREQ was written, a time of that clock; `Int64.max` for none.
    private(set) var pingSent: Int64 = .max
    /// The position of that PINGREQ among the bytes of the connection.
    private var pingPosition = 0
    /// How many of the bytes before it were acknowledged when they were last counted.
    private var acknowledged = 0
    /// PINGREQ packets that were written.
    private(set) var pingCount: UInt32 = 0
    private var isServer = false
    /// Nothing is read until the peer has taken more of what was written.
    package private(set) var isHeldUpByOutput = false
    /// How much of it had moved when that was last asked for.
    private var movedBytes = 0
    /// How often in a row bytes before that PINGREQ were found to have moved while many more of them waited; -1 as soon as
    /// that was not so.
    private var steadyCounts: Int8 = -1

    /// Starts for a connection. A server allows one and a half times the interval [MQTT 5.0 3.1.2-22].
    mutating func start(seconds: UInt16, pingTimeout: Int64, isServer: Bool, at now: Int64) {
        interval = Int64(seconds) * (isServer ? 1_500_000_000 : 1_000_000_000)
        self.pingTimeout = pingTimeout
        self.isServer = isServer
        lastSent = now
        listening.noteSign(at: now)
        pingSent = .max
    }

    /// The connection has ended, and with it a pause of reading.
    mutating func stop(at now: Int64) {
        interval = 0
        pingSent = .max
        listening.setRunning(true, at: now)
        isHeldUpByOutput = false
    }

    /// For how long nothing was sent, and no sign of life was noticed although the caller listened.
    func silence(at now: Int64) -> Int64 { min(now - lastSent, listening.silence(at: now)) }

    /// Whether PINGREQ waits on a slow link behind so much for so long that a server which wants a whole packet in one and a
    /// half times the interval may have got none.
    ///
    /// Bytes that wait are no proof: the server may have stopped reading, or the system may not report what has arrived. They
    /// have to be seen moving, twice in a row, and still to be many.
    func isHeldUp(at now: Int64) -> Bool {
        guard !isServer, pingSent != .max, steadyCounts >= 2 else { return false }
        // It was written after one interval, at the latest; what it waits for has been on its way since before that.
        return listening.time(at: now) - pingSent >= interval / 5 * 2
    }

    /// Whether more bytes wait before PINGREQ than their position may be too high: what layers add to the bytes that wait is
    /// estimated, as 1,024 bytes and a sixteenth of them.
    ///
    /// - Parameter estimated: how many waited when that was last estimated.
    private func areMany(_ waiting: Int, of estimated: Int) -> Bool { waiting - estimated / 16 > 1024 }

    mutating func sent(at now: Int64) { lastSent = max(lastSent, now) }

    mutating func pinged(at now: Int64, progress: OutputProgress) {
        lastSent = now
        pingCount &+= 1
        guard pingSent == .max else { return }
        pingSent = listening.time(at: now)
        pingPosition = progress.total
        acknowledged = progress.acknowledged
        // `Int.max` is a position that is not known.
        let (waiting, isKnown) = (pingPosition - acknowledged, pingPosition != .max && interval > 0)
        steadyCounts = isKnown && areMany(waiting, of: waiting) ? 0 : -1
    }

    /// The answer is late, or it is time to count the bytes that hold PINGREQ up: waits for the answer once more if bytes
    /// before PINGREQ were acknowledged since this was last called.
    mutating func extendIfProgressed(_ progress: OutputProgress, at now: Int64) {
        guard now >= countDue else { return }
        let reached = min(progress.acknowledged, pingPosition)
        if steadyCounts >= 0 {
            let isSteady = reached > acknowledged && areMany(pingPosition - reached, of: pingPosition - acknowledged)
            steadyCounts = isSteady ? min(steadyCounts + 1, 2) : -1
        }
        guard reached > acknowledged else { return }
        acknowledged = reached
        listening.noteSign(at: now)
    }

    /// PINGRESP arrived: when PINGREQ was written, or nil if none was.
    mutating func answered() -> Int64? {
        guard pingSent != .max else { return nil }
        defer { pingSent = .max }
        return pingSent
    }

    /// The caller stops reading because of the bytes that it has written, or reads again: see
    /// ``OutputProgress/movedBytes``.
    mutating func setReadingHeldUp(_ heldUp: Bool) { isHeldUpByOutput = heldUp }

    mutating func systemSlept(since start: Int64, at now: Int64) {
        let time = listening.slept(since: start, at: now)
        if pingSent != .max { pingSent = min(pingSent, time) }
    }

    /// Whether nothing is read because of what the peer has not taken, and it has taken some since this was last called: that is its
    /// sign of life.
    mutating func hasMoved(_ progress: OutputProgress) -> Bool {
        guard let bytes = progress.movedBytes, bytes != movedBytes else { return false }
        movedBytes = bytes
        return true
    }

    var isReading: Bool { listening.isRunning && !isHeldUpByOutput }

    /// Signs of life that came over another network prove nothing: PINGREQ is due now, unless one is unanswered.
    mutating func networkChanged(at now: Int64) {
        if !isServer && pingSent == .max { listening.limitSign(to: listening.time(at: now) - interval) }
    }

    var deadline: Int64 {
        if isServer {
            return interval == 0 ? .max : listening.moment(of: listening.lastSign.advanced(byNanoseconds: interval))
        }
        return min(pingDue, countDue)
    }

    func due(at now: Int64) -> Action {
        if isServer { return now >= deadline ? .dead : .none }
        if now >= deathDue { return .dead }
        return now >= pingDue ? .ping : .none
    }

    private var pingDue: Int64 {
        guard interval != 0 else { return .max }
        // While an answer is awaited only the sending side can ask for another ping.
        let quietSince = pingSent == .max ? min(lastSent, listening.moment(of: listening.lastSign)) : lastSent
        return quietSince.advanced(byNanoseconds: interval)
    }

    private var deathDue: Int64 {
        guard pingSent != .max else { return .max }
        return listening.moment(of: max(pingSent, listening.lastSign).advanced(byNanoseconds: pingTimeout))
    }

    /// When to count the bytes before PINGREQ: when the answer is late, and while they hold it up twice before a server's
    /// patience ends, half an interval after PINGREQ.
    private var countDue: Int64 {
        guard pingSent != .max else { return .max }
        let patience = steadyCounts < 0 ? pingTimeout : min(pingTimeout, interval / 5)
        return listening.moment(of: max(pingSent, listening.lastSign).advanced(byNanoseconds: patience))
    }
}
