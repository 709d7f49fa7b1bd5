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
            let callerID = callerIDs.add(1, ordering: .relaxed).newValue
            let result = await enqueueOnce(message, callerID)
            if case .failure(let error) = result, waitsForRoom(error) {
                try await waitForRoom()
            } else {
                return try result.get()
            }
        }
    }

    private nonisolated(nonsending) func enqueueOnce(
        _ message: MQTTOutgoingMessage, _ callerID: UInt64
    ) async -> Result<Void, MQTTError> {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                let cancelled = Task.isCancelled
                let (answer, dropped) = link.perform(urgent: true) { machine in
                    let answer = cancelled ? .failure(.cancelledWait) : machine.enqueue(message, waiter, callerID)
                    return (answer, machine.takeDropped())
                }
                for message in dropped { message.resume(self) }
                if let answer { waiter.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = link.perform { machine -> UnsafeContinuation<Result<Void, MQTTError>, Never>? in
                guard let index = machine.storeWaiters.firstIndex(where: { $0.callerID == callerID }) else {
                    return nil
                }
                return machine.storeWaiters.remove(at: index).waiter
            }
            waiter?.resume(returning: .failure(.cancelledWait))
        }
    }

    // MARK: Room

    func waitsForRoom(_ error: MQTTError) -> Bool {
        error.code == .queueFull && configuration.queueOverflow == .wait
    }

    /// Waits until the queue has room, or the client gives up.
    nonisolated(nonsending) func waitForRoom() async throws(MQTTError) {
        let callerID = callerIDs.add(1, ordering: .relaxed).newValue
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<Void, Never>) in
                let waits = link.perform { machine in
                    // Room may have come between the refusal and now.
                    guard !Task.isCancelled, machine.engine.owesRoomNotice else { return false }
                    machine.roomWaiters[callerID] = waiter
                    return true
                }
                if !waits { waiter.resume() }
            }
        } onCancel: {
            link.perform { $0.roomWaiters.removeValue(forKey: callerID) }?.resume()
        }
        if Task.isCancelled { throw .cancelledWait }
        if let failure = persistence.withLock({ $0.journal })?.failure { throw failure }
    }
}

extension MQTTMachine {
    /// Returns nil if the waiter is kept until the message is stored.
    mutating func enqueue(
        _ message: MQTTOutgoingMessage, _ waiter: UnsafeContinuation<Result<Void, MQTTError>, Never>, _ callerID: UInt64
    ) -> Result<Void, MQTTError>? {
        if let failure = journal?.failure { return .failure(failure) }
        if let refusal = hand(
            message.topic, message.payload, message.qos, message.retain, message.properties, token: Self.looseBit,
            at: MonotonicClock.now)
        {
            return .failure(refusal)
        }
        publishedCount += 1
        guard journal != nil else { return .success(()) }
        storeWaiters.append(MQTTStoreWaiter(ticket: engine.lastTicket, callerID: callerID, waiter: waiter))
        flushRecords()
        return nil
    }

    /// Gives a message to the engine; where the queue is full and the policy says so, the oldest give way.
    mutating func hand(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties, token: UInt64,
        at now: Int64
    ) -> MQTTError? {
        while true {
            do throws(MQTTMisuse) {
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
            if let end = batch.takeEnd() { dropped.append(.batch(end)) }
        } else if token & Self.looseBit != 0 {
            dropped.append(.enqueued(error))
        } else {
            var resumptions = Resumptions<MQTTMachine.PublishAnswer>()
            publishes.answer(token, .failure(error), into: &resumptions)
            dropped.append(.publish(resumptions))
        }
    }

    mutating func takeDropped() -> [MQTTDroppedMessage] {
        guard !dropped.isEmpty else { return [] }
        defer { dropped = [] }
        return dropped
    }
}

/// Whose message gave way to a newer one, to be told after the lock is released.
enum MQTTDroppedMessage: Sendable {
    case publish(Resumptions<MQTTMachine.PublishAnswer>)
    case batch(MQTTPublishBatchEnd)
    case enqueued(MQTTError)

    func resume(_ core: MQTTClientCore) {
        switch self {
        case .publish(let waiters): waiters.resume()
        case .batch(let end): end.resume()
        case .enqueued(let error): core.news.tell(.undelivered(error))
        }
    }
}
