package import MessagingWire
import Synchronization
package import Transport

/// What the task that feeds a batch has to do before it continues.
@usableFromInline
package enum SendStep<Stop: Sendable>: Sendable {
    /// Nothing: all messages are handed over.
    case sent
    /// Nothing: others get the lock first, and what is written leaves.
    case pause
    case waitForOutbox
    case waitForAnswers(downTo: Int)
    /// For a reason that only one of the clients has.
    case stopped(Stop)
}

/// Messages that are sent together, and their answers; or one message whose answer is awaited later.
///
/// The client's machine has one function that feeds the batch, under the link's lock: it hands messages to the engine from
/// `next` on, as long as there is room, and notes those that will be answered (`noteSent`). The task that sends calls it,
/// waits for room without the lock, and continues. While the task waits until few enough messages are unanswered
/// (`wait(downTo:under:)`), the machine calls the same function when they are, on the loop's thread: the task is resumed
/// once for all messages, not for each window of them. The machine keeps the batch in its ``SendBatches``, which notes the
/// answers and takes out the tasks whose wait is over.
///
///     batches.add(batch)                                  // under the lock, as is `feed`
///     while batch.next < batch.messages.count {
///         switch link.perform({ machine in machine.feed(batch) }) { … }   // a ``SendStep``
///     }
///     // wait until no message is unanswered
///     batches.remove(batch, failing: nil)                 // under the lock; `answers` is complete
///
/// Code that runs for each message is inlinable, so that each client gets it specialized for its own answers.
@usableFromInline
package final class SendBatch<Message: Sendable, Answer: Sendable>: @unchecked Sendable {
    // Sendable because the `var`s are used under the link's lock; `next` is changed while the batch is fed, and its task may
    // read it without the lock, since nothing else feeds unless the task waits. Their exclusive access needs no check for the
    // same reason.

    /// The most messages that are refused under one lock. Other callers and the loop wait meanwhile.
    @inlinable package static var maximumUnsent: Int { 100 }

    @usableFromInline package let messages: [Message]
    /// Identifies the batch in the tokens of its messages; 0 before it is added.
    @usableFromInline package internal(set) var id: UInt64 = 0
    /// The messages from here on have not been handed to the engine.
    @safe @exclusivity(unchecked) @usableFromInline package var next = 0
    /// The engine's number of the connection that the batch began with; 0 for none, nil before it began.
    @usableFromInline package var connection: UInt32?
    /// Messages that were sent and are not answered.
    @safe @exclusivity(unchecked) @usableFromInline package internal(set) var unansweredCount = 0
    /// Which messages these are; empty until the first is sent.
    @safe @exclusivity(unchecked) @usableFromInline var isUnanswered: [Bool] = []
    /// The answers that are not a plain success, by the places of their messages.
    @usableFromInline package internal(set) var answers: [Int: Answer] = [:]
    /// Set when something other than the sending task ended the batch: the error for the remaining messages.
    package private(set) var failure: Answer?
    private var waits = UniqueArray<Wait>()
    /// With so few messages unanswered the next wait is over; -1 without a wait.
    @safe @exclusivity(unchecked) @usableFromInline var fewAwaited = -1
    private var lastWait: UInt64 = 0

    /// A task that waits until at most `few` messages are unanswered.
    private struct Wait: ~Copyable, Sendable {
        let waiter: Waiter<Bool>
        var few: Int
        let number: UInt64
    }

    package init(_ messages: [Message]) {
        self.messages = messages
    }

    /// The token of a message.
    @inlinable package func token(of place: Int) -> UInt64 {
        SendBatches<Message, Answer>.bit | id << 32 | UInt64(truncatingIfNeeded: place)
    }

    /// Whether a message is of this batch.
    package func contains(_ token: UInt64) -> Bool {
        token & SendBatches<Message, Answer>.bit != 0 && SendBatches<Message, Answer>.id(of: token) == id
    }

    /// A message was handed to the engine, which will answer it.
    @inlinable package func noteSent(_ place: Int) {
        if isUnanswered.isEmpty { isUnanswered = Array(repeating: false, count: messages.count) }
        isUnanswered[place] = true
        unansweredCount += 1
    }

    /// Waits until at most `few` messages are unanswered; without the lock. False if the task was cancelled before. Answers that
    /// have arrived count even for a cancelled task.
    package nonisolated(nonsending) func wait<Machine: LinkMachine & ~Copyable>(
        downTo few: Int = 0, under link: Link<Machine>
    ) async -> Bool {
        await link.wait(cancelled: false) { _, waiter in
            add(waiter, downTo: few)
        } take: { _, number in
            takeWait(number)
        }
    }

    /// Waits for the answer to the only message, and returns it. Any number of tasks may wait.
    ///
    /// - Parameter owner: what answers, and is kept while the task waits; nil if it was released, so that nothing is waited
    ///   for.
    package nonisolated(nonsending) func confirmed<
        Success, Failure: ClientError, Machine: LinkMachine & ~Copyable
    >(
        under link: Link<Machine>, success: Success, by owner: AnyObject?
    ) async throws(Failure) -> Success where Answer == Result<Success, Failure> {
        defer { withExtendedLifetime(owner) {} }
        if owner != nil, await !wait(under: link) { throw .cancelledWait }
        return try link.perform { _ in
            unansweredCount == 0 ? answers[0] ?? .success(success) : .failure(.releasedBeforeAnswer)
        }.get()
    }

    private func add(_ waiter: consuming Waiter<Bool>, downTo few: Int) -> BegunWait<Bool> {
        if unansweredCount <= few { return .ended(Resumption(waiter, true)) }
        if Task.isCancelled { return .ended(Resumption(waiter, false)) }
        lastWait += 1
        waits.append(Wait(waiter: waiter, few: few, number: lastWait))
        fewAwaited = max(fewAwaited, few)
        return .waits(lastWait)
    }

    private func takeWait(_ number: UInt64) -> Waiter<Bool>? {
        for index in waits.indices where waits[index].number == number { return waits.remove(at: index).waiter }
        return nil
    }

    /// Notes the answer to a message, nil for a plain success. Returns whether few enough messages are unanswered for a
    /// task that waits.
    @inlinable func answer(_ place: Int, _ answer: Answer?) -> Bool {
        guard isUnanswered.indices.contains(place), isUnanswered[place] else { return false }
        isUnanswered[place] = false
        unansweredCount -= 1
        if let answer { answers[place] = answer }
        return unansweredCount <= fewAwaited
    }

    /// Whether there is more to send, and its task waits for answers that make room for it.
    package var mayContinue: Bool { next < messages.count && !waits.isEmpty }

    /// The batch was fed while its task waits, which waits on if that has left it nothing else to do.
    @inlinable package func fed<Stop>(_ step: SendStep<Stop>) {
        switch step {
        case .waitForAnswers(let few): wait(onDownTo: few)
        case .sent: wait(onDownTo: 0)
        case .pause, .waitForOutbox, .stopped: break
        }
    }

    /// The task now waits until at most `few` messages are unanswered.
    @usableFromInline func wait(onDownTo few: Int) {
        for index in waits.indices { waits[index].few = few }
        fewAwaited = few
    }

    /// Gives the same answer to all messages that are unanswered. No more are to be sent.
    fileprivate func fail(_ failure: Answer) {
        self.failure = failure
        for place in isUnanswered.indices where isUnanswered[place] { answers[place] = failure }
        isUnanswered = []
        unansweredCount = 0
    }

    /// Whether a task waits for answers, or for room to hand over the rest.
    var isAwaited: Bool { !waits.isEmpty || next < messages.count }

    /// Takes out the tasks for which few enough messages are unanswered.
    package func endWaits(into ended: inout UniqueArray<Resumption<Bool>>) {
        fewAwaited = -1
        var index = 0
        while index < waits.count {
            if unansweredCount <= waits[index].few {
                ended.append(Resumption(waits.remove(at: index).waiter, true))
            } else {
                fewAwaited = max(fewAwaited, waits[index].few)
                index += 1
            }
        }
    }
}

/// The batches of a client's machine, by the number in the tokens of their messages. Under the link's lock.
@usableFromInline
package struct SendBatches<Message: Sendable, Answer: Sendable>: Sendable {
    @usableFromInline package typealias Batch = SendBatch<Message, Answer>

    /// Set in the tokens of messages of a batch. Below are a bit of the owner's, 30 bits of the batch's number, and 32 bits of
    /// the message's place.
    @inlinable package static var bit: UInt64 { 1 << 63 }

    @usableFromInline var byID: [UInt64: Batch] = [:]
    var lastID: UInt64 = 0
    /// The batch that was answered last: the next answer is most likely for it too.
    @usableFromInline var last: Batch?
    /// Batches with so few unanswered messages that the task which waits for answers continues.
    @usableFromInline var due: [Batch] = []

    package init() {}

    @inlinable static func id(of token: UInt64) -> UInt64 { (token & ~bit) >> 32 }

    /// Whether a message's batch is here.
    package func contains(_ token: UInt64) -> Bool { byID[Self.id(of: token)] != nil }

    package mutating func add(_ batch: Batch) {
        repeat { lastID = lastID % 0x3FFF_FFFF + 1 } while byID[lastID] != nil
        batch.id = lastID
        byID[lastID] = batch
    }

    /// Removes a batch for the task that feeds it, the only one that could wait; answers that come later find nothing.
    ///
    /// - Parameter failure: the answer to the messages that are unanswered.
    package mutating func remove(_ batch: Batch, failing failure: Answer?) {
        if let failure { batch.fail(failure) }
        forget(batch)
    }

    @inlinable mutating func forget(_ batch: Batch) {
        if byID[batch.id] === batch { byID[batch.id] = nil }
        last = nil
    }

    /// Notes the answer to a message, nil for a plain success. A batch without another message to come is removed. Call
    /// ``takeDue()`` afterwards.
    @inlinable package mutating func answer(_ token: UInt64, _ answer: Answer?) {
        let id = Self.id(of: token)
        if last?.id != id { last = byID[id] }
        guard let batch = last else { return }
        let isDue = batch.answer(Int(truncatingIfNeeded: token & 0xFFFF_FFFF), answer)
        if isDue, due.last !== batch { due.append(batch) }
        if batch.unansweredCount == 0, batch.next == batch.messages.count { forget(batch) }
    }

    /// The same for one message by itself, after which a task that waited feeds its batch.
    package mutating func answer(_ token: UInt64, _ answer: Answer?, into ended: inout UniqueArray<Resumption<Bool>>) {
        self.answer(token, answer)
        while let batch = takeDue() { batch.endWaits(into: &ended) }
    }

    /// Takes the next batch out whose task waits for no more answers than there were: it is fed, or its wait ends.
    @inlinable package mutating func takeDue() -> Batch? { due.isEmpty ? nil : due.removeFirst() }

    /// Fails all batches, or those whose tasks wait: they get no answers to their messages.
    package mutating func failAll(
        awaitedOnly: Bool = false, _ failure: Answer, into ended: inout UniqueArray<Resumption<Bool>>
    ) {
        // Sorting looks types up at run time, even where there is nothing to sort.
        if byID.isEmpty { return }
        for (id, batch) in byID.sorted(by: { $0.key < $1.key }) where !awaitedOnly || batch.isAwaited {
            batch.fail(failure)
            batch.endWaits(into: &ended)
            byID[id] = nil
        }
        last = nil
    }
}
