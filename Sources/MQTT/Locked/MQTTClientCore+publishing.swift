import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Returns false if the outbox is full, or the queue while messages wait there.
    func publishAtMostOnce(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) throws(MQTTError) -> Bool {
        let limit = configuration.maximumOutboxBytes
        do throws(MQTTUsageError) {
            return try link.perform { machine throws(MQTTUsageError) in
                guard machine.engine.output.count < limit else { return false }
                _ = try machine.engine.publish(
                    topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties,
                    token: MQTTMachine.looseBit, at: machine.timeForQoS0)
                machine.publishedCount += 1
                return true
            }
        } catch {
            let message = MQTTOutgoingMessage(
                topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties)
            return try queueAtMostOnce(message, after: error)
        }
    }

    /// A QoS 0 message was refused. If the queue was full, where it waits for subscriptions or for a connection, this
    /// returns false for a message that has to wait for room, or puts it in the place of the oldest.
    private func queueAtMostOnce(
        _ message: MQTTOutgoingMessage, after refusal: MQTTUsageError
    ) throws(MQTTError) -> Bool {
        guard refusal.code == .queueFull else { throw explain(refusal) }
        // With a connection a full queue is no more than a full outbox, whatever the policy.
        if configuration.queueOverflow == .wait || link.perform({ $0.engine.phase == .connected }) { return false }
        guard configuration.queueOverflow == .dropOldest else { throw MQTTError(refusal) }
        let failure = link.perform { machine in
            let failure = machine.hand(
                message.topic, message.payload, .atMostOnce, message.retain, message.properties,
                token: MQTTMachine.looseBit, at: machine.timeForQoS0)
            if failure == nil { machine.publishedCount += 1 }
            return failure
        }
        reportDropped()
        if let failure { throw failure }
        return true
    }

    /// What a caller is told: if the client does not try to be connected, why not.
    func explain(_ refusal: MQTTUsageError) -> MQTTError {
        guard refusal.code == .notConnected, let reason = link.perform({ $0.refusal }) else {
            return MQTTError(refusal)
        }
        return reason.value
    }

    /// Waits until a QoS 0 message that was not taken can be tried again.
    nonisolated(nonsending) func roomForAtMostOnce() async throws(MQTTError) {
        if Task.isCancelled { throw .cancelledWait }
        await link.room()
        if link.perform({ !$0.engine.messagesMayLeave }) { try await waitForRoom() }
    }

    /// Publishes a run of QoS 0 messages, as many under each lock as the outbox takes.
    nonisolated(nonsending) func publishAtMostOnce(_ messages: ArraySlice<MQTTOutgoingMessage>) async throws(MQTTError)
    {
        var next = messages.startIndex
        while true {
            let (end, refusal) = publishRunAtMostOnce(messages, from: next)
            next = end
            if let refusal, try queueAtMostOnce(messages[next], after: refusal) { next += 1 }
            if next == messages.endIndex { return }
            try await roomForAtMostOnce()
        }
    }

    /// Publishes messages under one lock; returns where the next one begins, and why it was refused if it was.
    private func publishRunAtMostOnce(_ messages: ArraySlice<MQTTOutgoingMessage>, from start: Int) -> (
        Int, MQTTUsageError?
    ) {
        let limit = configuration.maximumOutboxBytes
        return link.perform { machine in
            var index = start
            defer { machine.publishedCount += index - start }
            while index < messages.endIndex, machine.engine.output.count < limit {
                index = machine.engine.publishRunAtMostOnce(messages, from: index, outputLimit: limit)
                guard index < messages.endIndex, machine.engine.output.count < limit else { break }
                do throws(MQTTUsageError) {
                    let message = messages[index]
                    _ = try machine.engine.publish(
                        topic: message.topic, payload: message.payload, qos: .atMostOnce, retain: message.retain,
                        properties: message.properties, token: MQTTMachine.looseBit, at: machine.timeForQoS0)
                } catch {
                    return (index, error)
                }
                index += 1
            }
            return (index, nil)
        }
    }

    /// Publishes with QoS 1 or 2 and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTPublishResult {
        if configuration.sessionStore != nil { try await prepareStore() }
        while true {
            if Task.isCancelled { throw .cancelledWait }
            let word = await waiting { waiter in
                publish(
                    message.payload, to: message.topic, qos: message.qos, retain: message.retain,
                    properties: message.properties, waiter)
            }
            guard let token = word.token else { return MQTTPublishResult(MQTTReasonCode(rawValue: word.code)) }
            do throws(MQTTError) {
                return try await answer(to: token).get()
            } catch {
                guard waitsForRoom(error) else { throw error }
            }
            try await waitForRoom()
        }
    }

    /// Begins to publish with QoS 1 or 2: order and packet identifier are settled before this returns.
    func publish(
        _ payload: [UInt8], to topic: String, qos: QoS, retain: Bool, properties: MQTTProperties,
        _ waiter: consuming Waiter<QuickAnswer>
    ) {
        var waiter: Waiter<QuickAnswer>? = waiter
        var ended: Resumption<QuickAnswer>?
        let hasDropped = link.perform(urgent: true) { machine in
            guard let waiter = waiter.take() else { return false }
            ended = machine.publish(payload, topic, qos, retain, properties, waiter)
            return machine.hasDropped
        }
        if hasDropped { reportDropped() }
        ended.take()?.resume()
    }

    /// Publishes a run of QoS 1 and 2 messages with one wait.
    nonisolated(nonsending) func publishAcknowledged(_ messages: [MQTTOutgoingMessage]) async throws(MQTTError) {
        if configuration.sessionStore != nil { try await prepareStore() }
        let id = link.perform { machine in
            defer { machine.nextBatchID += 1 }
            return machine.nextBatchID
        }
        let batch = MQTTPublishBatch(messages, id: id)
        let result = await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            let end = link.perform { machine -> Resumption<Result<Void, MQTTError>>? in
                batch.waiter = waiter.take()
                if Task.isCancelled { batch.failure = .cancelledWait }
                batch.failure = batch.failure ?? machine.refusal?.value
                if batch.failure == nil { machine.publishedCount += messages.count }
                machine.feed(batch, at: MonotonicClock.now)
                machine.flushRecords()
                if batch.isDone { return batch.takeEnd() }
                machine.batches.add(batch)
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
}

extension MQTTMachine {
    /// Hands one message to the engine. Returns the waiter with what it is resumed with at once, or nil if it waits.
    mutating func publish(
        _ payload: [UInt8], _ topic: String, _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties,
        _ waiter: consuming Waiter<QuickAnswer>
    ) -> Resumption<QuickAnswer>? {
        let now = MonotonicClock.now
        let token = publishes.add(waiter, at: now)
        let isConnected = engine.phase == .connected
        if !isConnected, journal?.failure == nil, let refusal {
            return publishes.answerAtOnce(token, .failure(refusal.value))
        }
        if let refusal = journal?.failure ?? hand(topic, payload, qos, retain, properties, token: token, at: now) {
            return publishes.answerAtOnce(token, .failure(refusal))
        }
        publishedCount += 1
        flushRecords()
        // Without a connection there is no telling how long it takes.
        return isConnected ? nil : publishes.sendOn(token)
    }
}

extension MQTTClientCore: AnswerDesk {
    var cancelledAnswer: MQTTMachine.PublishAnswer { .failure(.cancelledWait) }

    func withWaiters<Result: ~Copyable>(_ body: (inout WaiterTable<MQTTMachine.PublishAnswer>) -> Result) -> Result {
        link.perform { body(&$0.publishes) }
    }
}
