import MQTTCore
import Messaging
import Transport

/// The engine with its shell's bookkeeping, all of it under the link's lock.
struct MQTTMachine: LinkMachine, ~Copyable {
    typealias Scratch = MQTTScratch
    typealias PublishAnswer = Result<MQTTPublishResult, MQTTError>

    var engine: MQTTEngine
    weak var core: MQTTClientCore?
    /// Publishers that wait for the acknowledgement of their message.
    var publishes = WaiterTable<PublishAnswer>()
    /// What the server remarked in PUBREC of messages whose PUBCOMP is to come, by the token of their publisher.
    var remarks: [UInt64: MQTTProperties] = [:]
    /// Batches of messages on their way.
    var batches = MQTTPublishBatches()
    var nextBatchID: UInt64 = 1
    /// Messages that the engine took.
    var publishedCount = 0
    /// Messages whose acknowledgement waits for room in a subscription's buffer.
    var withheld: [MQTTWithheldMessage] = []
    /// When bytes were last taken out of `output`.
    private var lastWrite: Int64 = 0
    var wantsClose = false
    /// The server did not answer PINGREQ.
    private(set) var abandonsOutput = false
    /// Whether nothing more should be read: a receiver's bound is reached, or too many answers wait for the store.
    private(set) var wantsReadingPaused = false
    private var receiversAreFull = false
    let dropsOldest: Bool

    /// Why requests fail at once: nobody tries to be connected. Nil while the client connects, is connected or is
    /// suspended.
    var refusal: Shared<MQTTError>? = Shared(.notSupervised(after: nil))
    /// Where records go, with a session store.
    var journal: MQTTJournal?
    /// Callers that wait for a store or for room, made with the first of them.
    var callers = LazyBox<MQTTQueueCallers>()
    let keepPolicy: Shared<MQTTUnmatchedMessagePolicy>
    /// QoS 0 messages that were in the outbox of a connection that ended, and are not reported yet.
    private var unsentCount: Int32 = 0
    /// Received messages without a subscription; there since the first of them.
    private(set) var knownKeeper: MQTTKeeper?

    /// Set in tokens that belong to a batch; single publishes use tokens below.
    static let batchBit: UInt64 = 1 << 63
    /// Set in tokens of messages that nobody waits for: enqueued ones, and those of an earlier process.
    static let looseBit: UInt64 = 1 << 62

    init(engine: consuming MQTTEngine, dropsOldest: Bool, keeps policy: Shared<MQTTUnmatchedMessagePolicy>) {
        self.engine = engine
        keepPolicy = policy
        self.dropsOldest = dropsOldest
    }

    var keeper: MQTTKeeper {
        mutating get {
            if let knownKeeper { return knownKeeper }
            let made = MQTTKeeper(policy: keepPolicy.value)
            knownKeeper = made
            return made
        }
    }

    var outputCount: Int { engine.output.count }

    var output: [UInt8] {
        get { engine.output }
        _modify { yield &engine.output }
    }

    /// Kept messages age by the clock while there is a connection, and otherwise when somebody asks for them: an alarm
    /// would keep a client alive that nobody uses any more.
    var nextDeadline: Int64 {
        mutating get {
            let next = min(engine.nextDeadline, publishes.nextLook)
            guard let knownKeeper, engine.phase == .connected else { return next }
            return min(next, knownKeeper.nextDeadline)
        }
    }

    /// The time that a QoS 0 message is published at. With a connection it serves keep alive alone, which hears of the
    /// write that follows too: that saves reading the clock for each.
    var timeForQoS0: Int64 { engine.phase == .connected ? lastWrite : MonotonicClock.now }
    var isLatencyBound: Bool { mutating get { engine.inFlightCount <= 1 } }
    var isAwaited: Bool { mutating get { engine.inFlightCount > 0 } }

    mutating func outputTaken(at now: Int64) {
        lastWrite = now
        engine.outputTaken(at: now)
    }

    mutating func outputDiscarded(_ bytes: RawSpan, writtenUpTo offset: Int) {
        unsentCount += Int32(clamping: MQTTPacket.Publish.countAtMostOnce(in: bytes, endingAfter: offset))
    }

    mutating func reportDiscarded(into scratch: MQTTScratch) {
        guard unsentCount > 0 else { return }
        scratch.work.core = core
        scratch.work.unsentCount = Int(unsentCount)
        unsentCount = 0
    }

    mutating func connectionOpened(at now: Int64, into scratch: MQTTScratch) {
        scratch.work.core = core
        wantsClose = false
        abandonsOutput = false
        do {
            try engine.connectionOpened(at: now, deadline: core?.connectDeadline)
        } catch {
            scratch.work.openFailure = MQTTError(error)
            wantsClose = true
        }
        flushRecords()
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into scratch: MQTTScratch) {
        scratch.work.core = core
        engine.connectionClosed(at: now, into: &scratch.work.effects)
        withheld.removeAll()
        wantsClose = false
        wantsReadingPaused = false
        receiversAreFull = false
        scratch.work.closed = .some(error)
        collect(into: scratch, at: now)
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into scratch: MQTTScratch) -> Int {
        scratch.work.core = core
        let consumed = engine.receive(bytes, at: now, into: &scratch.work.effects)
        if !scratch.work.effects.messages.isEmpty { route(bytes, into: scratch, at: now) }
        if journal != nil { updateReadingPaused(at: now) }
        collect(into: scratch, at: now)
        return consumed
    }

    /// Pauses reading while a receiver's bound is reached.
    mutating func setReceiversFull(_ full: Bool, at now: Int64) {
        receiversAreFull = full
        updateReadingPaused(at: now)
    }

    mutating func updateReadingPaused(at now: Int64) {
        let isPaused = receiversAreFull || engine.holdsTooManyPackets
        guard isPaused != wantsReadingPaused else { return }
        wantsReadingPaused = isPaused
        engine.setReadingPaused(isPaused, at: now)
    }

    mutating func handleTimeout(at now: Int64, progress: LinkProgress, into scratch: MQTTScratch) {
        scratch.work.core = core
        // Not by callers that wait: they are no sign of rest.
        scratch.work.isQuiet = now >= min(engine.nextDeadline, knownKeeper?.nextDeadline ?? .max)
        publishes.look(at: now, into: &scratch.work.resumptions)
        let progress = MQTTOutputProgress(total: progress.total, acknowledged: progress.acknowledged)
        engine.handleTimeout(at: now, progress: progress, into: &scratch.work.effects)
        if scratch.work.effects.events.contains(where: \.kind.isPingTimeout) { abandonsOutput = true }
        if let knownKeeper, now >= knownKeeper.nextDeadline { scratch.work.keptDrops += expireKept(at: now) }
        collect(into: scratch, at: now)
    }

    /// Every subscription that comes before messages is written.
    mutating func subscriptionsSent(at now: Int64, into scratch: MQTTScratch) {
        engine.subscriptionsSent(at: now, into: &scratch.work.effects)
        collectApart(at: now, into: scratch)
    }

    /// Collects the effects of a call that did not come from the link.
    mutating func collectApart(at now: Int64, into scratch: MQTTScratch) {
        scratch.work.core = core
        collect(into: scratch, at: now)
    }

    /// Takes the waiters of what is complete out of the tables, so that they are resumed after the lock.
    mutating func collect(into scratch: MQTTScratch, at now: Int64) {
        if scratch.work.effects.shouldClose { wantsClose = true }
        if !scratch.work.effects.events.isEmpty { keepRemarks(scratch.work.effects) }
        var feeds = false
        for completion in scratch.work.effects.completions {
            if completion.token & Self.batchBit != 0 {
                completeInBatch(completion, into: scratch, at: now)
                feeds = true
            } else if completion.token & Self.looseBit != 0 {
                if case .failure(let error) = completion.answer(scratch.work.effects) {
                    scratch.work.undelivered.append(error)
                }
            } else if completion.isSuccess, completion.remark < 0, remarks.isEmpty,
                let waiter = publishes.succeed(completion.token)
            {
                scratch.work.resumptions.quick.append(Resumption(waiter, .success(completion.reason.rawValue)))
            } else {
                publishes.answer(
                    completion.token, completion.answer(scratch.work.effects, after: &remarks),
                    into: &scratch.work.resumptions)
            }
        }
        if feeds { feedCompleted(into: scratch, at: now) }
        if scratch.work.effects.queueHasRoom {
            pumpBatches(into: scratch, at: now)
            var rooms = takeRoomWaiters()
            rooms.drain { scratch.work.roomWaiters.append($0) }
        }
        flushRecords()
    }
}

/// A message whose acknowledgement is held back, and the subscription whose buffer it waits for.
struct MQTTWithheldMessage: Sendable {
    let delivery: UInt64
    let routes: [MQTTRoute]
}

extension MQTTMachine {
    /// Keeps what PUBREC said until PUBCOMP, for publishers that wait for one message: nobody else is told.
    private mutating func keepRemarks(_ effects: MQTTEffects) {
        for (index, event) in effects.events.enumerated() {
            guard case .acknowledgementProperties(let token, let properties) = event.kind,
                token & (Self.batchBit | Self.looseBit) == 0,
                !effects.completions.contains(where: { $0.remark == index })
            else { continue }
            remarks[token] = remarks[token]?.followed(by: properties) ?? properties
        }
    }
}

extension MQTTPublishCompletion {
    /// What a publisher is told who may have been waiting since PUBREC.
    func answer(
        _ effects: MQTTEffects, after remarks: inout [UInt64: MQTTProperties]
    ) -> Result<MQTTPublishResult, MQTTError> {
        guard !remarks.isEmpty, let earlier = remarks.removeValue(forKey: token) else { return answer(effects) }
        return answer(effects).map { MQTTPublishResult($0.reasonCode, properties: earlier.followed(by: $0.properties)) }
    }

    var isSuccess: Bool { outcome == .acknowledged || outcome == .written }

    /// What a publisher is told.
    ///
    /// - Parameter effects: those that the completion came with.
    func answer(_ effects: MQTTEffects) -> Result<MQTTPublishResult, MQTTError> {
        var properties = MQTTProperties()
        if remark >= 0, case .acknowledgementProperties(_, let said) = effects.events[Int(remark)].kind {
            properties = said
        }
        return switch outcome {
        case .acknowledged, .written:
            .success(MQTTPublishResult(reason, properties: properties))
        case .refused:
            .failure(
                MQTTError(
                    .refused, "the server refused the message: \(reason.words(properties))", reasonCode: reason,
                    properties: properties))
        case .expired:
            .failure(MQTTError(.expired, "the message expired before it could be sent"))
        case .sessionLost:
            .failure(
                MQTTError(.sessionLost, "the server lost the session; whether the message arrived is unknown"))
        case .unsendable:
            .failure(
                MQTTError(.notAllowed, "the server's limits do not allow this message: \(reason)", reasonCode: reason))
        case .discarded:
            .failure(MQTTError(.disconnected, "the session was given up; whether the message arrived is unknown"))
        }
    }
}

extension MQTTEngineEvent.Kind {
    /// Whether the connection failed because the peer was silent.
    fileprivate var isPingTimeout: Bool {
        if case .connectionFailed(.pingTimeout) = self { true } else { false }
    }
}
