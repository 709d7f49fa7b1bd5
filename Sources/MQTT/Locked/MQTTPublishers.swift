import MQTTCore
import Messaging
import Transport
import Wire

/// The callers that publish: those that wait for an acknowledgement, for room in the queue or for the session store.
/// Part of ``MQTTMachine``, under the link's lock.
///
/// Nothing is resumed here: waiters are taken out together with their answers, and resumed after the lock is released.
/// ``MQTTPublisher`` is the caller's side.
struct MQTTPublishers: ~Copyable, Sendable {
    typealias Answer = Result<MQTTPublishResult, MQTTError>
    typealias Table = WaiterTable<Answer>

    /// Set in tokens of messages of a batch, which also hold its number and the place of the message; single messages have
    /// tokens below it.
    static let batchBit: UInt64 = 1 << 63
    /// Set in tokens of messages that no caller waits for: QoS 0, enqueued ones, and those of an earlier process.
    static let unawaitedBit: UInt64 = 1 << 62

    /// Callers that wait for the acknowledgement of one message.
    var table = Table()
    var batches = MQTTPublishBatches()
    /// Properties of PUBREC for messages whose PUBCOMP is still to come, by the token of their publisher.
    private var earlierProperties: [UInt64: MQTTProperties] = [:]
    /// Callers that wait for the store or for room; made for the first of them.
    private var queue = LazyBox<MQTTQueueCallers>()
    /// Why requests fail at once, while the client does not try to be connected. Nil while it connects, is connected or
    /// is suspended.
    var refusal: Shared<MQTTError>? = Shared(.notSupervised(after: nil))
    private let dropsOldest: Bool
    /// Whose clock is read.
    let loop: EventLoop

    init(dropsOldest: Bool, loop: EventLoop) {
        self.dropsOldest = dropsOldest
        self.loop = loop
    }

    // MARK: Publishing

    /// Hands one message of QoS 1 or 2 to the engine. Returns the waiter with its answer if it need not wait.
    mutating func publish(
        _ payload: [UInt8], _ topic: String, _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties,
        _ waiter: consuming Table.QuickWaiter, _ engine: inout MQTTEngine, _ journal: MQTTJournal?
    ) -> Resumption<QuickAnswer<Answer>>? {
        let now = loop.now
        let token = table.add(waiter, at: now)
        let isConnected = engine.phase == .connected
        if !isConnected, journal?.failure == nil, let refusal = MQTTJournal.refusal(refusal, journal, engine) {
            return table.answerAtOnce(token, .failure(refusal))
        }
        if let failure = journal?.failure
            ?? hand(topic, payload, qos, retain, properties, token: token, &engine, at: now)
        {
            return table.answerAtOnce(token, .failure(failure))
        }
        // While disconnected there is no telling how long the acknowledgement takes.
        return isConnected ? nil : table.sendOn(token)
    }

    /// Hands the only message of a batch to the engine, to be confirmed later. Returns why that is not possible.
    mutating func begin(
        _ batch: MQTTPublishBatch, _ engine: inout MQTTEngine, _ journal: MQTTJournal?
    ) -> MQTTError? {
        if let failure = journal?.failure { return failure }
        if engine.phase != .connected, let refusal = MQTTJournal.refusal(refusal, journal, engine) { return refusal }
        let message = batch.messages[0]
        let failure = hand(
            message.topic, message.payload, message.qos, message.retain, message.properties,
            token: batch.token, &engine, at: loop.now)
        guard failure == nil else { return failure }
        batch.next = 1
        batches.add(batch)
        return nil
    }

    /// Hands a message to the engine; where the queue is full and the policy allows it, the oldest ones are dropped.
    mutating func hand(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties, token: UInt64,
        _ engine: inout MQTTEngine, at now: Int64
    ) -> MQTTError? {
        while true {
            do throws(MQTTUsageError) {
                _ = try engine.publish(
                    topic: topic, payload: payload, qos: qos, retain: retain, properties: properties, token: token,
                    at: now)
                return nil
            } catch {
                guard error.code == .queueFull, dropsOldest, let oldest = engine.dropOldestQueued() else {
                    return MQTTError(error)
                }
                drop(oldest)
            }
        }
    }

    private mutating func drop(_ token: UInt64) {
        let error = MQTTError(
            .queueFull,
            "The message was dropped as the oldest of a full queue. Set queueOverflow to something else, or raise maximumQueuedMessages and maximumQueuedBytes."
        )
        if token & Self.batchBit != 0 {
            guard let batch = batches[token] else { return }
            batch.complete(token, .failure(error))
            guard batch.isDone else { return }
            batches.remove(batch)
            batch.takeEnds(into: &queue.value.dropped.batches)
        } else if token & Self.unawaitedBit != 0 {
            queue.value.dropped.enqueued.append(error)
        } else {
            table.answer(token, .failure(error), into: &queue.value.dropped.waiters)
        }
    }

    /// Whether messages were dropped and have not been reported yet.
    var hasDropped: Bool {
        mutating get { queue.isMade && !queue.value.dropped.isEmpty }
    }

    mutating func takeDropped() -> MQTTEndedPublishers {
        var taken = MQTTEndedPublishers()
        if queue.isMade { swap(&taken, &queue.value.dropped) }
        return taken
    }

    // MARK: Waiting for the store and for room

    /// A token for a caller that is about to enqueue a message.
    mutating func reserveStoreWait() -> MQTTStoreWait.Token { queue.value.storeSlots.reserve() }

    /// Hands a message to the engine. Returns the waiter with its answer unless it waits until the message is stored.
    mutating func enqueue(
        _ message: MQTTOutgoingMessage, _ waiter: consuming Waiter<Result<Void, MQTTError>>,
        _ token: MQTTStoreWait.Token, _ engine: inout MQTTEngine, _ journal: MQTTJournal?
    ) -> Resumption<Result<Void, MQTTError>>? {
        let failure: MQTTError? =
            Task.isCancelled
            ? .cancelledWait
            : journal?.failure ?? MQTTJournal.refusal(nil, journal, engine)
                ?? hand(
                    message.topic, message.payload, message.qos, message.retain, message.properties,
                    token: Self.unawaitedBit, &engine, at: loop.now)
        guard failure == nil, journal != nil else {
            queue.value.storeSlots.release(token)
            return Resumption(waiter, failure.map { .failure($0) } ?? .success(()))
        }
        queue.value.storeSlots.add(waiter, at: token)
        queue.value.storeWaits.append(MQTTStoreWait(ticket: engine.lastTicket, token: token))
        return nil
    }

    mutating func cancelStoreWait(_ token: MQTTStoreWait.Token) -> Waiter<Result<Void, MQTTError>>? {
        queue.value.storeSlots.take(token)
    }

    /// Takes out the callers whose records are stored.
    mutating func takeStored(through ticket: UInt64) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        var stored = UniqueArray<Waiter<Result<Void, MQTTError>>>()
        guard queue.isMade else { return stored }
        let count = queue.value.storeWaits.firstIndex { $0.ticket > ticket } ?? queue.value.storeWaits.count
        for wait in queue.value.storeWaits[..<count] {
            // Cancelled callers have been taken out before.
            if let waiter = queue.value.storeSlots.take(wait.token) { stored.append(waiter) }
        }
        queue.value.storeWaits.removeFirst(count)
        return stored
    }

    /// The store has failed: takes out every caller that waits for it.
    mutating func takeAllStoreWaiters() -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        guard queue.isMade else { return UniqueArray() }
        queue.value.storeWaits = []
        return queue.value.storeSlots.takeAll()
    }

    /// A token for a caller that is about to wait for room in the queue.
    mutating func reserveRoomWait() -> WaiterSlots<Void>.Token { queue.value.roomSlots.reserve() }

    /// Returns the waiter if there is room already, or its task is cancelled.
    mutating func waitForRoom(
        _ waiter: consuming Waiter<Void>, _ token: WaiterSlots<Void>.Token, _ engine: borrowing MQTTEngine
    ) -> Waiter<Void>? {
        // Room may have come between the refusal and now.
        guard !Task.isCancelled, engine.owesRoomNotice else {
            queue.value.roomSlots.release(token)
            return waiter
        }
        queue.value.roomSlots.add(waiter, at: token)
        return nil
    }

    mutating func cancelRoomWait(_ token: WaiterSlots<Void>.Token) -> Waiter<Void>? {
        queue.value.roomSlots.take(token)
    }

    mutating func takeRoomWaiters() -> UniqueArray<Waiter<Void>> {
        queue.isMade ? queue.value.roomSlots.takeAll() : UniqueArray()
    }

    // MARK: Acknowledgements

    /// Takes out the waiters of messages that are complete.
    mutating func collect(into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64) {
        if !scratch.work.effects.events.isEmpty { noteEarlierProperties(scratch.work.effects) }
        var feeds = false
        for completion in scratch.work.effects.completions {
            if completion.token & Self.batchBit != 0 {
                let isPlain =
                    Self.isSuccess(completion) && completion.remark < 0 && completion.reason == .success
                    && earlierProperties.isEmpty
                let answer = isPlain ? nil : wholeAnswer(to: completion, scratch.work.effects)
                batches.complete(completion, answer, into: scratch, &engine, at: now)
                feeds = true
            } else if completion.token & Self.unawaitedBit != 0 {
                if case .failure(let error) = Self.answer(to: completion, scratch.work.effects) {
                    scratch.work.undelivered.append(error)
                }
            } else if Self.isSuccess(completion), completion.remark < 0, earlierProperties.isEmpty,
                let waiter = table.succeed(completion.token)
            {
                scratch.work.resumptions.quick.append(Resumption(waiter, .success(completion.reason.rawValue)))
            } else {
                table.answer(
                    completion.token, wholeAnswer(to: completion, scratch.work.effects),
                    into: &scratch.work.resumptions)
            }
        }
        if feeds { batches.feedCompleted(into: scratch, &engine, at: now) }
        if scratch.work.effects.queueHasRoom {
            batches.feedAll(into: scratch, &engine, at: now)
            var rooms = takeRoomWaiters()
            rooms.drain { scratch.work.roomWaiters.append($0) }
        }
    }

    /// Remembers the properties of PUBREC until PUBCOMP.
    private mutating func noteEarlierProperties(_ effects: MQTTEffects) {
        for (index, event) in effects.events.enumerated() {
            guard case .acknowledgementProperties(let token, let properties) = event.kind,
                token & Self.unawaitedBit == 0,
                !effects.completions.contains(where: { $0.remark == index })
            else { continue }
            earlierProperties[token] = earlierProperties[token]?.followed(by: properties) ?? properties
        }
    }

    /// The session is discarded: no PUBCOMP will come for its messages.
    mutating func forgetEarlierProperties() { earlierProperties = [:] }

    private mutating func wholeAnswer(to completion: MQTTPublishCompletion, _ effects: MQTTEffects) -> Answer {
        let answer = Self.answer(to: completion, effects)
        guard !earlierProperties.isEmpty, let earlier = earlierProperties.removeValue(forKey: completion.token) else {
            return answer
        }
        return answer.map { MQTTPublishResult($0.reasonCode, properties: earlier.followed(by: $0.properties)) }
    }

    @inline(__always)
    static func isSuccess(_ completion: MQTTPublishCompletion) -> Bool {
        completion.outcome == .acknowledged || completion.outcome == .written
    }

    /// The answer to a publisher.
    ///
    /// - Parameter effects: those that the completion came with.
    static func answer(to completion: MQTTPublishCompletion, _ effects: MQTTEffects) -> Answer {
        let reason = completion.reason
        var properties = MQTTProperties()
        if completion.remark >= 0 {
            switch effects.events[Int(completion.remark)].kind {
            case .acknowledgementProperties(_, let received): properties = received
            case .requestRefused(let refusal): return .failure(MQTTError(refusal))
            default: break
            }
        }
        if isSuccess(completion) { return .success(MQTTPublishResult(reason, properties: properties)) }
        return .failure(MQTTError(undelivered: completion.outcome, reason, properties))
    }

    // MARK: The client stops

    /// The client has stopped connecting: takes out every waiting caller, with its answer.
    ///
    /// Messages in the queue whose publishers still wait are dropped: their publishers get an error, and must not see the
    /// message sent later. Enqueued messages and those of cancelled publishers stay.
    mutating func stop(_ failure: MQTTError, _ engine: inout MQTTEngine) -> MQTTEndedPublishers {
        var awaited: Set<UInt64> = []
        for token in engine.queuedTokens where isAwaited(token) { awaited.insert(token) }
        if !awaited.isEmpty {
            var effects = MQTTEffects()
            engine.dropQueued(where: { awaited.contains($0) }, into: &effects)
        }
        var ended = MQTTEndedPublishers()
        table.answerAll(.failure(failure), into: &ended.waiters)
        for batch in batches.takeAll() {
            batch.failure = failure
            batch.takeEnds(into: &ended.batches)
        }
        ended.rooms = takeRoomWaiters()
        return ended
    }

    private func isAwaited(_ token: UInt64) -> Bool {
        if token & Self.batchBit != 0 {
            guard let batch = batches[token] else { return false }
            return batch.failure?.code != .cancelled
        }
        guard token & Self.unawaitedBit == 0 else { return false }
        return table.isAwaited(token)
    }
}

/// The callers of ``MQTTPublishers`` that most clients never have.
private struct MQTTQueueCallers: EmptyAtFirst, ~Copyable, Sendable {
    /// Callers that enqueued messages, in the order of their tickets.
    var storeWaits: [MQTTStoreWait] = []
    var storeSlots = WaiterSlots<Result<Void, MQTTError>>()
    /// Publishers that wait for room in the queue.
    var roomSlots = WaiterSlots<Void>()
    var dropped = MQTTEndedPublishers()
}

/// A caller that waits until a record is stored.
struct MQTTStoreWait: Sendable {
    typealias Token = WaiterSlots<Result<Void, MQTTError>>.Token

    let ticket: UInt64
    let token: Token
}

/// Publishers whose messages were dropped, or whose client stops, until they are resumed after the lock is released.
struct MQTTEndedPublishers: ~Copyable, Sendable {
    var waiters = Resumptions<MQTTPublishers.Answer>()
    var batches = UniqueArray<Resumption<Result<Void, MQTTError>>>()
    /// Publishers that try again.
    var rooms = UniqueArray<Waiter<Void>>()
    /// For messages that no caller waits for.
    var enqueued: [MQTTError] = []

    var isEmpty: Bool { waiters.isEmpty && batches.isEmpty && enqueued.isEmpty }

    /// Resumes the callers; without the lock.
    mutating func resume() {
        rooms.resume(returning: ())
        waiters.resume()
        batches.drain { $0.resume() }
    }
}
