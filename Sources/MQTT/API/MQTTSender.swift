import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

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
                guard machine.engine.output.count < limit else { return false }
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
        var dropped: Box<MQTTEndedPublishers>?
        let failure = link.perform { machine in
            defer {
                machine.flushRecords()
                dropped = machine.publishers.takeDropped()
            }
            return machine.publishers.hand(
                message, token: MQTTWaitingPublishers.unawaitedBit, &machine.engine, at: machine.timeForQoS0)
        }
        report(dropped.take())
        if let failure { throw failure }
        return true
    }

    /// Waits until a QoS 0 message that was not accepted can be tried again.
    nonisolated(nonsending) func roomForAtMostOnce() async throws(MQTTError) {
        if Task.isCancelled { throw .cancelledWait }
        await link.room()
        // Also behind others of QoS 0 in the queue, which wait for their turn.
        if link.perform({ $0.mayQueueQoS0 }) { try await waitForRoom(isQoS0: true) }
    }

    // MARK: QoS 1 and 2

    /// Publishes with QoS 1 or 2 and waits for the last acknowledgement.
    nonisolated(nonsending) func publishAcknowledged(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> MQTTPublishResult {
        if core.persistence != nil { try await core.prepareStore(for: .publish) }
        while true {
            let token = Atomic(Waiters<MQTTWaitingPublishers.Answer>.noToken)
            let answer = await waiting { waiter in
                begin(message, waiter, token)
            } onCancel: {
                link.perform { $0.publishers.cancel(token) }?.resume(returning: .failure(.cancelledWait))
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
    /// - Parameter token: gets the token of the waiter.
    private func begin(
        _ message: MQTTOutgoingMessage, _ waiter: consuming Waiter<MQTTWaitingPublishers.Answer>,
        _ token: borrowing Atomic<UInt64>
    ) {
        var waiter: Waiter<MQTTWaitingPublishers.Answer>? = waiter
        var ended: Resumption<MQTTWaitingPublishers.Answer>?
        let dropped = link.perform(urgent: true) { machine -> Box<MQTTEndedPublishers>? in
            guard let waiter = waiter.take() else { return nil }
            ended = machine.publishers.publish(message, waiter, token, &machine.engine, machine.journal)
            machine.flushRecords()
            return machine.publishers.takeDropped()
        }
        report(dropped)
        ended.take()?.resume()
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
                var dropped: Box<MQTTEndedPublishers>?
                let step = link.perform { machine in
                    let piece = Link<MQTTMachine>.longestPiece
                    let step = machine.feed(
                        batch, core.settings, upTo: machine.engine.output.count + piece, &unsent)
                    machine.flushRecords()
                    dropped = machine.publishers.takeDropped()
                    return step
                }
                report(dropped.take())
                for (place, error) in unsent {
                    failures[place] = .failure(error.map(core.explain) ?? .unsentAtMostOnce)
                }
                switch step {
                case .sent, .pause: break
                case .waitForOutbox: try await roomForAtMostOnce()
                case .waitForQueue: try await waitForRoom()
                case .waitForAnswers(let few):
                    if await !batch.wait(downTo: few, under: link) { throw .cancelledWait }
                case .failed(let error): throw error
                }
            } while batch.next < messages.count
            if await !batch.wait(under: link) { throw .cancelledWait }
        } catch {
            failure = error
            for place in batch.next..<messages.count { failures[place] = .failure(error) }
        }
        let answers = link.perform { machine in
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
            var dropped: Box<MQTTEndedPublishers>?
            let failure = link.perform(urgent: true) { machine in
                let failure = machine.publishers.begin(batch, &machine.engine, machine.journal)
                machine.flushRecords()
                dropped = machine.publishers.takeDropped()
                return failure
            }
            report(dropped.take())
            guard let failure else { return batch }
            guard waitsForRoom(failure) else { throw failure }
            try await waitForRoom()
        }
    }

    /// Waits for the acknowledgement of the only message of a batch. Any number of callers may wait.
    nonisolated(nonsending) func confirm(_ batch: MQTTSendBatch) async throws(MQTTError) -> MQTTPublishResult {
        if await !batch.wait(under: link) { throw .cancelledWait }
        return try link.perform { _ in batch.answers[0] ?? .success(MQTTPublishResult(.success)) }.get()
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
            } catch  where waitsForRoom(error) {
                try await waitForRoom()
            } catch  where error.code == .disconnected {
                // A disconnect at the same time has closed the store.
            }
        }
    }

    private nonisolated(nonsending) func enqueueOnce(
        _ message: MQTTOutgoingMessage, as messageToken: UInt64
    ) async -> Result<Void, MQTTError> {
        let token = Atomic(Waiters<Result<Void, MQTTError>>.noToken)
        return await waiting { waiter in
            var waiter: Waiter<Result<Void, MQTTError>>? = waiter
            var ended: Resumption<Result<Void, MQTTError>>?
            let dropped = link.perform(urgent: true) { machine -> Box<MQTTEndedPublishers>? in
                guard let waiter = waiter.take() else { return nil }
                ended = machine.publishers.enqueue(
                    message, as: messageToken, waiter, token, &machine.engine, machine.journal)
                machine.flushRecords()
                return machine.publishers.takeDropped()
            }
            report(dropped)
            ended.take()?.resume()
        } onCancel: {
            link.perform { $0.publishers.cancelStoreWait(token) }?.resume(returning: .failure(.cancelledWait))
        }
    }

    /// Resumes the publishers of messages that were dropped for newer ones, and reports the enqueued ones.
    private func report(_ dropped: consuming Box<MQTTEndedPublishers>?) {
        guard var dropped else { return }
        dropped.value.resume()
        for error in dropped.value.enqueued { core.news.tell(.undelivered(error)) }
    }

    // MARK: Room

    private func waitsForRoom(_ error: MQTTError) -> Bool {
        error.code == .queueFull && core.settings.queueOverflow == .wait
            && (error.underlying as? MQTTUsageError)?.code != .largerThanQueue
    }

    /// Waits until the queue has room, or the client stops connecting; with QoS 0 not without a connection, unless the
    /// configuration lets it wait there.
    nonisolated(nonsending) func waitForRoom(isQoS0: Bool = false) async throws(MQTTError) {
        let token = Atomic(Waiters<Void>.noToken)
        await waiting { waiter in
            var waiter: Waiter<Void>? = waiter
            let returned = link.perform { machine -> Waiter<Void>? in
                guard let waiter = waiter.take() else { return nil }
                // The connection may have ended since the message was refused, and with it the waits of others.
                if isQoS0, !machine.mayQueueQoS0 { return waiter }
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

/// Publishers whose messages were dropped, or whose client stops. ``MQTTWaitingPublishers`` takes them out under the
/// link's lock, and the thread that has released it resumes them.
struct MQTTEndedPublishers: ~Copyable, Sendable {
    var waiters = UniqueArray<Resumption<MQTTWaitingPublishers.Answer>>()
    var batches = UniqueArray<Resumption<Bool>>()
    /// Publishers that try again.
    var rooms = UniqueArray<Waiter<Void>>()
    /// For messages that no caller waits for.
    var enqueued: [MQTTError] = []

    /// Resumes the callers; without the lock.
    mutating func resume() {
        rooms.resume(returning: ())
        waiters.drain { $0.resume() }
        batches.drain { $0.resume() }
    }
}
