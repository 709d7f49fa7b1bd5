import MQTTCore
import Transport

/// Many messages published with one wait: fed to the engine as its window allows, finished with one resume.
///
/// Touched under the link's lock only: its end is taken there, and performed after the lock is released.
final class MQTTPublishBatch: @unchecked Sendable {
    // Sendable for the reason above.
    let messages: [MQTTOutgoingMessage]
    let id: UInt64
    var next = 0
    var completed = 0
    var failure: MQTTError?
    var waiter: Waiter<Result<Void, MQTTError>>?

    init(_ messages: [MQTTOutgoingMessage], id: UInt64) {
        self.messages = messages
        self.id = id
    }

    var isDone: Bool { completed == messages.count || (failure != nil && completed == next) }

    /// Takes the caller that waits, with its answer. Nil if it has been answered already: its task was cancelled.
    func takeEnd() -> Resumption<Result<Void, MQTTError>>? {
        guard let waiter = waiter.take() else { return nil }
        return Resumption(waiter, failure.map { .failure($0) } ?? .success(()))
    }
}

/// The batches on their way, by the number in their tokens.
struct MQTTPublishBatches: Sendable {
    private var byID: [UInt64: MQTTPublishBatch] = [:]
    /// The one that was acknowledged last: the next acknowledgement is most likely for it too.
    private(set) var last: MQTTPublishBatch?

    subscript(id: UInt64) -> MQTTPublishBatch? { byID[id] }

    var all: [MQTTPublishBatch] { Array(byID.values) }

    mutating func add(_ batch: MQTTPublishBatch) { byID[batch.id] = batch }

    /// Makes a batch the last one.
    mutating func find(_ id: UInt64) -> MQTTPublishBatch? {
        if last?.id != id { last = byID[id] }
        return last
    }

    mutating func remove(_ batch: MQTTPublishBatch) {
        byID[batch.id] = nil
        last = nil
    }
}

extension MQTTMachine {
    /// Publishes as much of a batch as the engine takes.
    mutating func feed(_ batch: MQTTPublishBatch, at now: Int64) {
        // Looked at where they lie: taken out, each message would cost counted references that nobody needs.
        let messages = batch.messages
        let all = messages.span
        let token = Self.batchBit | batch.id
        while batch.failure == nil {
            batch.next = engine.publishRunAtLeastOnce(messages, from: batch.next, token: token, at: now)
            // Bounded by what may be in flight: the rest of the batch waits here, by reference, not in the engine.
            guard batch.next < all.count, batch.next - batch.completed < engine.windowLimit else { return }
            let index = batch.next
            do throws(MQTTUsageError) {
                let outcome = try engine.publish(
                    topic: all[index].topic, payload: all[index].payload, qos: all[index].qos,
                    retain: all[index].retain, properties: all[index].properties, token: token, at: now)
                batch.next += 1
                if all[index].qos == .atMostOnce, outcome == .written { batch.completed += 1 }
            } catch {
                if error.code == .queueFull { return }
                batch.failure = MQTTError(error)
            }
        }
    }

    /// Counts a message as done. Room for more is filled once for all acknowledgements of a read, by
    /// ``feedCompleted(into:at:)``.
    mutating func completeInBatch(_ completion: MQTTPublishCompletion, into scratch: MQTTScratch, at now: Int64) {
        let id = completion.token & ~Self.batchBit
        if batches.last?.id != id { feedCompleted(into: scratch, at: now) }
        guard let batch = batches.find(id) else { return }
        batch.completed += Int(completion.count)
        if !completion.isSuccess, batch.failure == nil,
            case .failure(let error) = completion.answer(scratch.work.effects)
        {
            batch.failure = error
        }
    }

    /// Publishes what the window has room for again.
    mutating func feedCompleted(into scratch: MQTTScratch, at now: Int64) {
        guard let batch = batches.last else { return }
        feed(batch, at: now)
        if batch.isDone { finish(batch, into: scratch) }
    }

    private mutating func finish(_ batch: MQTTPublishBatch, into scratch: MQTTScratch) {
        batches.remove(batch)
        if let end = batch.takeEnd() { scratch.work.batchEnds.append(end) }
    }

    mutating func pumpBatches(into scratch: MQTTScratch, at now: Int64) {
        for batch in batches.all {
            feed(batch, at: now)
            if batch.isDone { finish(batch, into: scratch) }
        }
    }
}
