import STOMPCore
import Wire

/// Messages that are sent together: written into the outbox as it has room, all of them over one connection.
///
/// The caller's task owns it, and lends it to the machine under the link's lock. What the engine refuses is noted there;
/// the errors for callers are made without the lock.
struct STOMPSendRun: Sendable {
    /// What the caller has to do, after it has handled the refusals, before it writes again.
    enum Step {
        case sent, waitForRoom
        case waitForReceipts(downTo: Int)
        /// Nothing: so many messages were refused that others get the lock first.
        case pause
        /// No message was written, because the engine takes none now.
        case cannotBegin(STOMPUsageError)
        /// The connection ended, whether or not there is another one by now.
        case connectionEnded
    }

    struct Refusal {
        let place: Int
        let error: STOMPUsageError
    }

    private let messages: [STOMPOutgoingMessage]
    /// The headers of each message, empty if its options are invalid. Not optional, because reading an optional value
    /// retains and releases it for each message.
    private let headers: [STOMPHeaders]
    /// The places of messages whose options are invalid.
    private let invalid: Set<Int>
    private let transaction: STOMPTransaction?
    /// Where the receipts are counted; nil for messages without one.
    private let group: STOMPReceiptGroup?
    private let outputLimit: Int
    /// The messages from here on have not been written.
    private(set) var next = 0
    /// The engine's number of the connection that the messages belong to.
    private var connection: UInt32?
    private var refusals: [Refusal] = []

    /// The most messages that are refused under one lock. Other callers and the loop wait meanwhile.
    static let maximumRefusals = 100

    init(
        _ messages: [STOMPOutgoingMessage], headers: [STOMPHeaders], invalid: Set<Int> = [],
        in transaction: STOMPTransaction?, group: STOMPReceiptGroup?, outputLimit: Int
    ) {
        self.messages = messages
        self.headers = headers
        self.invalid = invalid
        self.transaction = transaction
        self.group = group
        self.outputLimit = outputLimit
    }

    /// The messages that were not written.
    var rest: Range<Int> { next..<messages.count }

    /// Takes out the messages that the engine refused; without the lock.
    mutating func takeRefusals() -> [Refusal] {
        defer { refusals = [] }
        return refusals
    }

    /// Writes messages into the outbox, as many as fit.
    mutating func write(into machine: inout STOMPMachine, at now: Int64) -> Step {
        if machine.engine.phase == .connected, connection == nil { connection = machine.engine.connection }
        if let connection, machine.engine.phase != .connected || machine.engine.connection != connection {
            return .connectionEnded
        }
        // Spans of constants, because a copy of each message would cost a dozen reference counts.
        let (messages, headers, invalid, token) = (messages, headers, invalid, group?.token)
        let all = messages.span
        while next < all.count {
            if !invalid.isEmpty, invalid.contains(next) {
                next += 1
                continue
            }
            guard machine.engine.output.count < outputLimit else { return .waitForRoom }
            do throws(STOMPUsageError) {
                try machine.engine.send(
                    destination: all[next].destination, headers: headers[next], body: all[next].body,
                    receiptToken: token.map { $0 | UInt64(next) }, transaction: transaction,
                    omitsContentLength: all[next].options.omitsContentLength, at: now)
            } catch {
                if connection == nil { return .cannotBegin(error) }
                if error.code == .tooManyReceipts, let group, group.outstanding > 0 {
                    return .waitForReceipts(downTo: group.outstanding / 2)
                }
                refusals.append(Refusal(place: next, error: error))
                next += 1
                if group?.collectsFailures != true || refusals.count == Self.maximumRefusals { return .pause }
                continue
            }
            machine.sentCount += 1
            if let group, let token {
                if group.outstanding == 0 { machine.groups[STOMPMachine.group(of: token)] = group }
                group.outstanding += 1
            }
            next += 1
        }
        return .sent
    }
}
