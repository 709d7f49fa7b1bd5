import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// The callers that publish: those that wait for an acknowledgement, for room in the queue or for the session store.
/// Part of ``MQTTMachine``, under the link's lock.
///
/// Nothing is resumed here: waiters are taken out together with their answers, and resumed after the lock is released.
/// ``MQTTSender`` is the caller's side.
struct MQTTWaitingPublishers: ~Copyable, Sendable {
    typealias Answer = Result<MQTTPublishResult, MQTTError>

    /// Set in tokens of messages of a batch; single messages have tokens below it.
    static let batchBit = SendBatches<MQTTOutgoingMessage, Answer>.bit
    /// Set in tokens of messages that no caller waits for: with a number for enqueued ones, alone for those of QoS 0 and of an
    /// earlier process.
    static let unawaitedBit: UInt64 = 1 << 62

    /// Callers that wait for the acknowledgement of one message.
    var waiters = Waiters<Answer>()
    var batches = SendBatches<MQTTOutgoingMessage, Answer>()
    /// Properties of PUBREC for messages whose PUBCOMP is still to come, by the token of their publisher.
    private var earlierProperties: [UInt64: MQTTProperties] = [:]
    /// Callers that enqueued messages, and the records that they wait for, in the order of their tickets. The table is made
    /// for the first caller, since few clients have a session store.
    var storeWaiters: Box<Waiters<Result<Void, MQTTError>>>?
    private var storeWaits: [MQTTStoreWait] = []
    /// Publishers that wait for room in the queue: nil to try again, or why they wait no longer.
    var queueWaiters = Waiters<MQTTError?>()
    /// Why requests fail at once, while the client does not try to be connected. Nil while it connects, is connected or
    /// is suspended.
    var reasonNotSupervised: Shared<MQTTError>? = Shared(.notSupervised(after: nil))
    let overflow: MQTTConfiguration.QueueOverflow
    /// For its clock.
    let loop: EventLoop

    init(overflow: MQTTConfiguration.QueueOverflow, loop: EventLoop) {
        self.overflow = overflow
        self.loop = loop
    }

    // MARK: Publishing

    /// Hands one message of QoS 1 or 2 to the engine, whose acknowledgement the caller waits for.
    ///
    /// - Parameter dropped: gets the publishers of messages that were dropped for it.
    mutating func publish(
        _ message: MQTTOutgoingMessage, _ waiter: consuming Waiter<Answer>, _ engine: inout MQTTEngine,
        _ journal: MQTTJournal?, _ dropped: inout MQTTEndedPublishers
    ) -> BegunWait<Answer> {
        if let failure = failureToPublish(engine, journal) { return .ended(Resumption(waiter, .failure(failure))) }
        let token = waiters.add(waiter)
        let failure = hand(message, token: token, &engine, at: loop.now, &dropped)
        if let failure, let waiter = waiters.take(token) { return .ended(Resumption(waiter, .failure(failure))) }
        return .waits(token)
    }

    /// Why no message can be published that its publisher waits for.
    private func failureToPublish(_ engine: borrowing MQTTEngine, _ journal: MQTTJournal?) -> MQTTError? {
        if Task.isCancelled { return .cancelledWait }
        if let failure = journal?.failure { return failure }
        return engine.phase == .connected
            ? nil : reasonNotSupervised?.value ?? MQTTJournal.failure(journal, engine)
    }

    /// Hands the only message of a batch to the engine, to be confirmed later. Returns why that is not possible.
    mutating func begin(
        _ batch: MQTTSendBatch, _ engine: inout MQTTEngine, _ journal: MQTTJournal?,
        _ dropped: inout MQTTEndedPublishers
    ) -> MQTTError? {
        if let failure = failureToPublish(engine, journal) { return failure }
        batches.add(batch)
        let failure = hand(batch.messages[0], token: batch.token(of: 0), &engine, at: loop.now, &dropped)
        if let failure {
            batches.remove(batch, failing: .failure(failure))
        } else {
            batch.noteSent(0)
            batch.next = 1
        }
        return failure
    }

    /// Hands a message to the engine; where the queue is full and the policy allows it, the oldest ones are dropped.
    mutating func hand(
        _ message: MQTTOutgoingMessage, token: UInt64, _ engine: inout MQTTEngine, at now: Int64,
        _ dropped: inout MQTTEndedPublishers
    ) -> MQTTError? {
        while true {
            do throws(MQTTUsageError) {
                _ = try engine.publish(
                    topic: message.topic, payload: message.payload, qos: message.qos, retain: message.retain,
                    properties: message.properties, token: token, at: now)
                return nil
            } catch {
                guard makeRoom(for: message.topic, after: error, &engine, &dropped) else { return MQTTError(error) }
            }
        }
    }

    /// The engine refused a message: drops an older one from the queue where that is full and the policy allows it. Returns
    /// whether to try again.
    ///
    /// - Parameter dropped: gets the publisher of the message that was dropped.
    mutating func makeRoom(
        for topic: String, after error: MQTTUsageError, _ engine: inout MQTTEngine,
        _ dropped: inout MQTTEndedPublishers
    ) -> Bool {
        guard error.code == .queueFull else { return false }
        let token: UInt64? =
            switch overflow.kind {
            case .dropOldest: engine.dropOldestQueued()
            case .newestPerTopic: engine.dropOldestQueued(to: topic) ?? engine.dropOldestQueued()
            case .reject, .wait: nil
            }
        guard let token else { return false }
        drop(token, into: &dropped)
        return true
    }

    /// Takes a message of a batch, or an enqueued one, out of the queue; nil if it was sent, has ended, or is in a store that
    /// is closed or has failed, where it stays.
    mutating func withdraw(
        _ token: UInt64, _ engine: inout MQTTEngine, _ journal: MQTTJournal?
    ) -> MQTTEndedPublishers? {
        var effects = MQTTEffects()
        guard MQTTJournal.failure(journal, engine) == nil, engine.withdraw(token, into: &effects) else { return nil }
        var ended = MQTTEndedPublishers()
        if token & Self.batchBit != 0 {
            batches.answer(
                token, .failure(MQTTError(.cancelled, "The message was withdrawn before it was sent.")),
                into: &ended.batches)
        }
        if effects.queueHasRoom { ended.queueWaiters = queueWaiters.takeAll() }
        return ended
    }

    /// A message was dropped: its publisher is taken out.
    private mutating func drop(_ token: UInt64, into dropped: inout MQTTEndedPublishers) {
        let error = MQTTError(
            .queueFull,
            "The message was dropped from a full queue, to make room for a newer one. Set queueOverflow to something else, or raise maximumQueuedMessages and maximumQueuedBytes."
        )
        if token & Self.batchBit != 0 {
            batches.answer(token, .failure(error), into: &dropped.batches)
        } else if token & Self.unawaitedBit != 0 {
            dropped.enqueued.append(error)
        } else if let waiter = waiters.take(token) {
            dropped.waiters.append(Resumption(waiter, .failure(error)))
        }
    }

    // MARK: Waiting for the store and for the queue

    /// Hands a message to the engine. The caller waits until it is stored.
    ///
    /// - Parameters:
    ///   - token: that of the message.
    ///   - dropped: gets the publishers of messages that were dropped for it.
    mutating func enqueue(
        _ message: MQTTOutgoingMessage, as token: UInt64, _ waiter: consuming Waiter<Result<Void, MQTTError>>,
        _ engine: inout MQTTEngine, _ journal: MQTTJournal?, _ dropped: inout MQTTEndedPublishers
    ) -> BegunWait<Result<Void, MQTTError>> {
        let failure: MQTTError? =
            Task.isCancelled
            ? .cancelledWait
            : MQTTJournal.failure(journal, engine)
                ?? hand(message, token: token, &engine, at: loop.now, &dropped)
        guard failure == nil, journal != nil else {
            return .ended(Resumption(waiter, failure.map { .failure($0) } ?? .success(())))
        }
        var waiters = takeStoreWaiters()
        let added = waiters.value.add(waiter)
        storeWaiters = consume waiters
        storeWaits.append(MQTTStoreWait(ticket: engine.lastTicket, token: added, message: token))
        return .waits(added)
    }

    /// Takes out the callers whose records are stored.
    mutating func takeStored(through ticket: UInt64) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        var stored = UniqueArray<Waiter<Result<Void, MQTTError>>>()
        let count = storeWaits.firstIndex { $0.ticket > ticket } ?? storeWaits.count
        for wait in storeWaits[..<count] {
            // Cancelled callers have been taken out before.
            if let waiter = storeWaiters?.value.take(wait.token) { stored.append(waiter) }
        }
        storeWaits.removeFirst(count)
        return stored
    }

    /// The store has failed, or does not answer: takes out every caller that waits for it, and the messages of these callers, also
    /// of those that were cancelled: they are not stored, and must not be reported or sent later.
    ///
    /// - Parameter ended: gets the callers that wait for room in the queue.
    mutating func takeUnstored(
        _ engine: inout MQTTEngine, _ ended: inout MQTTEndedPublishers
    ) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        if !storeWaits.isEmpty {
            let unstored = Set(storeWaits.map(\.message))
            var effects = MQTTEffects()
            engine.dropQueued(where: { unstored.contains($0) }, into: &effects)
            if effects.queueHasRoom { ended.queueWaiters = queueWaiters.takeAll() }
        }
        storeWaits = []
        var waiters = takeStoreWaiters()
        let all = waiters.value.takeAll()
        // The table stays: its numbers must not begin again while a caller that has its answer may still be cancelled.
        storeWaiters = consume waiters
        return all
    }

    private mutating func takeStoreWaiters() -> Box<Waiters<Result<Void, MQTTError>>> {
        if let waiters = storeWaiters.take() { return waiters }
        return Box(Waiters())
    }

    /// The caller waits unless the queue has room already, which may have come since it was full.
    mutating func waitForQueue(
        _ waiter: consuming Waiter<MQTTError?>, _ engine: borrowing MQTTEngine
    ) -> BegunWait<MQTTError?> {
        guard !Task.isCancelled, engine.owesRoomNotice else { return .ended(Resumption(waiter, nil)) }
        return .waits(queueWaiters.add(waiter))
    }

    // MARK: Acknowledgements

    /// Takes out the waiters of messages that are complete.
    mutating func collect(into afterLock: MQTTAfterLock, _ engine: inout MQTTEngine, at now: Int64) {
        if !afterLock.work.effects.events.isEmpty { noteEarlierProperties(afterLock.work.effects) }
        for completion in afterLock.work.effects.completions {
            if completion.token & Self.batchBit != 0 {
                let isPlain =
                    Self.isSuccess(completion) && completion.remark < 0 && completion.reason == .success
                    && earlierProperties.isEmpty
                let answer = isPlain ? nil : wholeAnswer(to: completion, afterLock.work.effects)
                batches.answer(completion.token, answer)
            } else if completion.token & Self.unawaitedBit != 0 {
                if case .failure(let error) = Self.answer(to: completion, afterLock.work.effects) {
                    afterLock.work.undelivered.append(error)
                }
            } else {
                let answer = wholeAnswer(to: completion, afterLock.work.effects)
                if let waiter = waiters.take(completion.token) {
                    afterLock.work.resumptions.append(Resumption(waiter, answer))
                }
            }
        }
        if afterLock.work.effects.queueHasRoom { takeQueueWaiters(into: afterLock) }
        assert(queueWaiters.count == 0 || engine.owesRoomNotice, "A caller waits for room, and will not be told of it.")
    }

    /// The callers that wait for room in the queue try again: there is some, or the connection has ended, without which
    /// messages of QoS 0 are refused.
    mutating func takeQueueWaiters(into afterLock: MQTTAfterLock) {
        var waiting = queueWaiters.takeAll()
        waiting.drain { afterLock.work.queueWaiters.append($0) }
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
        return failAll(failure, awaitedOnly: false)
    }

    /// Takes out every caller that waits for an acknowledgement, whose messages stay, and for room in the queue, which there
    /// will not be.
    mutating func answersStandStill(because reason: String) -> MQTTEndedPublishers {
        // A confirmation that nobody awaits yet may still come.
        var ended = failAll(.acknowledgementIsUnread(because: reason), awaitedOnly: true)
        ended.queueFailure = .queueStandsStill(because: reason)
        return ended
    }

    private mutating func failAll(_ failure: MQTTError, awaitedOnly: Bool) -> MQTTEndedPublishers {
        var ended = MQTTEndedPublishers()
        var waiting = waiters.takeAll()
        waiting.drain { ended.waiters.append(Resumption($0, .failure(failure))) }
        batches.failAll(awaitedOnly: awaitedOnly, .failure(failure), into: &ended.batches)
        ended.queueWaiters = queueWaiters.takeAll()
        return ended
    }

    private func isAwaited(_ token: UInt64) -> Bool {
        if token & Self.batchBit != 0 { return batches.contains(token) }
        guard token & Self.unawaitedBit == 0 else { return false }
        return waiters.contains(token)
    }
}

/// A caller that waits until a record is stored.
struct MQTTStoreWait: Sendable {
    let ticket: UInt64
    /// The token of the caller.
    let token: UInt64
    /// The token of its message.
    let message: UInt64
}
