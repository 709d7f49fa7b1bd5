import MessagingShell
import MessagingWire
import STOMPCore
import Transport

/// Sends frames of a client and waits for their receipts.
///
/// On the caller's task, any thread: frames are encoded into the outbox under the link's lock, in the order in which
/// callers get it. ``STOMPMachine`` is the side under the lock.
struct STOMPSender {
    let core: STOMPClientCore

    // MARK: Without a receipt

    /// Writes SEND into the outbox. Returns false if it is full.
    func trySend(
        _ body: [UInt8], to destination: String, headers: STOMPHeaders, omitsContentLength: Bool,
        in transaction: STOMPTransaction?
    ) throws(STOMPError) -> Bool {
        let limit = core.configuration.maximumOutboxBytes
        return try asking { machine throws(STOMPUsageError) in
            guard machine.engine.outputCount < limit else { return false }
            // Only heart-beats need the time, and the write updates theirs anyway, so the clock is not read here.
            try machine.engine.send(
                destination: destination, headers: headers, body: body, transaction: transaction,
                omitsContentLength: omitsContentLength, at: machine.engine.timing.lastWrite)
            machine.sentCount += 1
            return true
        }
    }

    /// Calls the engine, and explains its error once the lock is released. Unlike that of all clients it is compiled for STOMP
    /// alone: one send passes here.
    private func asking<Answer>(
        urgent: Bool = false, _ body: (inout STOMPMachine) throws(STOMPUsageError) -> Answer
    ) throws(STOMPError) -> Answer {
        do throws(STOMPUsageError) {
            return try core.link.perform(urgent: urgent, body)
        } catch {
            throw core.explain(error)
        }
    }

    /// Writes a frame without a body.
    ///
    /// - Parameter urgent: whether the frame is written at once, because its receipt is awaited.
    func write<Answer>(
        urgent: Bool = false, _ body: (inout STOMPEngine, _ now: Int64) throws(STOMPUsageError) -> Answer
    ) throws(STOMPError) -> Answer {
        try asking(urgent: urgent) { machine throws(STOMPUsageError) in try body(&machine.engine, core.loop.now) }
    }

    /// Acknowledges or rejects a message.
    func answer(
        _ messageHeaders: RawSpan, _ body: (inout STOMPEngine, RawSpan, Int64) throws(STOMPUsageError) -> Void
    ) throws(STOMPError) {
        try asking { machine throws(STOMPUsageError) in try body(&machine.engine, messageHeaders, core.loop.now) }
    }

    // MARK: With a receipt

    /// Lets `body` write a frame with a receipt, and waits for the receipt.
    nonisolated(nonsending) func confirmed(
        _ body: (inout STOMPEngine, _ receiptToken: UInt64, _ now: Int64) throws(STOMPUsageError) -> Void
    ) async throws(STOMPError) {
        try await receipt { machine, waiter, refusal in
            machine.awaitReceipt(waiter, at: core.loop.now, &refusal) { machine, token, now throws(STOMPUsageError) in
                try body(&machine.engine, token, now)
            }
        }.get()
    }

    /// Sends a message, and waits for its receipt.
    nonisolated(nonsending) func sendConfirmed(_ message: STOMPReadySend) async throws(STOMPError) {
        while true {
            var outboxWasFull = false
            // Order is settled before the caller suspends.
            let answer = await receipt { machine, waiter, refusal in
                outboxWasFull = machine.engine.outputCount >= core.configuration.maximumOutboxBytes
                if outboxWasFull { return .ended(Resumption(waiter, .success(()))) }
                return machine.send(message, waiter, at: core.loop.now, &refusal)
            }
            if !outboxWasFull { return try answer.get() }
            try await roomInOutbox()
        }
    }

    /// Waits for the receipt of a frame that `begin` writes.
    ///
    /// - Parameter begin: says why the engine refuses the frame, which is explained once the lock is released.
    private nonisolated(nonsending) func receipt(
        _ begin: (inout STOMPMachine, consuming Waiter<STOMPMachine.ReceiptAnswer>, _ refusal: inout STOMPUsageError?)
            ->
            BegunWait<STOMPMachine.ReceiptAnswer>
    ) async -> STOMPMachine.ReceiptAnswer {
        var refusal: STOMPUsageError?
        let answer = await core.link.wait(urgent: true, cancelled: .failure(.cancelledWait)) { machine, waiter in
            begin(&machine, waiter, &refusal)
        } take: {
            $0.receipts.take($1)
        }
        return refusal.map { .failure(core.explain($0)) } ?? answer
    }

    /// Waits until a frame for which the outbox had no room can be tried again.
    nonisolated(nonsending) func roomInOutbox() async throws(STOMPError) {
        if Task.isCancelled { throw .cancelledWait }
        if let slow = await core.link.outboxRoom() { throw .outboxStandsStill(slow) }
    }

    // MARK: Many messages

    /// Sends messages without receipts.
    nonisolated(nonsending) func sendAll(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransaction?
    ) async throws(STOMPError) {
        let batch = try makeValidBatch(messages, in: transaction)
        var failures: [Int: STOMPError]?
        try await feed(batch, isConfirmed: false, &failures)
    }

    /// Sends a message whose receipt is awaited later.
    nonisolated(nonsending) func sendForReceipt(
        _ message: STOMPOutgoingMessage, in transaction: STOMPTransaction?
    ) async throws(STOMPError) -> STOMPSendBatch {
        let batch = try makeValidBatch([message], in: transaction)
        var failures: [Int: STOMPError]?
        do throws(STOMPError) {
            try await feed(batch, isConfirmed: true, &failures)
        } catch {
            core.link.perform { $0.batches.remove(batch, failing: nil) }
            throw error
        }
        return batch
    }

    /// Sends messages with receipts, waits for all of them, and returns the failures by the places of their messages.
    nonisolated(nonsending) func sendAllConfirmed(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransaction?
    ) async -> [Int: STOMPMachine.ReceiptAnswer] {
        let (batch, invalid) = makeBatch(messages, in: transaction)
        var failures: [Int: STOMPError]? = invalid
        var failure: STOMPError?
        do throws(STOMPError) {
            try await feed(batch, isConfirmed: true, &failures)
            if await !batch.wait(under: core.link) { throw .cancelledWait }
        } catch {
            failure = error
        }
        let answers = core.link.perform { machine in
            machine.batches.remove(batch, failing: failure.map { .failure($0) })
            return batch.answers
        }
        return answers.merging((failures ?? [:]).mapValues { .failure($0) }) { answer, _ in answer }
    }

    /// A batch of messages, and why some of them have invalid options, by their places: all are checked before the first is sent.
    private func makeBatch(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransaction?
    ) -> (batch: STOMPSendBatch, invalid: [Int: STOMPError]) {
        var ready: [STOMPReadySend?] = []
        ready.reserveCapacity(messages.count)
        var invalid: [Int: STOMPError] = [:]
        for (place, message) in messages.enumerated() {
            do throws(STOMPError) {
                ready.append(
                    STOMPReadySend(
                        body: message.body, destination: message.destination,
                        headers: try message.options.allHeaders(expiringRelatively: core.expiresRelatively, core.loop),
                        omitsContentLength: message.options.omitsContentLength, transaction: transaction))
            } catch {
                invalid[place] = error
                ready.append(nil)
            }
        }
        return (STOMPSendBatch(ready), invalid)
    }

    /// The same for messages of which none is sent unless the options of all are valid.
    private func makeValidBatch(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransaction?
    ) throws(STOMPError) -> STOMPSendBatch {
        let (batch, invalid) = makeBatch(messages, in: transaction)
        if let first = invalid.min(by: { $0.key < $1.key }) { throw first.value }
        return batch
    }

    /// Hands messages to the engine, as many each time as there is room for.
    ///
    /// - Parameter failures: why messages were not sent, by their places. Nil to throw the first failure instead.
    private nonisolated(nonsending) func feed(
        _ batch: STOMPSendBatch, isConfirmed: Bool, _ failures: inout [Int: STOMPError]?
    ) async throws(STOMPError) {
        let collectsFailures = failures != nil
        do throws(STOMPError) {
            while batch.next < batch.messages.count {
                var unsent: [STOMPMachine.Unsent] = []
                let now = core.loop.now
                let step = core.link.perform { machine in
                    machine.feed(
                        batch, isConfirmed: isConfirmed, outputLimit: core.configuration.maximumOutboxBytes,
                        maximumUnsent: collectsFailures ? STOMPSendBatch.maximumUnsent : 1, &unsent, at: now)
                }
                for (place, error) in unsent {
                    guard collectsFailures else { throw core.explain(error) }
                    failures?[place] = core.explain(error)
                }
                switch step {
                case .sent, .pause: break
                case .waitForOutbox: try await roomInOutbox()
                case .waitForAnswers(let few):
                    if await !batch.wait(downTo: few, under: core.link) { throw .cancelledWait }
                case .stopped(.cannotBegin(let error)): throw core.explain(error)
                case .stopped(.connectionEnded): throw .endedBeforeSending
                }
            }
        } catch {
            guard collectsFailures else { throw error }
            for place in batch.next..<batch.messages.count where failures?[place] == nil { failures?[place] = error }
        }
    }
}

/// A message with the headers that its options make.
struct STOMPReadySend: Sendable {
    let body: [UInt8]
    let destination: String
    let headers: STOMPHeaders
    let omitsContentLength: Bool
    let transaction: STOMPTransaction?
}
