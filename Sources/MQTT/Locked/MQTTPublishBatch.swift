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
    private(set) var completed = 0
    /// Why the messages that are not complete have no answer: the caller was cancelled, or the client stopped connecting.
    var failure: MQTTError?
    /// All messages before this one are complete.
    private var firstOpen = 0
    /// The places of other messages that are complete.
    private var done: [Range<Int>] = []
    /// The answers to messages that are not a plain success, by their places.
    private var answers: [Int: MQTTPublishers.Answer] = [:]
    /// The messages that the engine refused, by their places. Their errors are made without the lock.
    private var refusals: [(place: Int, error: MQTTUsageError)] = []
    /// The places of QoS 0 messages that had no connection.
    private var unsent: [Range<Int>] = []
    /// The engine's number of the connection that the batch began with, to which its QoS 0 messages belong; 0 for none.
    private var connection: UInt32?
    /// The caller that published the batch.
    var waiter: Waiter<Result<Void, MQTTError>>?
    /// QoS 0 messages wait while the outbox holds this many bytes.
    private let outputLimit: Int
    /// The next message has QoS 0 and waits for room in the outbox, or the engine has refused many.
    private var waitsForCaller = false
    /// Callers that wait for the confirmation of its only message.
    var confirmations = Waiters<Result<Void, MQTTError>>()

    init(_ messages: [MQTTOutgoingMessage], id: UInt64, outputLimit: Int) {
        self.messages = messages
        self.id = id
        self.outputLimit = outputLimit
    }

    /// The token of the first message; the others follow.
    var token: UInt64 { MQTTPublishers.batchBit | id << 32 }

    var isComplete: Bool { completed == messages.count }

    /// Returns a closure that makes the answer to each message, to be called without the lock. Messages that are not
    /// complete have failed.
    func results() -> @Sendable () -> MQTTClient.PublishResults {
        let (count, answers, refusals, unsent) = (messages.count, answers, refusals, unsent)
        let (failure, complete) = (failure, failure == nil ? [] : done + [0..<firstOpen])
        return {
            var answers = answers
            for (place, error) in refusals { answers[place] = .failure(MQTTError(error)) }
            for place in unsent.joined() { answers[place] = .failure(.unsentAtMostOnce) }
            guard let failure else {
                return MQTTClient.PublishResults(count: count, success: MQTTPublishResult(.success), answers)
            }
            var open = Array(repeating: true, count: count)
            for place in complete.joined() { open[place] = false }
            for place in open.indices where open[place] { answers[place] = .failure(failure) }
            return MQTTClient.PublishResults(count: count, success: MQTTPublishResult(.success), answers)
        }
    }

    /// The answer to its only message, which is complete.
    var result: MQTTPublishers.Answer { answers[0] ?? .success(MQTTPublishResult(.success)) }

    /// Whether no acknowledgement will continue the batch: it is complete, it failed, or its caller has to publish the rest.
    var isDone: Bool { isComplete || ((failure != nil || waitsForCaller) && completed == next) }

    /// What the callers are told: success, or why they have no answer. Nil until that is known.
    var answer: Result<Void, MQTTError>? {
        if isComplete { return .success(()) }
        return failure.map { .failure($0) }
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

    /// Counts a message as done.
    ///
    /// - Parameter answer: the answer to it, unless it is a plain success.
    func complete(_ token: UInt64, _ answer: MQTTPublishers.Answer?) {
        let place = Int(truncatingIfNeeded: token & 0xFFFF_FFFF)
        complete(place..<place + 1)
        if let answer { answers[place] = answer }
    }

    private func complete(_ places: Range<Int>) {
        completed += places.count
        if places.lowerBound == firstOpen { firstOpen = places.upperBound } else { done.append(places) }
    }

    /// Other callers and the loop wait for the lock while so many messages are refused, and no more.
    private static let maximumRefusals = 100

    /// Publishes as much of the batch as the engine takes.
    func feed(_ engine: inout MQTTEngine, at now: Int64) {
        // Read in place: taking each message out would retain and release its parts.
        let messages = messages
        let all = messages.span
        let token = token
        let refused = refusals.count
        let connection = connection ?? (engine.phase == .connected ? engine.connection : 0)
        self.connection = connection
        let mayPublishQoS0 =
            engine.options.value.queuesQoS0WhileDisconnected
            || (engine.phase == .connected && engine.connection == connection)
        waitsForCaller = false
        while failure == nil, next < all.count {
            let isQoS0 = all[next].qos == .atMostOnce
            if isQoS0 {
                guard mayPublishQoS0 else {
                    var end = next + 1
                    while end < all.count, all[end].qos == .atMostOnce { end += 1 }
                    unsent.append(next..<end)
                    complete(next..<end)
                    next = end
                    continue
                }
                waitsForCaller = engine.output.count >= outputLimit
                if waitsForCaller { return }
            }
            // Bounded by what may be in flight: the rest of the batch waits here, not in the engine's queue.
            guard next - completed < engine.windowLimit || isQoS0 && engine.messagesMayLeave else { return }
            let index = next
            do throws(MQTTUsageError) {
                let outcome = try engine.publish(
                    topic: all[index].topic, payload: all[index].payload, qos: all[index].qos,
                    retain: all[index].retain, properties: all[index].properties,
                    token: token &+ UInt64(truncatingIfNeeded: index), at: now)
                next += 1
                if isQoS0, outcome == .written { complete(index..<next) }
            } catch {
                if error.code == .queueFull { return }
                // The others may be sent all the same.
                next += 1
                complete(index..<next)
                refusals.append((index, error))
                waitsForCaller = refusals.count - refused == Self.maximumRefusals
                if waitsForCaller { return }
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

    /// The batch of a message's token.
    subscript(token: UInt64) -> MQTTPublishBatch? { byID[Self.id(of: token)] }

    private static func id(of token: UInt64) -> UInt64 { (token & ~MQTTPublishers.batchBit) >> 32 }

    mutating func nextID() -> UInt64 {
        // The bits between the two of `MQTTPublishers` and the place of a message.
        lastID = (lastID + 1) & (1 << 30 - 1)
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
        return inOrder
    }

    /// Counts messages as done. The window's room is filled again once for all acknowledgements of a read, by
    /// ``feedCompleted(into:_:at:)``.
    mutating func complete(
        _ completion: MQTTPublishCompletion, _ answer: MQTTPublishers.Answer?, into scratch: MQTTScratch,
        _ engine: inout MQTTEngine, at now: Int64
    ) {
        let id = Self.id(of: completion.token)
        if last?.id != id {
            feedCompleted(into: scratch, &engine, at: now)
            last = byID[id]
        }
        guard let batch = last else { return }
        batch.complete(completion.token, answer)
    }

    /// Publishes what the window has room for after acknowledgements.
    mutating func feedCompleted(into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64) {
        if let last { feed(last, into: scratch, &engine, at: now) }
    }

    /// Publishes what the queue has room for.
    mutating func feedAll(into scratch: MQTTScratch, _ engine: inout MQTTEngine, at now: Int64) {
        guard byID.count > 1 else {
            for batch in byID.values { feed(batch, into: scratch, &engine, at: now) }
            return
        }
        for batch in inOrder { feed(batch, into: scratch, &engine, at: now) }
    }

    private var inOrder: [MQTTPublishBatch] {
        byID.sorted { $0.key < $1.key }.map(\.value)
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
