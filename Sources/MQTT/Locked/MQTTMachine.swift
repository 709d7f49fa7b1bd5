import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// The engine, and beside it the bookkeeping of the client that has to change together with it.
///
/// Everything here is under the link's lock: the link calls it on the loop's thread, callers reach it through
/// `link.perform`. It never resumes a continuation, calls out or makes a system call. Work that has to happen outside
/// goes into ``MQTTAfterLock`` and is performed after the lock is released.
struct MQTTMachine: ClientMachine, ~Copyable {
    var engine: MQTTEngine
    weak var core: MQTTClientCore?
    /// Callers that wait for an acknowledgement, for room or for the store.
    var publishers: MQTTWaitingPublishers
    /// Received messages that are acknowledged later.
    var withheld = MQTTWithheldMessages()
    /// Received messages that their receivers acknowledge.
    var manual = MQTTManualMessages()
    /// Received messages without a subscription.
    var unmatched: MQTTUnmatchedMessages
    // Small fields are next to each other, because every idle client has them.
    private var trimming = MemoryTrimming()
    var asksToClose = false
    /// The server did not answer CONNECT or PINGREQ, or acknowledged nothing: what is in the outbox need not be written.
    private var serverIsSilent = false
    /// Connections are made to discard the session at the server, and for nothing else.
    var onlyDiscards = false
    /// The subscription whose messages reached a receiver's bound; nil while none does.
    private(set) var slowSubscription: Shared<String>?
    /// Where records are stored, with a session store.
    var journal: MQTTJournal?
    /// QoS 0 messages in the outbox of a connection that has ended, which are not reported yet.
    private var unsentCount = 0

    init(
        engine: consuming MQTTEngine, overflow: MQTTConfiguration.QueueOverflow,
        unmatched policy: Shared<MQTTUnmatchedMessagePolicy>,
        loop: EventLoop
    ) {
        self.engine = engine
        publishers = MQTTWaitingPublishers(overflow: overflow, loop: loop)
        unmatched = MQTTUnmatchedMessages(policy)
    }

    // MARK: What the link asks

    var sentCount: Int { engine.publishesWritten }
    var backlog: ClientBacklog {
        ClientBacklog(
            queuedMessages: engine.queuedCount, queuedBytes: engine.queuedBytes,
            messagesInFlight: engine.inFlightCount, unmatchedMessages: unmatched.count,
            unacknowledgedMessages: manual.count(engine), outboxBytes: outputCount)
    }

    var output: [UInt8] {
        get { engine.output }
        _modify { yield &engine.output }
    }
    var outputCount: Int { engine.outputCount }
    var ownBytes: Int { engine.ownBytes }
    var largePayload: LargePayload? {
        get { engine.largePayload }
        set { engine.largePayload = newValue }
    }
    var leastPayloadLeftOut: Int {
        get { engine.leastPayloadLeftOut }
        set { engine.leastPayloadLeftOut = newValue }
    }

    /// While disconnected, messages without a subscription are checked only when they are used: an alarm would keep a client alive
    /// that the application has released.
    var nextDeadline: Int64 {
        mutating get {
            let next = min(engine.nextDeadlineInPlace(), trimming.deadline)
            return engine.phase == .connected ? min(next, unmatched.nextDeadline) : next
        }
    }

    /// Whether a message of QoS 0 may wait for its turn: it would not leave at once, and there is a connection, or the
    /// configuration lets it wait without one.
    var mayQueueQoS0: Bool {
        !engine.sendsQoS0AtOnce && (engine.phase == .connected || core?.settings.queuesQoS0WhileOffline == true)
    }

    /// The time that a QoS 0 message is published at. For a message that leaves at once the time only feeds keep alive,
    /// which the write updates anyway: pass the time of the last write instead of reading the clock. In the queue a
    /// message has a time to live.
    var timeForQoS0: Int64 { engine.sendsQoS0AtOnce ? engine.keepAlive.lastSent : publishers.loop.now }
    var isLatencyBound: Bool { mutating get { engine.inFlightCount <= 1 } }
    var wantsReadingPaused: Bool { engine.isReadingPaused }
    var wantsClose: Bool { mutating get { asksToClose || engine.shouldClose } }
    var pauseReason: String? {
        if let slowSubscription { return Self.isSlow(slowSubscription.value) }
        guard engine.isReadingPaused else { return engine.keepAlive.isHeldUpByOutput ? Self.serverIsSlow : nil }
        return Self.storeIsSilent
    }
    static var storeIsSilent: String {
        "because what has to be stored first waits for the session store. Check the disk that holds it."
    }
    var abandonsOutput: Bool { mutating get { serverIsSilent || engine.phase == .connecting } }

    // MARK: What happened to the connection

    mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) { engine.setReadingHeldUp(isHeldUp, at: now) }
    mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {
        engine.systemSlept(since: start, at: now, progress: progress)
    }
    mutating func outputTaken(at now: Int64) { engine.outputTaken(at: now) }

    mutating func outputDiscarded(_ bytes: RawSpan, leavingOut payload: LargePayload?, writtenUpTo offset: Int) {
        unsentCount += MQTTPacket.Publish.countAtMostOnce(in: bytes, leavingOut: payload, endingAfter: offset)
    }

    mutating func reportDiscarded(into afterLock: MQTTAfterLock) {
        guard unsentCount > 0 else { return }
        (afterLock.work.core, afterLock.work.unsentCount, unsentCount) = (core, unsentCount, 0)
    }

    mutating func report(_ standstill: Standstill, into afterLock: MQTTAfterLock) {
        (afterLock.work.core, afterLock.work.standstill) = (core, standstill)
    }

    mutating func connectionOpened(at now: Int64, into afterLock: MQTTAfterLock) {
        afterLock.work.core = core
        asksToClose = false
        serverIsSilent = false
        do {
            try engine.connectionOpened(at: now, deadline: core?.supervisor.attemptDeadline)
        } catch {
            afterLock.work.connectFailure = MQTTError(error)
            asksToClose = true
        }
        flushRecords()
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: MQTTAfterLock) {
        afterLock.work.core = core
        if engine.connectWaitsForStore { afterLock.work.connectFailure = .connectWasHeld }
        engine.connectionClosed(at: now, into: &afterLock.work.effects)
        // Forget messages that cannot be acknowledged any more.
        withheld.connectionClosed(engine)
        manual.connectionClosed(engine)
        unmatched.connectionClosed(&engine)
        asksToClose = false
        slowSubscription = nil
        trimming = MemoryTrimming()
        afterLock.work.closed = .some(error)
        if core?.settings.queuesQoS0WhileOffline == false { publishers.takeQueueWaiters(into: afterLock) }
        collect(into: afterLock, at: now)
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: MQTTAfterLock) -> Int {
        afterLock.work.core = core
        let router = core?.subscriptions.knownRouter
        if afterLock.work.pieceStart == 0 { router?.beginRead() }
        var consumed = afterLock.work.pieceStart
        let end = min(bytes.byteCount, consumed + Link<MQTTMachine>.longestPiece)
        consumed = receive(bytes.extracting(..<end), from: consumed, router, at: now, into: afterLock)
        // Bytes after an event are read under the same lock, unless the event is CONNACK of a server that the app has
        // to trust first; so is a packet that is longer than a piece.
        if end < bytes.byteCount, consumed > afterLock.work.pieceStart, afterLock.work.effects.events.isEmpty {
            afterLock.work.pieceStart = consumed
            return 0
        }
        if end < bytes.byteCount, !awaitsTrust(afterLock) {
            consumed = receive(bytes, from: consumed, router, at: now, into: afterLock)
        }
        afterLock.work.pieceStart = 0
        for event in afterLock.work.effects.events {
            // Messages may follow CONNACK in the same read.
            if case .connected(let info) = event.kind { unmatched.connected(info, engine, at: now) }
        }
        if !afterLock.work.effects.messages.isEmpty {
            route(bytes, into: afterLock, at: now)
            afterLock.work.mayBeFull = engine.isReceiveMaximumReached
        }
        // Small reads do not keep the memory of large ones: they only see to it that what is known of topics goes too.
        if bytes.byteCount >= MQTTBatchPool.minimumBytes
            || trimming.deadline == .max && router?.remembersManyTopics == true
        {
            trimming.noteUse(at: now)
        }
        if journal != nil { updateReadingPause(at: now) }
        collect(into: afterLock, at: now)
        return consumed
    }

    /// Whether CONNACK has completed an authentication, which the app has not checked.
    private func awaitsTrust(_ afterLock: MQTTAfterLock) -> Bool {
        engine.authenticates
            && afterLock.work.effects.events.contains { if case .connected = $0.kind { true } else { false } }
    }

    private mutating func receive(
        _ bytes: RawSpan, from start: Int, _ router: MQTTRouter?, at now: Int64, into afterLock: MQTTAfterLock
    ) -> Int {
        guard let router else {
            return engine.receive(
                bytes, from: start, at: now, into: &afterLock.work.effects, knowing: TopicTable(seed: 0))
        }
        return engine.receive(bytes, from: start, at: now, into: &afterLock.work.effects, knowing: router.topics)
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: MQTTAfterLock) {
        afterLock.work.core = core
        afterLock.work.isQuiet = trimming.isDue(at: now)
        let pings = engine.pingCount
        engine.handleTimeout(at: now, progress: progress, into: &afterLock.work.effects)
        afterLock.work.hasPinged = engine.pingCount != pings
        for event in afterLock.work.effects.events {
            switch event.kind {
            case .connectionFailed(.connectTimeout), .connectionFailed(.pingTimeout),
                .connectionFailed(.acknowledgementTimeout):
                serverIsSilent = true
            default: break
            }
        }
        if now >= unmatched.nextDeadline { afterLock.work.unmatched.add(unmatched.expire(at: now, &engine)) }
        collect(into: afterLock, at: now)
    }

    // MARK: What the loop reports

    /// Asks the server for what is wanted.
    mutating func reconcile(at now: Int64, into afterLock: MQTTAfterLock) {
        // A connection that only discards a session asks for nothing.
        guard !onlyDiscards else { return }
        engine.reconcile(at: now, into: &afterLock.work.effects)
        collectApart(at: now, into: afterLock)
    }

    /// The records up to this ticket are stored. Returns the callers that waited for them.
    mutating func persisted(
        through ticket: UInt64, at now: Int64, into afterLock: MQTTAfterLock
    ) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        afterLock.work.core = core
        engine.persisted(through: ticket, at: now, into: &afterLock.work.effects)
        updateReadingPause(at: now)
        collect(into: afterLock, at: now)
        return publishers.takeStored(through: ticket)
    }

    /// The session store has failed, or does not answer. Returns the callers that waited for it; their messages have left the queue.
    ///
    /// - Parameter ended: gets those that waited for room in it.
    mutating func takeUnstored(
        _ ended: inout MQTTEndedPublishers
    ) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        defer { flushRecords() }
        return publishers.takeUnstored(&engine, &ended)
    }

    mutating func setSlowSubscription(_ name: Shared<String>?, at now: Int64) {
        slowSubscription = name
        updateReadingPause(at: now)
    }

    /// Reading pauses while a receiver's bound is reached, or too many responses wait for the store.
    private mutating func updateReadingPause(at now: Int64) {
        engine.setReadingPaused(slowSubscription != nil || engine.holdsTooManyPackets, at: now)
    }

    var withheldHoldOthersUp: Bool { !withheld.isEmpty && engine.holdsOthersUp }

    mutating func acknowledgeWithheld(at now: Int64) {
        withheld.acknowledge(&engine, at: now)
        flushRecords()
    }

    /// Acknowledges a message for its receiver; on any thread.
    mutating func acknowledge(_ delivery: UInt64, at now: Int64) {
        if delivery & MQTTUnmatchedMessages.deliveryBit != 0 {
            unmatched.confirm(delivery: delivery, &engine, at: now)
        } else {
            engine.acknowledge(delivery, at: now)
            unmatched.answered(delivery, &engine, at: now)
            manual.removeAcknowledged(engine)
        }
        flushRecords()
    }

    /// A subscription ends: what it received and has not acknowledged belongs to the others that received it, or else is
    /// unclaimed.
    mutating func subscriptionEnded(_ route: MQTTRoute, at now: Int64) -> MQTTUnmatchedMessages.Report {
        withheld.subscriptionEnded(route)
        var left: [MQTTManualMessages.Message] = []
        if route.acknowledgement == .manual {
            let others = withheld.deliveries
            left = manual.take(route, engine).filter { !others.contains($0.delivery) }
        }
        let report = unmatched.subscriptionEnded(route, leaving: left, &engine, at: now)
        withheld.acknowledge(&engine, at: now)
        flushRecords()
        return report
    }

    /// Discards the session, after the connection has ended. Publishers that wait for one of its messages get an error;
    /// those that wait for room in the queue try again.
    ///
    /// - Parameter cleanStart: for the next connection.
    /// - Returns: false if there is a connection, with which nothing is discarded.
    mutating func discardSession(cleanStart: Bool, at now: Int64, into afterLock: MQTTAfterLock) -> Bool {
        afterLock.work.core = core
        do throws(MQTTUsageError) {
            try engine.discardSession(into: &afterLock.work.effects)
        } catch {
            return false
        }
        // DISCONNECT, which tells a server of 5.0 to discard it, has no answer. With Clean Start this takes a whole connection
        // before 5.0.
        engine.cleanStart = cleanStart || engine.version.hasProperties
        collect(into: afterLock, at: now)
        publishers.forgetEarlierProperties()
        manual.removeAll()
        unmatched.removeAll()
        flushRecords()
        return true
    }

    // MARK: After each call of the engine

    /// Collects the effects of a call that did not come from the link.
    mutating func collectApart(at now: Int64, into afterLock: MQTTAfterLock) {
        afterLock.work.core = core
        collect(into: afterLock, at: now)
    }

    private mutating func collect(into afterLock: MQTTAfterLock, at now: Int64) {
        publishers.collect(into: afterLock, &engine, at: now)
        continueBatches(into: afterLock)
        flushRecords()
    }

    /// Hands the engine's records to the journal; after every call that may have made some.
    @inline(__always)
    mutating func flushRecords() {
        if !engine.storeRecords.isEmpty { moveRecords() }
    }

    /// Ends messages that others pass, because their publishers are cancelled; not in a store that is closed or has failed.
    mutating func withdrawPassed(where isWithdrawn: (UInt64) -> Bool) {
        guard MQTTJournal.failure(journal, engine) == nil else { return }
        engine.withdrawPassed(where: isWithdrawn)
        flushRecords()
    }

    /// The store is about to be closed. The messages that wait for a subscription are in it.
    mutating func endJournal() {
        // Their end could not be stored: the next process, or the next connection, finds them in the store and ends them.
        _ = engine.forgetExpiry()
        flushRecords()
        journal = nil
        unmatched.removeAll()
    }

    private mutating func moveRecords() {
        guard let journal else { return engine.storeRecords.removeAll() }
        journal.append(engine.storeRecords, through: engine.lastTicket)
        engine.storeRecords.removeAll(keepingCapacity: engine.storeRecords.capacity <= 1024)
    }
}
