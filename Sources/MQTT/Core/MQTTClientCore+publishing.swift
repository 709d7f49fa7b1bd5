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
                // The time of QoS 0 packets only serves keep alive, which the flush refreshes.
                _ = try machine.engine.publish(
                    topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties,
                    at: MonotonicClock.now)
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
            let now = MonotonicClock.now
            next = try link.perform { machine throws(MQTTError) in
                var index = next
                while index < messages.endIndex, machine.engine.output.count < limit {
                    do throws(MQTTMisuse) {
                        let message = messages[index]
                        _ = try machine.engine.publish(
                            topic: message.topic, payload: message.payload, qos: .atMostOnce, retain: message.retain,
                            properties: message.properties, at: now)
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
    ) async throws(MQTTError) -> MQTTReasonCode {
        let callerID = callerIDs.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<MQTTMachine.PublishAnswer, Never>) in
                // Order and packet identifier are settled here, before the caller suspends.
                let refusal = link.perform(urgent: true) { machine -> MQTTError? in
                    machine.publish(message, waiter, callerID: callerID, at: MonotonicClock.now)
                }
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
                    if !batch.isDone { machine.batches[id] = batch }
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
        _ message: MQTTOutgoingMessage, _ waiter: UnsafeContinuation<PublishAnswer, Never>, callerID: UInt64,
        at now: Int64
    ) -> MQTTError? {
        if publishes.wasCancelledEarly(callerID) { return .cancelledWait }
        let token = publishes.add(waiter, callerID: callerID)
        do throws(MQTTMisuse) {
            _ = try engine.publish(
                topic: message.topic, payload: message.payload, qos: message.qos, retain: message.retain,
                properties: message.properties, token: token, at: now)
            publishedCount += 1
            return nil
        } catch {
            _ = publishes.take(token)
            return MQTTError(error)
        }
    }
}
