import Messaging
import STOMPCore
import Synchronization
import Transport
import Wire

/// Sends frames of a client and waits for their receipts.
///
/// On the caller's task, any thread: frames are encoded into the outbox under the link's lock, in the order in which
/// callers get it. See ``STOMPReceiptGroup`` for frames that are confirmed together.
struct STOMPSender {
    let core: STOMPClientCore

    // MARK: Without a receipt

    /// Writes SEND into the outbox. Returns false if it is full.
    func trySend(
        _ body: [UInt8], to destination: String, headers: STOMPHeaders, omitsContentLength: Bool,
        in transaction: STOMPTransaction?
    ) throws(STOMPError) -> Bool {
        let limit = core.configuration.maximumOutboxBytes
        return try core.link.perform { machine throws(STOMPError) in
            guard machine.engine.output.count < limit else { return false }
            do throws(STOMPUsageError) {
                // Only heart-beats need the time, and the write updates that anyway: the clock need not be read.
                try machine.engine.send(
                    destination: destination, headers: headers, body: body, transaction: transaction,
                    omitsContentLength: omitsContentLength, at: machine.engine.timing.lastWrite)
            } catch {
                throw core.explain(error)
            }
            machine.sentCount += 1
            return true
        }
    }

    /// Writes a frame without a body.
    ///
    /// - Parameter urgent: whether the frame is written at once, because its receipt is awaited.
    func write<Answer>(
        urgent: Bool = false, _ body: (inout STOMPEngine, _ now: Int64) throws(STOMPUsageError) -> Answer
    ) throws(STOMPError) -> Answer {
        try core.link.perform(urgent: urgent) { machine throws(STOMPError) in
            do throws(STOMPUsageError) {
                return try body(&machine.engine, core.loop.now)
            } catch {
                throw core.explain(error)
            }
        }
    }

    /// Acknowledges or rejects a message.
    func answer(
        _ messageHeaders: RawSpan, _ body: (inout STOMPEngine, RawSpan, Int64) throws(STOMPUsageError) -> Void
    ) throws(STOMPError) {
        try core.link.perform { machine throws(STOMPError) in
            do throws(STOMPUsageError) {
                try body(&machine.engine, messageHeaders, core.loop.now)
            } catch {
                throw core.explain(error)
            }
        }
    }

    // MARK: With a receipt

    /// Lets `body` write a frame with a receipt, and waits for the receipt.
    nonisolated(nonsending) func confirmed(
        _ body: (inout STOMPEngine, _ receiptToken: UInt64, _ now: Int64) throws(STOMPUsageError) -> Void
    ) async throws(STOMPError) {
        let token = Atomic(Waiters<STOMPMachine.ReceiptAnswer>.noToken)
        let answer = await waiting { waiter in
            var waiter: Waiter<STOMPMachine.ReceiptAnswer>? = waiter
            let ended = core.link.perform(urgent: true) { machine -> Resumption<STOMPMachine.ReceiptAnswer>? in
                guard let waiter = waiter.take() else { return nil }
                return machine.awaitReceipt(waiter, token, core, body)
            }
            ended?.resume()
        } onCancel: {
            cancel(token)
        }
        try answer.get()
    }

    /// Ends the wait of a sender whose task was cancelled.
    private func cancel(_ token: borrowing Atomic<UInt64>) {
        core.link.perform { $0.receipts.take(token.load(ordering: .relaxed)) }?
            .resume(returning: .failure(.cancelledWait))
    }

    /// Sends a message, and waits for its receipt.
    nonisolated(nonsending) func sendConfirmed(_ message: STOMPConfirmedSend) async throws(STOMPError) {
        while true {
            var outboxWasFull = false
            let token = Atomic(Waiters<STOMPMachine.ReceiptAnswer>.noToken)
            // Order is settled before the caller suspends.
            let answer = await waiting { waiter in
                var waiter: Waiter<STOMPMachine.ReceiptAnswer>? = waiter
                let ended = core.link.perform(urgent: true) { machine -> Resumption<STOMPMachine.ReceiptAnswer>? in
                    guard let waiter = waiter.take() else { return nil }
                    outboxWasFull = machine.engine.output.count >= core.configuration.maximumOutboxBytes
                    if outboxWasFull { return Resumption(waiter, .success(())) }
                    return machine.send(message, waiter, token, core)
                }
                ended?.resume()
            } onCancel: {
                cancel(token)
            }
            if !outboxWasFull { return try answer.get() }
            await core.link.room()
        }
    }

    /// Waits until at most `few` receipts of a group are outstanding.
    nonisolated(nonsending) func wait(for group: STOMPReceiptGroup, downTo few: Int = 0) async throws(STOMPError) {
        let call = STOMPReceiptGroup.Call()
        // Receipts that have arrived count even for a cancelled task.
        if let answer = core.link.perform({ _ in group.add(call, downTo: few) }) { return try answer.get() }
        try await call.answer(ifCancelled: .failure(.cancelledWait)).get()
    }

    // MARK: Many messages

    /// Writes messages into the outbox, as many as fit each time that there is room.
    ///
    /// - Parameter group: where their receipts are counted; nil for messages without a receipt.
    /// - Returns: the failures of the messages that were not written, by their places, if the group collects failures.
    @discardableResult
    nonisolated(nonsending) func sendAll(
        _ messages: [STOMPOutgoingMessage], group: STOMPReceiptGroup?, in transaction: STOMPTransaction?
    ) async throws(STOMPError) -> [Int: STOMPError] {
        group?.token = group.map { _ in STOMPMachine.groupToken(core.ids.add(1, ordering: .relaxed).newValue) }
        let collectsFailures = group?.collectsFailures == true
        var failures: [Int: STOMPError] = [:]
        // Invalid options of any message are reported before the first is sent.
        var headers: [STOMPHeaders] = []
        headers.reserveCapacity(messages.count)
        // A span, because a copy of each message would cost a dozen reference counts.
        let all = messages.span
        for index in all.indices {
            if all[index].options.hasConstantHeaders {
                headers.append(all[index].options.prepared)
            } else {
                do throws(STOMPError) {
                    headers.append(
                        try all[index].options.allHeaders(expiringRelatively: core.negotiation.expiresRelatively))
                } catch {
                    guard collectsFailures else { throw error }
                    failures[index] = error
                    headers.append([:])
                }
            }
        }
        var run = STOMPSendRun(
            messages, headers: headers, invalid: Set(failures.keys), in: transaction, group: group,
            outputLimit: core.configuration.maximumOutboxBytes)
        do throws(STOMPError) {
            while !run.rest.isEmpty {
                let now = core.loop.now
                let step = core.link.perform { machine in run.write(into: &machine, at: now) }
                for refusal in run.takeRefusals() {
                    let failure = core.explain(refusal.error)
                    guard collectsFailures else { throw failure }
                    failures[refusal.place] = failure
                }
                switch step {
                case .sent, .pause: break
                case .waitForRoom:
                    if Task.isCancelled { throw .cancelledWait }
                    await core.link.room()
                case .waitForReceipts(let few):
                    if let group { try await wait(for: group, downTo: few) }
                case .cannotBegin(let refusal): throw core.explain(refusal)
                case .connectionEnded: throw .endedBeforeSending
                }
            }
        } catch {
            guard collectsFailures else { throw error }
            for place in run.rest where failures[place] == nil { failures[place] = error }
        }
        return failures
    }

    /// Sends messages with receipts, waits for all of them, and returns the failures by the places of their messages.
    nonisolated(nonsending) func sendAllConfirmed(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransaction?
    ) async -> [Int: STOMPError] {
        let group = STOMPReceiptGroup(collectsFailures: true)
        var failures: [Int: STOMPError] = [:]
        do throws(STOMPError) {
            failures = try await sendAll(messages, group: group, in: transaction)
            try await wait(for: group)
        } catch {
            for place in core.link.perform({ $0.abandon(group) }) { failures[place] = error }
        }
        return core.link.perform { _ in group.failures }.merging(failures) { answer, _ in answer }
    }
}

/// A message that is sent with a receipt.
struct STOMPConfirmedSend: Sendable {
    let body: [UInt8]
    let destination: String
    let headers: STOMPHeaders
    let omitsContentLength: Bool
    let transaction: STOMPTransaction?
}

/// Frames whose receipts are awaited together: an array of messages, or one message whose receipt is awaited later.
final class STOMPReceiptGroup: @unchecked Sendable {
    // Sendable because the `var`s are used under the link's lock only.
    typealias Call = PendingCall<STOMPMachine.ReceiptAnswer>

    var outstanding = 0
    /// Identifies the group in the tokens of its frames.
    var token: UInt64?
    /// Whether a failure is the result of its frame alone; otherwise the first is that of the group.
    let collectsFailures: Bool
    private(set) var failure: STOMPError?
    /// The failures by the places of their frames, if they are collected.
    private(set) var failures: [Int: STOMPError] = [:]
    private var waits: [(few: Int, call: Call)] = []

    init(collectsFailures: Bool = false) {
        self.collectsFailures = collectsFailures
    }

    /// A frame failed; the first reason counts.
    func fail(_ place: Int, _ error: STOMPError) {
        if !collectsFailures {
            failure = failure ?? error
        } else if failures[place] == nil {
            failures[place] = error
        }
    }

    private var answer: STOMPMachine.ReceiptAnswer { failure.map { .failure($0) } ?? .success(()) }

    /// Adds a caller that waits until at most `few` receipts are outstanding. Returns its answer if that is so already.
    func add(_ call: Call, downTo few: Int) -> STOMPMachine.ReceiptAnswer? {
        if outstanding <= few { return answer }
        waits.removeAll { $0.call.isOver }
        waits.append((few, call))
        return nil
    }

    /// Ends the waits for which few enough receipts are outstanding.
    func endWaits(into ended: inout UniqueArray<Resumption<STOMPMachine.ReceiptAnswer>>) {
        waits.removeAll { few, call in
            guard few >= outstanding else { return false }
            if let end = call.take(answer) { ended.append(end) }
            return true
        }
    }
}
