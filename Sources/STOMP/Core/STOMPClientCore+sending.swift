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
        let limit = configuration.outboxLimit
        return try link.perform { machine throws(STOMPError) in
            guard machine.engine.output.count < limit else { return false }
            do throws(STOMPMisuse) {
                try machine.engine.send(
                    destination: destination, headers: headers, body: body, transaction: transaction,
                    omitsContentLength: omitsContentLength, at: machine.lastWrite)
            } catch {
                throw STOMPError(error)
            }
            machine.sentCount += 1
            return true
        }
    }

    /// Lets `body` write a frame with a receipt and waits for the receipt.
    nonisolated(nonsending) func confirmed(
        countsAsSent: Bool = false,
        _ body: (inout STOMPEngine, _ receiptToken: UInt64, _ now: Int64) throws(STOMPMisuse) -> Void
    ) async throws(STOMPError) {
        let callerID = ids.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<STOMPMachine.ReceiptAnswer, Never>) in
                // Order is settled here, before the caller suspends.
                let refusal = link.perform(urgent: true) { machine -> STOMPError? in
                    if machine.receipts.wasCancelledEarly(callerID) { return .cancelledWait }
                    let token = machine.receipts.add(waiter, callerID: callerID)
                    do throws(STOMPMisuse) {
                        try body(&machine.engine, token, MonotonicClock.now)
                        if countsAsSent { machine.sentCount += 1 }
                        return nil
                    } catch {
                        _ = machine.receipts.take(token)
                        return STOMPError(error)
                    }
                }
                if let refusal { waiter.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            let waiter = link.perform { $0.receipts.cancel(callerID) }
            waiter?.resume(returning: .failure(.cancelledWait))
        }
        if Task.isCancelled { link.perform { $0.receipts.forget(callerID) } }
        try result.get()
    }

    /// Writes a frame that has neither a body nor a receipt.
    func write<Answer>(
        _ body: (inout STOMPEngine, _ now: Int64) throws(STOMPMisuse) -> Answer
    ) throws(STOMPError) -> Answer {
        try link.perform { machine throws(STOMPError) in
            do throws(STOMPMisuse) {
                return try body(&machine.engine, MonotonicClock.now)
            } catch {
                throw STOMPError(error)
            }
        }
    }

    /// Acknowledges or rejects a message.
    func answer(
        _ messageHeaders: RawSpan, _ body: (inout STOMPEngine, RawSpan, Int64) throws(STOMPMisuse) -> Void
    ) throws(STOMPError) {
        try link.perform { machine throws(STOMPError) in
            do throws(STOMPMisuse) {
                try body(&machine.engine, messageHeaders, MonotonicClock.now)
            } catch {
                throw STOMPError(error)
            }
        }
    }
}
