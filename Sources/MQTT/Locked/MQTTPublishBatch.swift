import MQTTCore
import Transport
import Wire

/// Many messages published with one wait: handed to the engine as its window allows, finished with one resumption.
///
/// Used under the link's lock only: its answer is taken there, and the caller is resumed after the lock is released.
final class MQTTPublishBatch: @unchecked Sendable {
    // Sendable for the reason above.
    let messages: [MQTTOutgoingMessage]
    let id: UInt64
    /// The next message for the engine.
    var next = 0
    var completed = 0
    var failure: MQTTError?
    /// The caller that published the batch.
    var waiter: Waiter<Result<Void, MQTTError>>?
    /// QoS 0 messages wait while the outbox holds this many bytes.
    private let outputLimit: Int
    /// The next message has QoS 0 and waits for room in the outbox.
    private var waitsForOutbox = false
    private var isCounted = false
    /// Callers that wait for the confirmation of its only message, and the server's answer to it.
    var confirmations = WaiterSlots<Result<Void, MQTTError>>()
    private(set) var result = MQTTPublishResult(.success)

    init(_ messages: [MQTTOutgoingMessage], id: UInt64, outputLimit: Int) {
        self.messages = messages
        self.id = id
        self.outputLimit = outputLimit
    }

    var isComplete: Bool { completed == messages.count }

    /// Whether no acknowledgement will continue the batch: it is complete, it failed, or its caller has to wait for room in
    /// the outbox before the rest.
    var isDone: Bool { isComplete || ((failure != nil || waitsForOutbox) && completed == next) }

    /// The messages that the client's counter does not have yet: all of them, once.
    func takeUncounted() -> Int {
        defer { isCounted = true }
        return isCounted ? 0 : messages.count
    }

    /// The answer to the callers that wait for the whole batch; nil until it is known.
    var answer: Result<Void, MQTTError>? {
        if let failure { return .failure(failure) }
        return completed == messages.count ? .success(()) : nil
    }

    /// Takes the caller that published the batch out, with its answer. Nil if it has been answered already: its task was
    /// cancelled.
    func takeEnd() -> Resumption<Result<Void, MQTTError>>? {
        guard let waiter = waiter.take() else { return nil }
        return Resumption(waiter, answer ?? .success(()))
    }

    /// Takes all waiting callers out, with their answer.
    func takeEnds(into ends: inout UniqueArray<Resumption<Result<Void, MQTTError>>>) {
        if let end = takeEnd() { ends.append(end) }
        guard confirmations.count > 0 else { return }
        let answer = answer ?? .success(())
        var waiters = confirmations.takeAll()
        waiters.drain { ends.append(Resumption($0, answer)) }
    }

    /// Counts messages as done.
    func complete(_ completion: MQTTPublishCompletion, _ effects: MQTTEffects) {
        completed += Int(completion.count)
        // Of several messages only the failures matter, and the answers need not be made.
        if MQTTPublishers.isSuccess(completion),
            messages.count > 1 || completion.remark < 0 && completion.reason == .success
        {
            return
        }
        switch MQTTPublishers.answer(to: completion, effects) {
        case .success(let result): self.result = result
        case .failure(let error): failure = failure ?? error
        }
    }

    /// Publishes as much of the batch as the engine takes.
    func feed(_ engine: inout MQTTEngine, at now: Int64) {
        // Read in place: taking each message out would retain and release its parts.
        let messages = messages
        let all = messages.span
        let token = MQTTPublishers.batchBit | id
        waitsForOutbox = false
        while failure == nil {
            next = engine.publishRunAtLeastOnce(messages, from: next, token: token, at: now)
            if next < all.count, all[next].qos == .atMostOnce {
                waitsForOutbox = engine.output.count >= outputLimit
                if waitsForOutbox { return }
                let end = engine.publishRunAtMostOnce(messages[...], from: next, outputLimit: outputLimit)
                completed += end - next
                if end > next {
                    next = end
                    continue
                }
            }
            // Bounded by what may be in flight: the rest of the batch waits here, not in the engine's queue.
            guard next < all.count, next - completed < engine.windowLimit else { return }
            let index = next
            do throws(MQTTUsageError) {
                let outcome = try engine.publish(
                    topic: all[index].topic, payload: all[index].payload, qos: all[index].qos,
                    retain: all[index].retain, properties: all[index].properties, token: token, at: now)
                next += 1
                if all[index].qos == .atMostOnce, outcome == .written { completed += 1 }
            } catch {
                if error.code == .queueFull { return }
                failure = MQTTError(error)
            }
        }
    }
}

/// The batches that are being published, by the number in their tokens. Under the link's lock.
struct MQTTPublishBatches: Sendable {
    private var byID: [UInt64: MQTTPublishBatch] = [:]
    private var lastID: UInt64 = 0
    /// The batch that was acknowledged last: the next acknowledgement is most likely for it too.
    private var last: MQTTPublishBatch?

    subscript(id: UInt64) -> MQTTPublishBatch? { byID[id] }

    mutating func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    mutating func add(_ batch: MQTTPublishBatch) { byID[batch.id] = batch }

    mutating func remove(_ batch: MQTTPublishBatch) {
        byID[batch.id] = nil
        last = nil
    }

    mutating func takeAll() -> [MQTTPublishBatch] {
        defer {
            byID = [:]
            last = nil
        }
        return Array(byID.values)
    }

    /// Counts messages as done. The window's room is filled again once for all acknowledgements of a read, by
    /// ``feedCompleted(into:_:at:)``.
    mutating func complete(
        _ completion: MQTTPublishCompletion, into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64
    ) {
        let id = completion.token & ~MQTTPublishers.batchBit
        if last?.id != id {
            feedCompleted(into: scratch, &engine, at: now)
            last = byID[id]
        }
        guard let batch = last else { return }
        batch.complete(completion, scratch.work.effects)
    }

    /// Publishes what the window has room for after acknowledgements.
    mutating func feedCompleted(into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64) {
        if let last { feed(last, into: scratch, &engine, at: now) }
    }

    /// Publishes what the queue has room for.
    mutating func feedAll(into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64) {
        for batch in byID.values { feed(batch, into: scratch, &engine, at: now) }
    }

    private mutating func feed(
        _ batch: MQTTPublishBatch, into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64
    ) {
        batch.feed(&engine, at: now)
        guard batch.isDone else { return }
        remove(batch)
        batch.takeEnds(into: &scratch.work.batchEnds)
    }
}
