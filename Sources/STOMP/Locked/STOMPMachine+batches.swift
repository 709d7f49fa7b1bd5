import MessagingShell
import MessagingWire
import STOMPCore

/// Messages of an array with their headers; nil for those with invalid options, which are left out.
typealias STOMPSendBatch = SendBatch<STOMPReadySend?, STOMPMachine.ReceiptAnswer>

/// Handing the messages of an array to the engine, for the task that sends them and while it waits for receipts. Under the
/// link's lock.
extension STOMPMachine {
    typealias Step = SendStep<Stop>

    /// Why the engine gets no more messages of a batch, apart from the reasons that both clients have.
    enum Stop {
        /// No message was written, because the engine takes none now.
        case cannotBegin(STOMPUsageError)
        /// The connection ended, whether or not there is another one by now.
        case connectionEnded
    }

    /// A message that is not sent, and the engine's reason. The errors for callers are made without the lock.
    typealias Unsent = (place: Int, error: STOMPUsageError)

    /// Continues the batches that have received the receipts they were waiting for, and takes out the tasks that must act
    /// themselves.
    mutating func continueBatches(into afterLock: STOMPAfterLock, at now: Int64) {
        while let batch = batches.takeDue() {
            if batch.mayContinue, let core = afterLock.core {
                var unsent: [Unsent] = []
                let limit = core.configuration.maximumOutboxBytes
                batch.fed(feed(batch, isConfirmed: true, outputLimit: limit, maximumUnsent: 0, &unsent, at: now))
            }
            batch.endWaits(into: &afterLock.batchEnds)
        }
    }

    /// Writes as many messages of a batch as there is room for, all of them over one connection.
    ///
    /// - Parameters:
    ///   - isConfirmed: whether each message has a receipt.
    ///   - maximumUnsent: pauses after so many refused messages; before the first one if it is 0.
    mutating func feed(
        _ batch: STOMPSendBatch, isConfirmed: Bool, outputLimit: Int, maximumUnsent: Int, _ unsent: inout [Unsent],
        at now: Int64
    ) -> Step {
        if engine.phase == .connected, batch.connection == nil { batch.connection = engine.connection }
        if let connection = batch.connection, engine.phase != .connected || engine.connection != connection {
            return .stopped(.connectionEnded)
        }
        if isConfirmed, batch.id == 0 { batches.add(batch) }
        // Read in place: a copy of each message would cost a dozen reference counts.
        let messages = batch.messages
        let all = messages.span
        while batch.next < all.count {
            let place = batch.next
            guard let message = all[place] else {
                batch.next += 1
                continue
            }
            guard engine.outputCount < outputLimit else { return .waitForOutbox }
            do throws(STOMPUsageError) {
                try engine.send(
                    destination: message.destination, headers: message.headers, body: message.body,
                    receiptToken: isConfirmed ? batch.token(of: place) : nil, transaction: message.transaction,
                    omitsContentLength: message.omitsContentLength, at: now)
                sentCount += 1
                if isConfirmed { batch.noteSent(place) }
                batch.next += 1
            } catch {
                if batch.connection == nil { return .stopped(.cannotBegin(error)) }
                if error.code == .tooManyReceipts, batch.unansweredCount > 0 {
                    return .waitForAnswers(downTo: batch.unansweredCount / 2)
                }
                if unsent.count < maximumUnsent {
                    unsent.append((place, error))
                    batch.next += 1
                }
                if unsent.count >= maximumUnsent { return .pause }
            }
        }
        return .sent
    }
}
