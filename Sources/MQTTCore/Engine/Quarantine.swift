import MessagingWire

/// Keeps a request that ends connections from holding up all others.
///
/// A server may answer a request by ending the connection, as it may when it does not authorize a message
/// [MQTT-3.3.5-2], or never answer it. The client would repeat it first on each connection, and nothing else would get
/// through. A link that breaks looks the same, so nothing is given up without evidence that a link cannot give.
///
/// 1. After three connections in a row that ended while the same messages, or a SUBSCRIBE, were unanswered, requests are
///    sent one at a time (``sendsSingly``), until all of them have their answers.
/// 2. The request that alone is unanswered when a connection ends is *accused* by name: its topic or its filter. Others
///    pass it; it is sent alone, when nothing else waits or its time has come.
/// 3. An accused request is *refused* on one of two grounds. Two of its ends in a row were answers of the server: DISCONNECT,
///    or for QoS 2 also our timeout. Or it ends a connection although others of its kind had answers on connections that
///    carried as much and lasted twice as long. Later requests with its name are sent alone as well, and the first
///    connection that they end is enough.
/// 4. Without such evidence it is never given up, but waits longer after each end, so that the others flow.
/// 5. When an accused request has its answer, the link was at fault: for some time ends of this link prove nothing.
struct Quarantine: Sendable {
    /// What requests are remembered by.
    enum Name: Sendable, Equatable {
        case topic(ByteKey)
        case filter(ByteKey)

        var isMessage: Bool { if case .topic = self { true } else { false } }
    }

    /// What speaks against an accused request.
    struct Charge: Sendable {
        /// Connections that ended while it alone was unanswered.
        var ends = 0
        /// Connections that ended because of others since then.
        var otherEnds = 0
        /// Whether the last of its ends was an answer of the server.
        var isEvident = false
        /// What these connections had carried, and how long they had lasted, at most.
        var load = Load()
        var duration: Int64 = 0
        /// What others have had answered since then, on connections that were better than these.
        var answeredOthers: [Name] = []

        /// For how long a connection has to last before it is sent although others wait, or flow.
        var patience: Int64 { 10_000_000_000 << Int64(min(ends, 7) - 1) }
        /// After how many ends of others it is sent first.
        var turnsAway: Int { 4 << (min(ends, 5) - 1) }
        /// After how long a connection that carries others is better than the earlier ones. One that lasted longer did not
        /// end because of a request.
        var contrastTime: Int64 { min(2 * duration, 5_000_000_000) }
    }

    /// What was written on a connection.
    struct Load: Sendable {
        var bytes = 0
        var packets = 0
        /// Those of them that are messages of QoS 0, which have no answer of their own.
        var atMostOnce = 0

        /// How many PINGREQ this lacks to prove that its link carries the other as well.
        func pings(toCarry other: Load) -> Int {
            max(0, other.packets - packets, (other.bytes - bytes + 1) / 2)
        }
    }

    enum Standing: Sendable {
        case accused(Charge)
        case refused
    }

    /// How a request may leave.
    enum Turn {
        case freely
        /// While nothing else is unanswered.
        case alone
        /// Others go first.
        case later
    }

    /// The request that alone is unanswered.
    struct Alone: Sendable {
        /// Nil if it cannot be at fault.
        var name: Name?
        var isExactlyOnce: Bool
        /// Whether it was sent on a connection better than the earlier ones.
        var hasContrast: Bool
        var time: Int64
        /// How many PINGRESP are to come until PINGREQ behind it is answered.
        var awaitedPongs: Int
        /// How long that took.
        var pingDuration = Int64.max / 8

        /// Whether a connection that ends now has lasted for much longer than its server takes to answer what is behind it.
        func isPassed(at now: Int64) -> Bool { now - time > 4 * pingDuration }
    }

    /// What was unanswered when a connection ended.
    struct Unanswered {
        var hasSubscription: Bool
        /// The places of the first and the last message among those of the session; nil for none.
        var messages: ClosedRange<UInt64>?
    }

    /// Connections in a row that ended without an answer to the same requests.
    private struct Run {
        var ends: Int
        var hasSubscription: Bool
        /// The last message that was unanswered at the first of them, or when requests began to be sent one at a time.
        var through: UInt64
    }

    /// What is known of the connection.
    private struct Connection {
        var began: Int64 = 0
        var written = Load()
        var unansweredPings = 0
        /// What was written up to the last PINGREQ, and up to the last one that was answered with all before it.
        var pinged = Load()
        var answered = Load()
        /// Some of the requests that were answered.
        var answeredNames: [Name] = []
        /// Whether a message was received: an end would interrupt others.
        var hasReceived = false
        /// The accused request whose turn has come.
        var chosen: Name?
        var alone: Alone?

        /// Whether others of its kind were answered.
        func hasAnswered(like name: Name) -> Bool { answeredNames.contains { $0.isMessage == name.isMessage } }
    }

    /// What becomes of a request whose connection has ended.
    enum Verdict {
        case refused
        /// From now on others pass it.
        case passedOver
    }

    /// Connections in a row that may end without an answer before requests are sent one at a time.
    private static let maximumEnds = 3
    /// Names that are remembered: of refused and accused requests, and of others that were answered meanwhile.
    private static let (maximumNames, maximumAnswered) = (100, 8)
    /// How many PINGREQ are worth writing to prove what a connection carries.
    private static let maximumPings = 64
    /// With more accused requests than these others the link is at fault.
    private static let maximumOthers = 2
    /// The PUBLISH packets for which a link that was at fault is not believed, for each of its ends and altogether.
    private static let (doubtPerEnd, maximumDoubt) = (32, 1_024)

    private var run: Run?
    private var known: [(name: Name, standing: Standing)] = []
    /// From which PUBLISH on an end may prove something.
    private var believedFrom = 0
    private var connection = Connection()

    /// Connections in a row that ended so.
    var ends: Int { run?.ends ?? 0 }
    var sendsSingly: Bool { ends >= Self.maximumEnds }
    /// Whether any request is sent otherwise than usual.
    var isCareful: Bool { sendsSingly || !known.isEmpty }
    /// Whether there is nothing to remember.
    var isEmpty: Bool { run == nil && known.isEmpty && believedFrom == 0 }
    /// Whether PINGREQ behind all messages of QoS 0 is answered, so that none of them can end the connection any more.
    var isProven: Bool { connection.answered.atMostOnce == connection.written.atMostOnce }
    /// Whether that needs another PINGREQ.
    var needsPing: Bool { connection.pinged.atMostOnce != connection.written.atMostOnce }
    /// Whether nothing may be sent until the request that is alone has its answer.
    var isWaiting: Bool { connection.alone != nil }

    func standing(of name: Name) -> Standing? { known.first { $0.name == name }?.standing }

    private mutating func setStanding(of name: Name, _ standing: Standing?) {
        let index = known.firstIndex { $0.name == name }
        switch (index, standing) {
        case (let index?, let standing?): known[index].standing = standing
        case (let index?, nil): known.remove(at: index)
        case (nil, let standing?):
            if known.count == Self.maximumNames { known.removeFirst() }
            known.append((name, standing))
        case (nil, nil): break
        }
    }

    // MARK: Sending

    func turn(of name: Name) -> Turn {
        switch standing(of: name) {
        case nil: sendsSingly ? .alone : .freely
        case .refused: .alone
        case .accused: connection.chosen == name ? .alone : .later
        }
    }

    /// Chooses the accused request that may leave next, if there is any. False if there is none now.
    ///
    /// - Parameters:
    ///   - isThrough: whether nothing else waits to be sent.
    ///   - isIdle: whether nothing else is unanswered either.
    mutating func choose(isThrough: Bool, isIdle: Bool, at now: Int64) -> Bool {
        if let chosen = connection.chosen {
            // It waits at its place.
            guard isThrough else { return false }
            // Nothing with this name waits.
            setStanding(of: chosen, nil)
            connection.chosen = nil
        }
        if awaitsPongs(isIdle) { return false }
        let due =
            accused.filter { _, charge in charge.otherEnds >= charge.turnsAway }
            + accused.filter { now >= time(of: $1, $0, isIdle: isIdle) }
        // Not always the same one, which may be forbidden.
        connection.chosen = due.min { $0.1.ends < $1.1.ends }?.0
        return connection.chosen != nil
    }

    private var accused: [(Name, Charge)] {
        known.compactMap { name, standing in if case .accused(let charge) = standing { (name, charge) } else { nil } }
    }

    /// The answer to PINGREQ proves what the connection carries.
    private func awaitsPongs(_ isIdle: Bool) -> Bool { isIdle && connection.unansweredPings > 0 }

    /// How many PINGREQ to write before the next accused request is sent, while nothing else waits: then the connection has
    /// carried as much as the one that ended because of that request.
    var pingsToWrite: Int {
        guard connection.unansweredPings == 0, connection.chosen == nil else { return 0 }
        let missing = accused.lazy.compactMap { [connection] name, charge -> Int? in
            guard charge.ends == 1, connection.hasAnswered(like: name),
                connection.answered.pings(toCarry: charge.load) > 0
            else { return nil }
            return max(1, connection.written.pings(toCarry: charge.load))
        }
        return missing.first { $0 <= Self.maximumPings } ?? 0
    }

    /// When an accused request may leave.
    private func time(of charge: Charge, _ name: Name, isIdle: Bool) -> Int64 {
        let hasCompany = connection.hasReceived || !connection.answeredNames.isEmpty
        let wait: Int64 =
            if isIdle, charge.ends == 1 {
                connection.hasAnswered(like: name) ? charge.contrastTime : 0
            } else if isIdle, !hasCompany {
                0
            } else {
                charge.patience
            }
        return connection.began.advanced(byNanoseconds: wait)
    }

    /// When the next accused request may leave, if that depends on time alone; `Int64.max` for never.
    func nextTurn(isIdle: Bool) -> Int64 {
        // An answer, or PINGRESP, comes first.
        guard connection.chosen == nil, !awaitsPongs(isIdle) else { return .max }
        return accused.reduce(.max) { min($0, time(of: $1.1, $1.0, isIdle: isIdle)) }
    }

    /// A request was written while nothing else was unanswered, and PINGREQ behind it.
    mutating func sentAlone(_ name: Name?, isExactlyOnce: Bool, at now: Int64) {
        connection.chosen = nil
        var hasContrast = false
        if let name, case .accused(let charge)? = standing(of: name) {
            hasContrast = answeredOthers(than: name, charge, at: now).contains { standing(of: $0) == nil }
        }
        connection.alone = Alone(
            name: name, isExactlyOnce: isExactlyOnce, hasContrast: hasContrast,
            time: now, awaitedPongs: connection.unansweredPings)
    }

    /// What others of its kind have had answered on connections, this one among them, that were better than those that
    /// ended because of an accused request.
    private func answeredOthers(than name: Name, _ charge: Charge, at now: Int64) -> [Name] {
        guard connection.answered.pings(toCarry: charge.load) == 0, now - connection.began >= 2 * charge.duration else {
            return charge.answeredOthers
        }
        let others = connection.answeredNames.filter { $0.isMessage == name.isMessage }
        return Array((charge.answeredOthers + others).suffix(Self.maximumAnswered))
    }

    // MARK: What happened

    /// CONNACK arrived.
    mutating func connectionBegan(at now: Int64) {
        connection = Connection(began: now)
        // So many others have ended connections meanwhile that it is sent first.
        connection.chosen = accused.first { $0.isMessage && $1.otherEnds >= $1.turnsAway }?.0
    }

    mutating func countWritten(_ bytes: Int, packets: Int, atMostOnce: Int) {
        connection.written.bytes += bytes
        connection.written.packets += packets
        connection.written.atMostOnce += atMostOnce
    }

    mutating func answered(_ name: Name) {
        guard connection.answeredNames.count < Self.maximumAnswered else { return }
        if !connection.answeredNames.contains(name) { connection.answeredNames.append(name) }
    }

    mutating func receivedMessage() { connection.hasReceived = true }

    /// PINGREQ was written.
    mutating func pinged() {
        connection.unansweredPings += 1
        connection.pinged = connection.written
    }

    /// PINGRESP arrived.
    mutating func pingAnswered(at now: Int64) {
        connection.unansweredPings -= 1
        if connection.unansweredPings == 0 { connection.answered = connection.pinged }
        connection.alone?.awaitedPongs -= 1
        if let alone = connection.alone, alone.awaitedPongs == 0 { connection.alone?.pingDuration = now - alone.time }
    }

    /// Nothing is unanswered any more: the server does not refuse what was alone, or the caller waits no longer.
    mutating func becameQuiet(written: Int) {
        guard let alone = connection.alone else { return }
        connection.alone = nil
        guard let name = alone.name, let standing = standing(of: name) else { return }
        setStanding(of: name, nil)
        if case .accused(let charge) = standing { doubtLink(charge.ends, written) }
    }

    /// Everything that was unanswered has its answer, or is passed over; but the SUBSCRIBE may be still to come.
    mutating func endRun() {
        if run?.hasSubscription == true, connection.answeredNames.isEmpty { return }
        run = nil
    }

    /// Whether messages up to this one have to be answered before requests leave together again.
    func waits(for sequence: UInt64) -> Bool { run.map { sequence <= $0.through } ?? false }

    /// Connections have ended that no request explains.
    private mutating func doubtLink(_ ends: Int, _ written: Int) {
        believedFrom = min(max(believedFrom, written) + ends * Self.doubtPerEnd, written + Self.maximumDoubt)
        for index in known.indices {
            guard case .accused(var charge) = known[index].standing else { continue }
            charge.answeredOthers = []
            known[index].standing = .accused(charge)
        }
    }

    /// An accepted connection has ended. Returns what becomes of the request that alone was unanswered.
    ///
    /// - Parameter written: how many PUBLISH packets were written in all.
    mutating func connectionEnded(
        _ end: MQTTConnectionEnd, unanswered: Unanswered?, written: Int, at now: Int64
    ) -> Verdict? {
        defer { connection = Connection() }
        if case .unrelated = end { return nil }
        countOtherEnd(at: now)
        guard let unanswered else {
            if isCareful { doubtLink(1, written) }
            run = nil
            return nil
        }
        guard let alone = connection.alone else {
            if sendsSingly { run = nil } else { count(unanswered, written) }
            return nil
        }
        run?.ends += 1
        return alone.name.flatMap { judge(alone, named: $0, end, written: written, at: now) }
    }

    private mutating func judge(
        _ alone: Alone, named name: Name, _ end: MQTTConnectionEnd, written: Int, at now: Int64
    ) -> Verdict? {
        let isEvident = end.isAnswer(toQoS2: alone.isExactlyOnce)
        var charge = Charge()
        switch standing(of: name) {
        case .refused: return end.isOurs && !isEvident ? nil : .refused
        case .accused(let earlier): charge = earlier
        case nil: break
        }
        let others = known.count { entry in
            if case .accused = entry.standing { entry.name != name } else { false }
        }
        let isBelieved =
            !alone.isPassed(at: now) && !end.isOurs && written >= believedFrom && others <= Self.maximumOthers
        if isEvident && charge.isEvident || alone.hasContrast && isBelieved {
            setStanding(of: name, .refused)
            return .refused
        }
        charge.ends += 1
        charge.otherEnds = 0
        charge.isEvident = isEvident
        charge.load.bytes = max(charge.load.bytes, connection.written.bytes)
        charge.load.packets = max(charge.load.packets, connection.written.packets)
        charge.duration = max(charge.duration, now - connection.began)
        charge.answeredOthers = []
        setStanding(of: name, .accused(charge))
        return charge.ends == 2 ? .passedOver : nil
    }

    /// Counts the end for the accused requests that were not alone on this connection.
    private mutating func countOtherEnd(at now: Int64) {
        for (index, entry) in known.enumerated() where entry.name != connection.alone?.name {
            guard case .accused(var charge) = entry.standing else { continue }
            charge.otherEnds += 1
            charge.answeredOthers = answeredOthers(than: entry.name, charge, at: now)
            known[index].standing = .accused(charge)
        }
    }

    private mutating func count(_ unanswered: Unanswered, _ written: Int) {
        let newest = unanswered.messages?.upperBound ?? 0
        guard var run, unanswered.continues(run.hasSubscription, through: run.through) else {
            // Those that were unanswered at earlier ends have had their answers.
            if let run { doubtLink(run.ends, written) }
            run = Run(ends: 1, hasSubscription: unanswered.hasSubscription, through: newest)
            return
        }
        run.ends += 1
        if run.ends >= Self.maximumEnds { run.through = max(run.through, newest) }
        self.run = run
    }
}

extension Quarantine.Unanswered {
    /// Whether some of it may have been unanswered at earlier ends.
    func continues(_ hadSubscription: Bool, through last: UInt64) -> Bool {
        hadSubscription && hasSubscription || messages.map { $0.lowerBound <= last } ?? false
    }
}
