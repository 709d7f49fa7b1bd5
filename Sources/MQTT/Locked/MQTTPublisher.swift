import MQTTCore
import Messaging
import Synchronization
import Transport

/// Publishing and enqueueing, from any thread: on the caller's task, which takes the link's lock for a moment, hands the
/// message to the engine under it, and waits without it. ``MQTTPublishers`` is the side under the lock.
struct MQTTPublisher {
    let core: MQTTClientCore

    private var link: Link<MQTTMachine> { core.link }

    // MARK: QoS 0

    /// Returns false if the outbox is full, or the queue while messages wait there.
    func publishAtMostOnce(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) throws(MQTTError) -> Bool {
        let limit = core.settings.options.maximumOutboxBytes
        do throws(MQTTUsageError) {
            return try link.perform { machine throws(MQTTUsageError) in
                guard machine.engine.output.count < limit else { return false }
                _ = try machine.engine.publish(
                    topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties,
                    token: MQTTPublishers.unawaitedBit, at: machine.timeForQoS0)
                return true
            }
        } catch {
            let message = MQTTOutgoingMessage(
                payload, to: topic, qos: .atMostOnce, retain: retain, properties: properties)
            return try queueAtMostOnce(message, after: error)
        }
    }

    /// Publishes QoS 0 messages over one connection, as many under each lock as the outbox takes.
    nonisolated(nonsending) func publishAtMostOnce(_ messages: [MQTTOutgoingMessage]) async -> MQTTClient.PublishResults
    {
        var next = 0
        var connection: UInt32?
        var answers: [Int: MQTTPublishers.Answer] = [:]
        do throws(MQTTError) {
            while true {
                let refusal = try publishRunAtMostOnce(messages[...], from: &next, over: &connection)
                do throws(MQTTError) {
                    if let refusal, try queueAtMostOnce(messages[next], after: refusal) { next += 1 }
                } catch  where error.code != .notConnected {
                    // The others may be sent all the same.
                    answers[next] = .failure(error)
                    next += 1
                    if next < messages.count { continue }
                }
                if next == messages.count { break }
                try await roomForAtMostOnce()
            }
        } catch {
            for place in next..<messages.count { answers[place] = .failure(error) }
        }
        return MQTTClient.PublishResults(count: messages.count, success: MQTTPublishResult(.success), answers)
    }

    /// Publishes messages under one lock; returns why the next one was refused if it was.
    ///
    /// - Parameter connection: the engine's number of the connection that the first ones were published over.
    /// - Throws: if it has ended, unless messages wait for the next one.
    private func publishRunAtMostOnce(
        _ messages: ArraySlice<MQTTOutgoingMessage>, from next: inout Int, over connection: inout UInt32?
    ) throws(MQTTError) -> MQTTUsageError? {
        let limit = core.settings.options.maximumOutboxBytes
        let queues = core.settings.options.queuesQoS0WhileOffline
        var index = next
        var number = connection
        defer { (next, connection) = (index, number) }
        return try link.perform { machine throws(MQTTError) in
            if machine.engine.phase == .connected { number = number ?? machine.engine.connection }
            if let number, !queues, machine.engine.phase != .connected || machine.engine.connection != number {
                throw .unsentAtMostOnce
            }
            while index < messages.endIndex, machine.engine.output.count < limit {
                do throws(MQTTUsageError) {
                    let message = messages[index]
                    _ = try machine.engine.publish(
                        topic: message.topic, payload: message.payload, qos: .atMostOnce, retain: message.retain,
                        properties: message.properties, token: MQTTPublishers.unawaitedBit, at: machine.timeForQoS0)
                } catch {
                    return error
                }
                index += 1
            }
            return nil
        }
    }

    /// A QoS 0 message was refused. If the queue is full, where it waits for subscriptions or for a connection, this
    /// returns false for a message that has to wait for room, or drops the oldest one for it.
    private func queueAtMostOnce(
        _ message: MQTTOutgoingMessage, after refusal: MQTTUsageError
    ) throws(MQTTError) -> Bool {
        guard refusal.code == .queueFull else { throw core.explain(refusal) }
        // While connected a full queue is treated like a full outbox, whatever the policy.
        if core.settings.options.queueOverflow == .wait || link.perform({ $0.engine.phase == .connected }) {
            return false
        }
        guard core.settings.options.queueOverflow == .dropOldest else { throw MQTTError(refusal) }
        let failure = link.perform { machine in
            machine.publishers.hand(
                message.topic, message.payload, .atMostOnce, message.retain, message.properties,
                token: MQTTPublishers.unawaitedBit, &machine.engine, at: machine.timeForQoS0)
        }
        reportDropped()
        if let failure { throw failure }
        return true
    }

    /// Waits until a QoS 0 message that was not accepted can be tried again.
    nonisolated(nonsending) func roomForAtMostOnce() async throws(MQTTError) {
        if Task.isCancelled { throw .cancelledWait }
        await link.room()
        if link.perform({ !$0.engine.messagesMayLeave }) { try await waitForRoom() }
    }

    // MARK: QoS 1 and 2

    /// Publishes with QoS 1 or 2 and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTPublishResult {
        if core.persistence != nil { try await core.prepareStore() }
        while true {
            let token = Atomic(Waiters<MQTTPublishers.Answer>.noToken)
            let answer = await waiting { waiter in
                publish(
                    message.payload, to: message.topic, qos: message.qos, retain: message.retain,
                    properties: message.properties, waiter, token)
            } onCancel: {
                cancel(token)
            }
            do throws(MQTTError) {
                return try answer.get()
            } catch {
                guard waitsForRoom(error) else { throw error }
            }
            try await waitForRoom()
        }
    }

    /// Begins to publish with QoS 1 or 2: order and packet identifier are settled before this returns.
    ///
    /// - Parameter token: gets the token of the waiter, which ``cancel(_:)`` uses.
    func publish(
        _ payload: [UInt8], to topic: String, qos: QoS, retain: Bool, properties: MQTTProperties,
        _ waiter: consuming Waiter<MQTTPublishers.Answer>, _ token: borrowing Atomic<UInt64>
    ) {
        var waiter: Waiter<MQTTPublishers.Answer>? = waiter
        var ended: Resumption<MQTTPublishers.Answer>?
        let hasDropped = link.perform(urgent: true) { machine in
            guard let waiter = waiter.take() else { return false }
            ended = machine.publishers.publish(
                payload, topic, qos, retain, properties, waiter, token, &machine.engine, machine.journal)
            machine.flushRecords()
            return machine.publishers.hasDropped
        }
        if hasDropped { reportDropped() }
        ended.take()?.resume()
    }

    /// Ends the wait of a publisher whose task was cancelled, and not the exchange.
    func cancel(_ token: borrowing Atomic<UInt64>) {
        link.perform { $0.publishers.cancel(token) }?.resume(returning: .failure(.cancelledWait))
    }

    /// Publishes messages of any QoS, and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ messages: [MQTTOutgoingMessage]
    ) async -> MQTTClient.PublishResults {
        let outputLimit = core.settings.options.maximumOutboxBytes
        let id = link.perform { $0.publishers.batches.nextID() }
        let batch = MQTTPublishBatch(messages, id: id, outputLimit: outputLimit)
        do throws(MQTTError) {
            if core.persistence != nil { try await core.prepareStore() }
            repeat {
                try await publish(batch)
                if link.perform({ _ in batch.isComplete }) { break }
                try await roomForAtMostOnce()
            } while true
        } catch {
            link.perform { _ in batch.failure = batch.failure ?? error }
        }
        return link.perform { _ in batch.results() }()
    }

    /// Publishes a batch until it is complete, or its next message waits for room in the outbox.
    private nonisolated(nonsending) func publish(_ batch: MQTTPublishBatch) async throws(MQTTError) {
        let result = await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            let end = link.perform { machine -> Resumption<Result<Void, MQTTError>>? in
                batch.waiter = waiter.take()
                if Task.isCancelled { batch.failure = .cancelledWait }
                batch.failure =
                    batch.failure
                    ?? MQTTJournal.refusal(machine.publishers.refusal, machine.journal, machine.engine)
                batch.feed(&machine.engine, at: core.loop.now)
                machine.flushRecords()
                if batch.isDone { return batch.takeEnd() }
                machine.publishers.batches.add(batch)
                return nil
            }
            end?.resume()
        } onCancel: {
            let end = link.perform { _ in
                batch.failure = .cancelledWait
                return batch.takeEnd()
            }
            end?.resume()
        }
        return try result.get()
    }

    /// Publishes a message with QoS 1 or 2 whose acknowledgement is awaited later.
    nonisolated(nonsending) func publishForConfirmation(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTPublishBatch {
        try await core.prepareStore()
        let id = link.perform { $0.publishers.batches.nextID() }
        let batch = MQTTPublishBatch(
            [message], id: id, outputLimit: core.settings.options.maximumOutboxBytes)
        while true {
            if Task.isCancelled { throw .cancelledWait }
            let (failure, hasDropped) = link.perform(urgent: true) { machine in
                let failure = machine.publishers.begin(batch, &machine.engine, machine.journal)
                machine.flushRecords()
                return (failure, machine.publishers.hasDropped)
            }
            if hasDropped { reportDropped() }
            guard let failure else { return batch }
            guard waitsForRoom(failure) else { throw failure }
            try await waitForRoom()
        }
    }

    /// Waits for the acknowledgement of the only message of a batch. Any number of callers may wait.
    nonisolated(nonsending) func confirm(_ batch: MQTTPublishBatch) async throws(MQTTError) -> MQTTPublishResult {
        let token = Atomic(Waiters<Result<Void, MQTTError>>.noToken)
        let result = await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            let answer = link.perform { _ -> Result<Void, MQTTError>? in
                if let answer = batch.answer ?? (Task.isCancelled ? .failure(.cancelledWait) : nil) { return answer }
                if let waiter = waiter.take() {
                    token.store(batch.confirmations.add(waiter), ordering: .relaxed)
                }
                return nil
            }
            if let answer { waiter.take()?.resume(returning: answer) }
        } onCancel: {
            link.perform { _ in batch.confirmations.take(token.load(ordering: .relaxed)) }?
                .resume(returning: .failure(.cancelledWait))
        }
        try result.get()
        return try link.perform { _ in batch.result }.get()
    }

    /// Hands a message over and returns when it is stored, or at once if there is no store.
    nonisolated(nonsending) func enqueue(_ message: MQTTOutgoingMessage) async throws(MQTTError) {
        guard message.qos != .atMostOnce else {
            throw .invalidRequest(
                "A QoS 0 message has no delivery to wait for. Publish it, or enqueue it with QoS 1 or 2.")
        }
        while true {
            if core.persistence != nil { try await core.prepareStore() }
            do throws(MQTTError) {
                return try await enqueueOnce(message).get()
            } catch  where waitsForRoom(error) {
                try await waitForRoom()
            } catch  where error.code == .disconnected {
                // A disconnect at the same time has closed the store.
            }
        }
    }

    private nonisolated(nonsending) func enqueueOnce(_ message: MQTTOutgoingMessage) async -> Result<Void, MQTTError> {
        let token = Atomic(Waiters<Result<Void, MQTTError>>.noToken)
        return await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            var ended: Resumption<Result<Void, MQTTError>>?
            let hasDropped = link.perform(urgent: true) { machine in
                guard let waiter = waiter.take() else { return false }
                ended = machine.publishers.enqueue(message, waiter, token, &machine.engine, machine.journal)
                machine.flushRecords()
                return machine.publishers.hasDropped
            }
            if hasDropped { reportDropped() }
            ended.take()?.resume()
        } onCancel: {
            link.perform { $0.publishers.cancelStoreWait(token) }?.resume(returning: .failure(.cancelledWait))
        }
    }

    /// Resumes the publishers of messages that were dropped for newer ones, and reports the enqueued ones.
    func reportDropped() {
        var dropped = link.perform { $0.publishers.takeDropped() }
        dropped.resume()
        for error in dropped.enqueued { core.news.tell(.undelivered(error)) }
    }

    // MARK: Room

    func waitsForRoom(_ error: MQTTError) -> Bool {
        error.code == .queueFull && core.settings.options.queueOverflow == .wait
    }

    /// Waits until the queue has room, or the client stops connecting.
    nonisolated(nonsending) func waitForRoom() async throws(MQTTError) {
        let token = Atomic(Waiters<Void>.noToken)
        await waiting { waiter in
            var waiter: Waiter<Void>? = waiter
            let returned = link.perform { machine -> Waiter<Void>? in
                guard let waiter = waiter.take() else { return nil }
                return machine.publishers.waitForRoom(waiter, token, machine.engine)
            }
            returned?.resume(returning: ())
        } onCancel: {
            link.perform { $0.publishers.cancelRoomWait(token) }?.resume(returning: ())
        }
        if Task.isCancelled { throw .cancelledWait }
        if let failure = link.perform({ $0.journal?.failure }) { throw failure }
    }
}
