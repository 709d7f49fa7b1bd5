import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Hands a message over and returns when it is stored, or at once if there is no store.
    nonisolated(nonsending) func enqueue(_ message: MQTTOutgoingMessage) async throws(MQTTError) {
        guard message.qos != .atMostOnce else {
            throw MQTTError(
                .invalidRequest,
                "a QoS 0 message has no delivery to wait for: publish it, or enqueue it with QoS 1 or 2")
        }
        try await prepareStore()
        while true {
            let result = await enqueueOnce(message)
            if case .failure(let error) = result, waitsForRoom(error) {
                try await waitForRoom()
            } else {
                return try result.get()
            }
        }
    }

    private nonisolated(nonsending) func enqueueOnce(_ message: MQTTOutgoingMessage) async -> Result<Void, MQTTError> {
        let token = link.perform { $0.callers.value.storeSlots.reserve() }
        return await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            var ended: Resumption<Result<Void, MQTTError>>?
            let hasDropped = link.perform(urgent: true) { machine in
                guard let waiter = waiter.take() else { return false }
                if Task.isCancelled {
                    machine.callers.value.storeSlots.release(token)
                    ended = Resumption(waiter, .failure(.cancelledWait))
                } else {
                    ended = machine.enqueue(message, waiter, token)
                }
                return machine.hasDropped
            }
            if hasDropped { reportDropped() }
            ended.take()?.resume()
        } onCancel: {
            link.perform { $0.callers.value.storeSlots.take(token) }?.resume(returning: .failure(.cancelledWait))
        }
    }

    /// Reports the messages that gave way to newer ones.
    func reportDropped() {
        var dropped = link.perform { $0.takeDropped() }
        dropped.waiters.resume()
        dropped.batches.drain { $0.resume() }
        for error in dropped.enqueued { news.tell(.undelivered(error)) }
    }

    // MARK: Room

    func waitsForRoom(_ error: MQTTError) -> Bool {
        error.code == .queueFull && configuration.queueOverflow == .wait
    }

    /// Waits until the queue has room, or the client gives up.
    nonisolated(nonsending) func waitForRoom() async throws(MQTTError) {
        let token = link.perform { $0.callers.value.roomWaiters.reserve() }
        await waiting { waiter in
            var waiter: Waiter<Void>? = waiter
            link.perform { machine in
                // Room may have come between the refusal and now.
                if !Task.isCancelled, machine.engine.owesRoomNotice, let waiter = waiter.take() {
                    machine.callers.value.roomWaiters.add(waiter, at: token)
                } else {
                    machine.callers.value.roomWaiters.release(token)
                }
            }
            waiter.take()?.resume(returning: ())
        } onCancel: {
            link.perform { $0.callers.value.roomWaiters.take(token) }?.resume(returning: ())
        }
        if Task.isCancelled { throw .cancelledWait }
        if let failure = persistence.withLock({ $0.journal })?.failure { throw failure }
    }
}

extension MQTTMachine {
    /// Returns nil if the waiter waits until the message is stored.
    mutating func enqueue(
        _ message: MQTTOutgoingMessage, _ waiter: consuming Waiter<Result<Void, MQTTError>>,
        _ token: MQTTStoreWait.Token
    ) -> Resumption<Result<Void, MQTTError>>? {
        let refusal =
            journal?.failure
            ?? hand(
                message.topic, message.payload, message.qos, message.retain, message.properties, token: Self.looseBit,
                at: MonotonicClock.now)
        if refusal == nil { publishedCount += 1 }
        guard refusal == nil, journal != nil else {
            callers.value.storeSlots.release(token)
            return Resumption(waiter, refusal.map { .failure($0) } ?? .success(()))
        }
        callers.value.storeSlots.add(waiter, at: token)
        callers.value.storeWaiters.append(MQTTStoreWait(ticket: engine.lastTicket, token: token))
        flushRecords()
        return nil
    }

    /// Gives a message to the engine; where the queue is full and the policy says so, the oldest give way.
    mutating func hand(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties, token: UInt64,
        at now: Int64
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
            .queueFull, "the message was dropped as the oldest of a full queue (queueOverflow is dropOldest)")
        if token & Self.batchBit != 0 {
            guard let batch = batches[token & ~Self.batchBit] else { return }
            batch.completed += 1
            batch.failure = batch.failure ?? error
            guard batch.isDone else { return }
            batches.remove(batch)
            if let end = batch.takeEnd() { callers.value.dropped.batches.append(end) }
        } else if token & Self.looseBit != 0 {
            callers.value.dropped.enqueued.append(error)
        } else {
            publishes.answer(token, .failure(error), into: &callers.value.dropped.waiters)
        }
    }

    /// Drops the messages in the queue whose publishers still wait: these get an error, and must not see their message
    /// sent later. Those of cancelled publishers and enqueued ones stay.
    mutating func dropUnsent() {
        var awaited: Set<UInt64> = []
        for token in engine.queuedTokens where isAwaited(token) { awaited.insert(token) }
        guard !awaited.isEmpty else { return }
        var effects = MQTTEffects()
        engine.dropQueued(where: { awaited.contains($0) }, into: &effects)
        flushRecords()
    }

    private func isAwaited(_ token: UInt64) -> Bool {
        if token & Self.batchBit != 0 {
            guard let batch = batches[token & ~Self.batchBit] else { return false }
            return batch.failure?.code != .cancelled
        }
        guard token & Self.looseBit == 0 else { return false }
        return publishes.isAwaited(token)
    }

    mutating func takeDropped() -> MQTTDroppedMessages {
        var taken = MQTTDroppedMessages()
        if callers.isMade { swap(&taken, &callers.value.dropped) }
        return taken
    }

    /// Whether messages gave way to newer ones and have not been reported yet.
    var hasDropped: Bool {
        mutating get { callers.isMade && !callers.value.dropped.isEmpty }
    }

    mutating func takeRoomWaiters() -> UniqueArray<Waiter<Void>> {
        callers.isMade ? callers.value.roomWaiters.takeAll() : UniqueArray()
    }
}

/// Callers of the queue that wait, under the link's lock.
struct MQTTQueueCallers: EmptyAtFirst, ~Copyable, Sendable {
    /// Publishers of stored messages, in the order of their tickets.
    var storeWaiters: [MQTTStoreWait] = []
    var storeSlots = WaiterSlots<Result<Void, MQTTError>>()
    /// Publishers that wait for room in the queue.
    var roomWaiters = WaiterSlots<Void>()
    /// Messages that gave way to newer ones, until they are reported after the lock is released.
    var dropped = MQTTDroppedMessages()
}

/// Messages that gave way to newer ones, until their callers are resumed after the lock is released.
struct MQTTDroppedMessages: ~Copyable, Sendable {
    var waiters = Resumptions<MQTTMachine.PublishAnswer>()
    var batches = UniqueArray<Resumption<Result<Void, MQTTError>>>()
    /// Of messages that nobody waits for.
    var enqueued: [MQTTError] = []

    var isEmpty: Bool { waiters.isEmpty && batches.isEmpty && enqueued.isEmpty }
}
