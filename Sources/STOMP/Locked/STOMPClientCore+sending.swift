import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClientCore {
    /// Writes a frame into the outbox. Returns false if it is full.
    func trySend(
        _ body: [UInt8], to destination: String, headers: STOMPHeaders, omitsContentLength: Bool,
        in transaction: STOMPTransaction?
    ) throws(STOMPError) -> Bool {
        let limit = configuration.maximumOutboxBytes
        return try link.perform { machine throws(STOMPError) in
            guard machine.engine.output.count < limit else { return false }
            do throws(STOMPUsageError) {
                try machine.engine.send(
                    destination: destination, headers: headers, body: body, transaction: transaction,
                    omitsContentLength: omitsContentLength, at: machine.lastWrite)
            } catch {
                throw explain(error)
            }
            machine.sentCount += 1
            return true
        }
    }

    /// What a caller is told: if the client has stopped connecting, why it has.
    func explain(_ refusal: STOMPUsageError) -> STOMPError {
        guard refusal.code == .notConnected, case .disconnected(let failure?) = news.state else {
            return STOMPError(refusal)
        }
        return .notSupervised(after: failure)
    }

    /// Lets `body` write a frame with a receipt and waits for the receipt.
    nonisolated(nonsending) func confirmed(
        countsAsSent: Bool = false,
        _ body: (inout STOMPEngine, _ receiptToken: UInt64, _ now: Int64) throws(STOMPUsageError) -> Void
    ) async throws(STOMPError) {
        if Task.isCancelled { throw .cancelledWait }
        let first = await waiting { waiter in
            var waiter: WaiterTable<STOMPMachine.ReceiptAnswer>.QuickWaiter? = waiter
            // Order is settled here, before the caller suspends.
            let ended = link.perform(urgent: true) { machine -> Resumption<QuickAnswer<STOMPMachine.ReceiptAnswer>>? in
                guard let waiter = waiter.take() else { return nil }
                let now = MonotonicClock.now
                let token = machine.receipts.add(waiter, at: now)
                do throws(STOMPUsageError) {
                    try body(&machine.engine, token, now)
                    if countsAsSent { machine.sentCount += 1 }
                    return nil
                } catch {
                    return machine.receipts.answerAtOnce(token, .failure(explain(error)))
                }
            }
            ended?.resume()
        }
        if let call = first.call { try await call.answer(ifCancelled: .failure(.cancelledWait)).get() }
    }

    /// Writes a frame that has neither a body nor a receipt.
    func write<Answer>(
        _ body: (inout STOMPEngine, _ now: Int64) throws(STOMPUsageError) -> Answer
    ) throws(STOMPError) -> Answer {
        try link.perform { machine throws(STOMPError) in
            do throws(STOMPUsageError) {
                return try body(&machine.engine, MonotonicClock.now)
            } catch {
                throw explain(error)
            }
        }
    }

    /// Acknowledges or rejects a message.
    func answer(
        _ messageHeaders: RawSpan, _ body: (inout STOMPEngine, RawSpan, Int64) throws(STOMPUsageError) -> Void
    ) throws(STOMPError) {
        try link.perform { machine throws(STOMPError) in
            do throws(STOMPUsageError) {
                try body(&machine.engine, messageHeaders, MonotonicClock.now)
            } catch {
                throw explain(error)
            }
        }
    }
}
