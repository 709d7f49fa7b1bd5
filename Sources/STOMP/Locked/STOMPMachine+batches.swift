import Messaging
import STOMPCore
import Wire

typealias STOMPSendBatch = SendBatch<STOMPOutgoingMessage, STOMPMachine.ReceiptAnswer>

/// Handing the messages of an array to the engine, for the task that sends them. Under the link's lock.
extension STOMPMachine {
    /// What the task that feeds a batch has to do before it continues.
    enum Step {
        /// Nothing: all messages are handed over.
        case sent
        /// Nothing: so many messages were refused that others get the lock first.
        case pause
        case waitForOutbox
        case waitForAnswers(downTo: Int)
        /// No message was written, because the engine takes none now.
        case cannotBegin(STOMPUsageError)
        /// The connection ended, whether or not there is another one by now.
        case connectionEnded
    }

    /// A message that is not sent, and the engine's reason. The errors for callers are made without the lock.
    typealias Unsent = (place: Int, error: STOMPUsageError)

    /// The most messages that are refused under one lock. Other callers and the loop wait meanwhile.
    static let maximumUnsent = 100

    /// Writes as many messages of a batch as there is room for, all of them over one connection.
    ///
    /// - Parameters:
    ///   - headers: those of each message; nil for messages with invalid options, which are left out.
    ///   - isConfirmed: whether each message has a receipt.
    ///   - maximumUnsent: after so many refused messages it pauses.
    mutating func feed(
        _ batch: STOMPSendBatch, headers: [STOMPHeaders?], isConfirmed: Bool, in transaction: STOMPTransaction?,
        outputLimit: Int, maximumUnsent: Int, _ unsent: inout [Unsent], at now: Int64
    ) -> Step {
        if engine.phase == .connected, batch.connection == nil { batch.connection = engine.connection }
        if let connection = batch.connection, engine.phase != .connected || engine.connection != connection {
            return .connectionEnded
        }
        if isConfirmed, batch.id == 0 { batches.add(batch) }
        // Read in place: a copy of each message would cost a dozen reference counts.
        let messages = batch.messages
        let all = messages.span
        while batch.next < all.count {
            let place = batch.next
            guard let headers = headers[place] else {
                batch.next += 1
                continue
            }
            guard engine.output.count < outputLimit else { return .waitForOutbox }
            do throws(STOMPUsageError) {
                try engine.send(
                    destination: all[place].destination, headers: headers, body: all[place].body,
                    receiptToken: isConfirmed ? batch.token(of: place) : nil, transaction: transaction,
                    omitsContentLength: all[place].options.omitsContentLength, at: now)
                sentCount += 1
                if isConfirmed { batch.noteSent(place) }
                batch.next += 1
            } catch {
                if batch.connection == nil { return .cannotBegin(error) }
                if error.code == .tooManyReceipts, batch.unansweredCount > 0 {
                    return .waitForAnswers(downTo: batch.unansweredCount / 2)
                }
                unsent.append((place, error))
                batch.next += 1
                if unsent.count == maximumUnsent { return .pause }
            }
        }
        return .sent
    }
}
