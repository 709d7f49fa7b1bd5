import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Returns false if the outbox is full.
    func publishAtMostOnce(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) throws(MQTTError) -> Bool {
        let limit = configuration.outboxLimit
        return try link.perform { machine throws(MQTTError) in
            guard machine.engine.output.count < limit else { return false }
            do throws(MQTTMisuse) {
                _ = try machine.engine.publish(
                    topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties,
                    at: machine.timeForQoS0)
            } catch {
                throw MQTTError(error)
            }
            machine.publishedCount += 1
            return true
        }
    }

    /// Publishes a run of QoS 0 messages, as many under each lock as the outbox takes.
    nonisolated(nonsending) func publishAtMostOnce(_ messages: ArraySlice<MQTTOutgoingMessage>) async throws(MQTTError)
    {
        let limit = configuration.outboxLimit
        var next = messages.startIndex
        while true {
            next = try link.perform { machine throws(MQTTError) in
                var index = next
                while index < messages.endIndex, machine.engine.output.count < limit {
                    index = machine.engine.publishRunAtMostOnce(messages, from: index, outputLimit: limit)
                    guard index < messages.endIndex, machine.engine.output.count < limit else { break }
                    do throws(MQTTMisuse) {
                        let message = messages[index]
                        _ = try machine.engine.publish(
                            topic: message.topic, payload: message.payload, qos: .atMostOnce, retain: message.retain,
                            properties: message.properties, at: machine.timeForQoS0)
                    } catch {
                        throw MQTTError(error)
                    }
                    index += 1
                }
                machine.publishedCount += index - next
                return index
            }
            if next == messages.endIndex { return }
            if Task.isCancelled { throw .cancelledWait }
            await link.room()
        }
    }

    /// Publishes with QoS 1 or 2 and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTAnswer {
        if configuration.sessionStore != nil { try await prepareStore() }
        while true {
            do throws(MQTTError) {
                return try await publishOnce(message)
            } catch {
                guard waitsForRoom(error) else { throw error }
            }
            try await waitForRoom()
        }
    }

    private nonisolated(nonsending) func publishOnce(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTAnswer {
        let callerID = callerIDs.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<MQTTMachine.PublishAnswer, Never>) in
                // Order and packet identifier are settled here, before the caller suspends.
                let (refusal, dropped) = link.perform(urgent: true) { machine in
                    let refusal = machine.publish(message, waiter, callerID: callerID)
                    return (refusal, machine.takeDropped())
                }
                for message in dropped { message.resume(self) }
                if let refusal { waiter.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            let waiter = link.perform { $0.publishes.cancel(callerID) }
            waiter?.resume(returning: .failure(.cancelledWait))
        }
        if Task.isCancelled { link.perform { $0.publishes.forget(callerID) } }
        return try result.get()
    }

    /// Publishes a run of QoS 1 and 2 messages with one wait.
    nonisolated(nonsending) func publishAcknowledged(_ messages: [MQTTOutgoingMessage]) async throws(MQTTError) {
        if configuration.sessionStore != nil { try await prepareStore() }
        let id = link.perform { machine in
            defer { machine.nextBatchID += 1 }
            return machine.nextBatchID
        }
        let batch = MQTTPublishBatch(messages, id: id)
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<Result<Void, MQTTError>, Never>) in
                let isDone = link.perform { machine in
                    batch.waiter = waiter
                    if Task.isCancelled { batch.failure = .cancelledWait }
                    machine.publishedCount += messages.count
                    machine.feed(batch, at: MonotonicClock.now)
                    machine.flushRecords()
                    if !batch.isDone { machine.batches.add(batch) }
                    return batch.isDone
                }
                if isDone { batch.finish() }
            }
        } onCancel: {
            let waiter = link.perform { _ in
                batch.failure = batch.failure ?? .cancelledWait
                defer { batch.waiter = nil }
                return batch.waiter
            }
            waiter?.resume(returning: .failure(.cancelledWait))
        }
        return try result.get()
    }
}

extension MQTTMachine {
    /// Hands one message to the engine and registers its waiter; returns why it cannot be sent.
    mutating func publish(
        _ message: MQTTOutgoingMessage, _ waiter: UnsafeContinuation<PublishAnswer, Never>, callerID: UInt64
    ) -> MQTTError? {
        if publishes.wasCancelledEarly(callerID) { return .cancelledWait }
        if let failure = journal?.failure { return failure }
        let token = publishes.add(waiter, callerID: callerID)
        if let refusal = hand(message, token: token) {
            _ = publishes.take(token)
            return refusal
        }
        publishedCount += 1
        flushRecords()
        return nil
    }
}
