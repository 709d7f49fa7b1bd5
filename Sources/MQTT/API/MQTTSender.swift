import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization
import Transport

/// Publishes and enqueues messages of a client, and waits for their acknowledgements.
///
/// On the caller's task, any thread: messages are handed to the engine under the link's lock, in the order in which callers
/// get it. ``MQTTWaitingPublishers`` is the side under the lock.
struct MQTTSender {
    let core: MQTTClientCore

    private var link: Link<MQTTMachine> { core.link }

    // MARK: QoS 0

    /// Returns false if the outbox is full, or the queue while messages wait there.
    func publishAtMostOnce(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) throws(MQTTError) -> Bool {
        let limit = core.settings.maximumOutboxBytes
        do throws(MQTTUsageError) {
            return try link.perform { machine throws(MQTTUsageError) in
                guard machine.engine.outputCount < limit else { return false }
                _ = try machine.engine.publish(
                    topic: topic, payload: payload, qos: .atMostOnce, retain: retain, properties: properties,
                    token: MQTTWaitingPublishers.unawaitedBit, at: machine.timeForQoS0)
                return true
            }
        } catch {
            let message = MQTTOutgoingMessage(
                payload, to: topic, qos: .atMostOnce, retain: retain, properties: properties)
            return try queueAtMostOnce(message, after: error)
        }
    }

    /// Handles a QoS 0 message that the engine did not accept. If the queue is full, the oldest message is dropped for it, as
    /// the policy says; this returns false if the caller has to wait for room instead.
    private func queueAtMostOnce(
        _ message: MQTTOutgoingMessage, after error: MQTTUsageError
    ) throws(MQTTError) -> Bool {
        guard error.code == .queueFull else { throw core.explain(error) }
        // While connected a full queue is treated like a full outbox, whatever the policy.
        if core.settings.queueOverflow == .wait || link.perform({ $0.engine.phase == .connected }) {
            return false
        }
        guard core.settings.queueOverflow != .reject else { throw MQTTError(error) }
        let failure = handOver { machine, dropped in
            machine.publishers.hand(
                message, token: MQTTWaitingPublishers.unawaitedBit, &machine.engine, at: machine.timeForQoS0, &dropped)
        }
        if let failure { throw failure }
        return true
    }

    /// Waits until a QoS 0 message that was not accepted can be tried again.
    nonisolated(nonsending) func roomForAtMostOnce() async throws(MQTTError) {
        if Task.isCancelled { throw .cancelledWait }
        if let slow = await link.outboxRoom() { throw .outboxStandsStill(slow) }
        // Wait behind other QoS 0 messages in the queue, too.
        if link.perform({ $0.mayQueueQoS0 }) { try await waitForQueue(isQoS0: true) }
    }

    // MARK: QoS 1 and 2

    /// Publishes with QoS 1 or 2 and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTPublishResult {
        if core.persistence != nil { try await core.prepareStore(for: .publish) }
        while true {
            // Order and packet identifier are settled before the caller suspends.
            let answer = await wait(cancelled: .failure(.cancelledWait)) { machine, waiter, dropped in
                machine.publishers.publish(message, waiter, &machine.engine, machine.journal, &dropped)
            } take: {
                let token = $1
                $0.withdrawPassed { $0 == token }
                return $0.publishers.waiters.take(token)
            }
            do throws(MQTTError) {
                return try answer.get()
            } catch {
                guard waitsForQueue(error) else { throw error }
            }
            try await waitForQueue()
        }
    }

    // MARK: Many messages

    /// Publishes messages of any QoS, as many each time as there is room for, and waits for the last acknowledgement.
    nonisolated(nonsending) func publish(_ messages: [MQTTOutgoingMessage]) async -> MQTTClient.PublishResults {
        let batch = MQTTSendBatch(messages)
        var failures: [Int: MQTTWaitingPublishers.Answer] = [:]
        var failure: MQTTError?
        do throws(MQTTError) {
            let isAcknowledged = messages.contains { $0.qos != .atMostOnce }
            if core.persistence != nil, isAcknowledged { try await core.prepareStore(for: .publish) }
            repeat {
                if isAcknowledged, Task.isCancelled { throw .cancelledWait }
                var unsent: [MQTTMachine.Unsent] = []
                let step = handOver { machine, dropped in
                    let piece = Link<MQTTMachine>.longestPiece
                    return machine.feed(
                        batch, core.settings, upTo: machine.engine.outputCount + piece, &unsent, &dropped)
                }
                for (place, error) in unsent {
                    failures[place] = .failure(error.map(core.explain) ?? .unsentAtMostOnce)
                }
                switch step {
                case .sent, .pause: break
                case .waitForOutbox: try await roomForAtMostOnce()
                case .waitForAnswers(let few):
                    if await !batch.wait(downTo: few, under: link) { throw .cancelledWait }
                case .stopped(.queueIsFull): try await waitForQueue()
                case .stopped(.failed(let error)): throw error
                }
            } while batch.next < messages.count
            if await !batch.wait(under: link) { throw .cancelledWait }
        } catch {
            failure = error
            for place in batch.next..<messages.count { failures[place] = .failure(error) }
        }
        let answers = link.perform { machine in
            if failure?.code == .cancelled { machine.withdrawPassed { batch.contains($0) } }
            machine.publishers.batches.remove(batch, failing: failure.map { .failure($0) })
            return batch.answers
        }
        return MQTTClient.PublishResults(
            count: messages.count, success: MQTTPublishResult(.success),
            answers.merging(failures) { answer, _ in answer })
    }

    // MARK: Acknowledgements that are awaited later

    /// Publishes a message with QoS 1 or 2 whose acknowledgement is awaited later.
    nonisolated(nonsending) func publishForConfirmation(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTSendBatch {
        try await core.prepareStore(for: .publish)
        let batch = MQTTSendBatch([message])
        while true {
            if Task.isCancelled { throw .cancelledWait }
            let failure = handOver(urgent: true) { machine, dropped in
                machine.publishers.begin(batch, &machine.engine, machine.journal, &dropped)
            }
            guard let failure else { return batch }
            guard waitsForQueue(failure) else { throw failure }
            try await waitForQueue()
        }
    }

    /// Takes the only message of a batch back; false if it was sent, or has ended.
    func withdraw(_ batch: MQTTSendBatch) -> Bool { withdraw(batch.token(of: 0)) }

    /// Takes a message back that was never sent; false if it was sent, has ended, or is in a store that is closed.
    func withdraw(_ token: UInt64) -> Bool {
        var ended = link.perform { machine in
            defer { machine.flushRecords() }
            return machine.publishers.withdraw(token, &machine.engine, machine.journal)
        }
        guard var withdrawn = ended.take() else { return false }
        withdrawn.resume()
        return true
    }

    // MARK: Messages that are stored

    /// The tokens of enqueued messages: each has its own, in all clients of the process.
    private static let enqueued = Atomic<UInt64>(MQTTWaitingPublishers.unawaitedBit)

    /// Hands a message over and returns its token when it is stored, or at once if there is no store.
    nonisolated(nonsending) func enqueue(_ message: MQTTOutgoingMessage) async throws(MQTTError) -> UInt64 {
        guard message.qos != .atMostOnce else {
            throw .invalidRequest(
                "A QoS 0 message has no delivery to wait for. Publish it, or enqueue it with QoS 1 or 2.")
        }
        let token = Self.enqueued.add(1, ordering: .relaxed).newValue
        while true {
            if core.persistence != nil { try await core.prepareStore(for: .change) }
            do throws(MQTTError) {
                try await enqueueOnce(message, as: token).get()
                return token
            } catch  where waitsForQueue(error) {
                try await waitForQueue(evenIfStopped: true)
            } catch  where error.code == .disconnected {
                // A disconnect at the same time has closed the store.
            }
        }
    }

    private nonisolated(nonsending) func enqueueOnce(
        _ message: MQTTOutgoingMessage, as token: UInt64
    ) async -> Result<Void, MQTTError> {
        await wait(cancelled: .failure(.cancelledWait)) { machine, waiter, dropped in
            machine.publishers.enqueue(message, as: token, waiter, &machine.engine, machine.journal, &dropped)
        } take: {
            $0.publishers.storeWaiters?.value.take($1)
        }
    }

    // MARK: Under the lock

    /// Hands messages over under the link's lock. Their records go to the session store, and those that were dropped for them
    /// are reported once the lock is released.
    private func handOver<Result>(
        urgent: Bool = false, _ body: (inout MQTTMachine, _ dropped: inout MQTTEndedPublishers) -> Result
    ) -> Result {
        var dropped = MQTTEndedPublishers()
        let result = link.perform(urgent: urgent) { machine in
            defer { machine.flushRecords() }
            return body(&machine, &dropped)
        }
        report(&dropped)
        return result
    }

    /// The same for a caller that waits for an answer.
    private nonisolated(nonsending) func wait<Answer: Sendable>(
        cancelled: @autoclosure @Sendable () -> Answer,
        _ body: (inout MQTTMachine, consuming Waiter<Answer>, _ dropped: inout MQTTEndedPublishers) -> BegunWait<
            Answer
        >,
        take: @Sendable (inout MQTTMachine, _ token: UInt64) -> Waiter<Answer>?
    ) async -> Answer {
        var dropped = MQTTEndedPublishers()
        return await link.wait(urgent: true, cancelled: cancelled()) { machine, waiter in
            defer { machine.flushRecords() }
            return body(&machine, waiter, &dropped)
        } take: {
            take(&$0, $1)
        } afterLock: {
            report(&dropped)
        }
    }

    /// Resumes the publishers of messages that were dropped for newer ones, and reports the enqueued ones.
    private func report(_ dropped: inout MQTTEndedPublishers) {
        dropped.resume()
        for error in dropped.enqueued { core.news.tell(.undelivered(error)) }
    }

    // MARK: Room in the queue

    private func waitsForQueue(_ error: MQTTError) -> Bool {
        error.code == .queueFull && core.settings.queueOverflow == .wait
            && (error.underlying as? MQTTUsageError)?.code != .largerThanQueue
    }

    /// Waits until the queue has room, or the client stops connecting; with QoS 0 not without a connection, unless the
    /// configuration lets it wait there.
    ///
    /// - Parameter evenIfStopped: for what is enqueued, and waits for a later connection.
    nonisolated(nonsending) func waitForQueue(
        isQoS0: Bool = false, evenIfStopped: Bool = false
    ) async throws(MQTTError) {
        let failure = await link.wait(cancelled: nil) { machine, waiter in
            // The client may have stopped since the message was refused: the caller tries again, and gets the reason.
            if !evenIfStopped, machine.publishers.reasonNotSupervised != nil {
                return .ended(Resumption(waiter, nil))
            }
            // The connection may have ended since the message was refused, and with it the waits of others.
            if isQoS0, !machine.mayQueueQoS0 { return .ended(Resumption(waiter, nil)) }
            return machine.publishers.waitForQueue(waiter, machine.engine)
        } take: {
            $0.publishers.queueWaiters.take($1)
        }
        if Task.isCancelled { throw .cancelledWait }
        if let failure = failure ?? link.perform({ $0.journal?.failure }) { throw failure }
    }
}
