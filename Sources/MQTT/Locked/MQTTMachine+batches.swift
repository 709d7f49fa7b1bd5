import MQTTCore
import MessagingShell
import MessagingWire

typealias MQTTSendBatch = SendBatch<MQTTOutgoingMessage, MQTTWaitingPublishers.Answer>

/// Handing the messages of an array to the engine, for the task that publishes them and while it waits for answers. Under the
/// link's lock.
extension MQTTMachine {
    typealias Step = SendStep<Stop>

    /// Why the engine gets no more messages of a batch at present, apart from the reasons that both clients have.
    enum Stop {
        /// Wait for room in it.
        case queueIsFull
        /// The messages that are left fail.
        case failed(MQTTError)
    }

    /// A message that is not sent, and the engine's reason; nil for QoS 0 without the connection of the batch. The errors for
    /// callers are made without the lock.
    typealias Unsent = (place: Int, error: MQTTUsageError?)

    /// Continues the batches that have received the answers they were waiting for, and takes out the tasks that must act
    /// themselves.
    ///
    /// The task could do this itself, when the loop has resumed it. For people who publish arrays of QoS 1 that are longer
    /// than the window, this is 1.4 times as fast and takes 0.6 times the processor time.
    mutating func continueBatches(into afterLock: MQTTAfterLock) {
        while let batch = publishers.batches.takeDue() {
            if batch.mayContinue, engine.phase == .connected, let core = afterLock.work.core {
                var unsent: [Unsent] = []
                // Nothing is dropped while there is a connection.
                var dropped = MQTTEndedPublishers()
                let limit = core.settings.maximumOutboxBytes
                batch.fed(feed(batch, core.settings, upTo: limit, &unsent, &dropped, maximumUnsent: 0))
            }
            batch.endWaits(into: &afterLock.work.batchEnds)
        }
    }

    /// Publishes as many messages of a batch as there is room for.
    ///
    /// - Parameters:
    ///   - outputLimit: pauses with so many bytes in the outbox.
    ///   - unsent: gets the messages that are refused.
    ///   - dropped: gets the publishers of messages that were dropped for these.
    ///   - maximumUnsent: pauses after so many refused messages; before the first one if it is 0.
    mutating func feed(
        _ batch: MQTTSendBatch, _ settings: MQTTSettings, upTo outputLimit: Int, _ unsent: inout [Unsent],
        _ dropped: inout MQTTEndedPublishers, maximumUnsent: Int = MQTTSendBatch.maximumUnsent
    ) -> Step {
        if case .failure(let error) = batch.failure { return .stopped(.failed(error)) }
        if let reason = publishers.reasonNotSupervised { return .stopped(.failed(reason.value)) }
        if batch.id == 0 { publishers.batches.add(batch) }
        let isConnected = engine.phase == .connected
        let connection = batch.connection ?? (isConnected ? engine.connection : 0)
        batch.connection = connection
        let mayPublishQoS0 = settings.queuesQoS0WhileOffline || isConnected && engine.connection == connection
        let storeFailure = MQTTJournal.failure(journal, engine)
        let now = publishers.loop.now
        // Read in place, instead of by `hand` of the publishers: taking each message out would retain and release its parts.
        let messages = batch.messages
        let all = messages.span
        var next = batch.next
        defer { batch.next = next }
        while next < all.count {
            if engine.outputCount >= outputLimit { return .pause }
            let place = next
            let isQoS0 = all[place].qos == .atMostOnce
            var failure: MQTTUsageError?
            if !isQoS0 {
                if let storeFailure { return .stopped(.failed(storeFailure)) }
                // Bounded by what may be in flight: the rest of the batch waits here, not in the engine's queue.
                let limit = engine.windowLimit
                if batch.unansweredCount >= limit { return .waitForAnswers(downTo: limit / 2) }
            } else if mayPublishQoS0, engine.outputCount >= settings.maximumOutboxBytes {
                return .waitForOutbox
            }
            if !isQoS0 || mayPublishQoS0 {
                do throws(MQTTUsageError) {
                    _ = try engine.publish(
                        topic: all[place].topic, payload: all[place].payload, qos: all[place].qos,
                        retain: all[place].retain, properties: all[place].properties,
                        token: isQoS0 ? MQTTWaitingPublishers.unawaitedBit : batch.token(of: place), at: now)
                    if !isQoS0 { batch.noteSent(place) }
                    next += 1
                    continue
                } catch {
                    let mayDrop = isQoS0 && !isConnected && settings.queueOverflow != .wait
                    if error.code == .queueFull, !mayDrop { return .stopped(.queueIsFull) }
                    if publishers.makeRoom(for: all[place].topic, after: error, &engine, &dropped) { continue }
                    failure = error
                }
            }
            // The other messages may still be sent.
            if unsent.count < maximumUnsent {
                unsent.append((place, failure))
                next += 1
            }
            if unsent.count >= maximumUnsent { return .pause }
        }
        return .sent
    }
}
