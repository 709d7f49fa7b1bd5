import MessagingWire
import TestSupport

@testable import STOMPCore

/// A client that takes messages from a queue of a broker and sends others, some of that in a transaction; client and broker
/// have the real engine, over a link that delivers frame by frame and may break before each.
///
/// The broker hands every message out at once and again after a lost connection, in their order, until it is acknowledged.
/// Its transactions take effect with COMMIT.
final class SearchedQueue: SearchedWorld {
    struct Scenario: CustomStringConvertible {
        var version = STOMPVersion.v12
        var mode = STOMPAckMode.clientIndividual
        /// The messages in the queue.
        var messages = 2
        /// The messages that the client may send.
        var sends = 1
        /// How many operations a transaction may have; there is one. 0 for no transactions.
        var operations = 2
        var breaks = 2
        /// The broker confirms COMMIT before what is in it.
        var confirmsCommitEarly = false

        var description: String {
            "STOMP \(version.rawValue), \(mode), \(messages) messages, \(sends) sends, a transaction of \(operations)"
                + (confirmsCommitEarly ? ", confirmed early" : "")
        }
    }

    enum Step: CustomStringConvertible {
        case connect
        case cut
        case deliver(up: Bool)
        case begin
        case answer(Int, inTransaction: Bool)
        case send(inTransaction: Bool)
        case commit
        case abort
        case process

        var description: String {
            switch self {
            case .connect: "the client connects"
            case .cut: "the link breaks"
            case .deliver(let up): "a frame reaches the \(up ? "broker" : "client")"
            case .begin: "a transaction begins"
            case .answer(let place, let inside):
                "message \(place) of those in hand is acknowledged\(inside ? " in the transaction" : "")"
            case .send(let inside): "a message is sent\(inside ? " in the transaction" : "")"
            case .commit: "the transaction is committed"
            case .abort: "the transaction is aborted"
            case .process: "the broker processes the next message of the transaction"
            }
        }
    }

    /// A message of the queue.
    private enum Place: Int {
        case ready, out, staged, done
    }

    /// A message that the client's application has.
    private struct Held {
        let index: Int
        let headers: [UInt8]
        let connection: UInt32
        let number: STOMPMessageNumber
    }

    /// What an operation of the client is about.
    private enum Operation: Equatable {
        case answer([Int])
        case send(Int)
    }

    private struct Transaction {
        let handle: STOMPTransaction
        var operations: [Operation] = []
        /// What is in hand again after ABORT.
        var answered: [Held] = []
    }

    /// What a receipt confirms.
    private enum Promise {
        case operation(Operation, isInTransaction: Bool)
        case commit([Operation])
    }

    private let scenario: Scenario
    private let now: Int64 = 1_000_000_000
    private var client: STOMPEngine
    private var server: STOMPEngine
    private var effects = STOMPEffects()
    private var toServer: [[UInt8]] = []
    private var toClient: [[UInt8]] = []
    private var breaksLeft: Int
    private(set) var complaints: [String] = []

    // The client's application.
    private var held: [Held] = []
    private var stale: Held?
    private var received: UInt64 = 0
    private var transaction: Transaction?
    private var hasTransacted = false
    private var nextSend = 0
    /// By their tokens, with the numbers of their receipts.
    private var promises: [UInt64: (promise: Promise, number: UInt64)] = [:]
    private var lastToken: UInt64 = 0
    /// Operations that the application has carried out on this connection outside transactions, and those it committed.
    private var plain: [Operation] = []
    private var committed: [Operation]?

    // The broker.
    private var queue: [Place]
    private var processed: [Int] = []
    private var isSubscribed = false
    private var staged: [(operation: Operation, receipt: String?)]?
    /// What was committed and is not in its queue yet.
    private var late: [(operation: Operation, receipt: String?)] = []

    init(_ scenario: Scenario) {
        self.scenario = scenario
        var options = STOMPConnectOptions()
        options.versions = [scenario.version]
        options.heartBeat = .none
        var configuration = STOMPEngineConfiguration(connect: options)
        var profile = STOMPBrokerProfile(name: "searched", serverPrefix: "searched")
        profile.confirmsCommitEarly = scenario.confirmsCommitEarly
        configuration.profile = profile
        client = STOMPEngine(configuration: configuration)
        server = STOMPEngine(configuration: STOMPEngineConfiguration(role: .server))
        breaksLeft = scenario.breaks
        queue = Array(repeating: .ready, count: scenario.messages)
    }

    // MARK: Steps

    var steps: [Step] {
        var steps: [Step] = []
        if client.phase == .closed { steps.append(.connect) }
        if !toServer.isEmpty { steps.append(.deliver(up: true)) }
        if !toClient.isEmpty { steps.append(.deliver(up: false)) }
        if !late.isEmpty { steps.append(.process) }
        if client.phase == .connected {
            let hasRoom = transaction.map { $0.operations.count < scenario.operations } ?? false
            if scenario.operations > 0, transaction == nil, !hasTransacted { steps.append(.begin) }
            // What an acknowledgement of several messages means for one that is in a transaction is up to the broker.
            let isMixed = scenario.mode == .client && transaction.map { !$0.answered.isEmpty } ?? false
            for place in held.indices {
                if !isMixed { steps.append(.answer(place, inTransaction: false)) }
                if hasRoom { steps.append(.answer(place, inTransaction: true)) }
            }
            if nextSend < scenario.sends {
                steps.append(.send(inTransaction: false))
                if hasRoom { steps.append(.send(inTransaction: true)) }
            }
            if transaction != nil { steps += [.commit, .abort] }
        }
        if client.phase != .closed, breaksLeft > 0 { steps.append(.cut) }
        return steps
    }

    func take(_ step: Step) {
        do {
            switch step {
            case .connect:
                try server.connectionOpened(at: now)
                try client.connectionOpened(at: now)
            case .cut:
                breaksLeft -= 1
                cut()
            case .deliver(let isUp): try deliver(isUp)
            case .begin:
                hasTransacted = true
                transaction = Transaction(handle: try client.begin(at: now))
            case .answer(let place, let inside): try answer(place, inside)
            case .send(let inside): try send(inside)
            case .commit: try commit()
            case .abort: try abort()
            case .process: try process()
            }
        } catch {
            complaints.append("\(step) failed: \(error)")
        }
        flush()
    }

    private func promise(_ promise: Promise) -> UInt64 {
        lastToken += 1
        promises[lastToken] = (promise, client.receipts.nextNumber)
        return lastToken
    }

    private func acknowledge(_ message: Held, _ transaction: STOMPTransaction?, _ token: UInt64?)
        throws(STOMPUsageError)
    {
        try client.ack(
            messageHeaders: message.headers.span.bytes, connection: message.connection, message: message.number,
            transaction: transaction, receiptToken: token, at: now)
    }

    /// An acknowledgement that must not leave.
    private func expectRefusal(of message: Held, _ code: STOMPUsageError.Code) {
        let count = client.output.count
        do throws(STOMPUsageError) {
            try acknowledge(message, nil, nil)
            complaints.append("message \(message.index) could be acknowledged although \(code)")
        } catch {
            if error.code != code { complaints.append("message \(message.index): \(error.code) instead of \(code)") }
        }
        if client.output.count != count { complaints.append("a refused acknowledgement left") }
    }

    private func answer(_ place: Int, _ inside: Bool) throws(STOMPUsageError) {
        let range = scenario.mode == .client ? 0..<(place + 1) : place..<(place + 1)
        let message = held[place]
        let answered = Array(held[range])
        let operation = Operation.answer(answered.map(\.index))
        try acknowledge(
            message, inside ? transaction?.handle : nil, promise(.operation(operation, isInTransaction: inside)))
        held.removeSubrange(range)
        note(operation, inside)
        if inside { transaction?.answered += answered }
        for message in answered { expectRefusal(of: message, .alreadyAnswered) }
    }

    private func send(_ inside: Bool) throws(STOMPUsageError) {
        let operation = Operation.send(nextSend)
        try client.send(
            destination: "out", body: [UInt8(ascii: "0") + UInt8(nextSend)],
            receiptToken: promise(.operation(operation, isInTransaction: inside)),
            transaction: inside ? transaction?.handle : nil, at: now)
        nextSend += 1
        note(operation, inside)
    }

    private func note(_ operation: Operation, _ inside: Bool) {
        if inside { transaction?.operations.append(operation) } else { plain.append(operation) }
    }

    private func commit() throws(STOMPUsageError) {
        guard let open = transaction else { return }
        try client.commit(open.handle, receiptToken: promise(.commit(open.operations)), at: now)
        committed = open.operations
        transaction = nil
    }

    private func abort() throws(STOMPUsageError) {
        guard let open = transaction else { return }
        try client.abort(open.handle, at: now)
        // What waits for receipts that will not come ends at once.
        if client.nextDeadline <= now { client.handleTimeout(at: now, into: &effects) }
        try? perform(atClient: true, [])
        held = (held + open.answered).sorted { $0.number.number < $1.number.number }
        transaction = nil
    }

    private func cut() {
        (toServer, toClient) = ([], [])
        client.connectionClosed(at: now, into: &effects)
        try? perform(atClient: true, [])
        server.connectionClosed(at: now, into: &effects)
        try? perform(atClient: false, [])
        stale = held.first ?? stale
        (held, received, transaction, plain, committed) = ([], 0, nil, [], nil)
        (isSubscribed, staged) = (false, nil)
        // What was committed takes effect although nobody hears of it.
        while !late.isEmpty { try? process() }
        for index in queue.indices where queue[index] != .done { queue[index] = .ready }
        if !promises.isEmpty { complaints.append("\(promises.count) receipts never ended") }
    }

    // MARK: The link

    private func flush() {
        toServer += Self.frames(client.output)
        client.output = []
        toClient += Self.frames(server.output)
        server.output = []
    }

    /// Whole frames, with the line ends between them.
    private static func frames(_ bytes: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var frame: [UInt8] = []
        for byte in bytes {
            frame.append(byte)
            if byte == 0 {
                frames.append(frame)
                frame = []
            }
        }
        precondition(frame.isEmpty)
        return frames
    }

    private func deliver(_ isUp: Bool) throws {
        let bytes = isUp ? toServer.removeFirst() : toClient.removeFirst()
        let consumed =
            isUp
            ? server.receive(bytes.span.bytes, at: now, into: &effects)
            : client.receive(bytes.span.bytes, at: now, into: &effects)
        if consumed != bytes.count { complaints.append("a frame was not read whole") }
        try perform(atClient: !isUp, bytes)
    }

    private func perform(atClient: Bool, _ bytes: [UInt8]) throws {
        let (messages, completions, events) = (effects.messages, effects.completions, effects.events)
        effects.removeAll()
        for record in messages {
            if atClient { received(record, bytes) } else { try sent(record, bytes) }
        }
        for completion in completions { completed(completion) }
        for event in events {
            if atClient { try performAtClient(event.kind) } else { try performAtServer(event.kind) }
        }
    }

    // MARK: The client

    private func received(_ record: STOMPMessageRecord, _ bytes: [UInt8]) {
        let index = Int(bytes[record.body][record.body.lowerBound] - UInt8(ascii: "0"))
        if record.subscription != 7 { complaints.append("message \(index) came to no subscription") }
        if held.contains(where: { $0.index == index }) { complaints.append("message \(index) is in hand twice") }
        held.append(
            Held(
                index: index, headers: Array(bytes[record.headers]), connection: client.connection,
                number: STOMPMessageNumber(subscription: 7, number: received)))
        received += 1
    }

    private func completed(_ completion: STOMPReceiptCompletion) {
        guard let (promise, _) = promises.removeValue(forKey: completion.token) else {
            return complaints.append("a receipt ended twice")
        }
        guard completion.outcome == .received else {
            if completion.outcome == .aborted, case .operation(let operation, true) = promise, !isDone(operation) {
                return
            }
            if completion.outcome != .connectionLost { complaints.append("a receipt ended as \(completion.outcome)") }
            return
        }
        switch promise {
        // In a transaction it means only that the frame arrived.
        case .operation(let operation, let isInTransaction):
            if !isInTransaction, !isDone(operation) {
                complaints.append("\(operation) is confirmed and not done")
            }
        case .commit(let operations):
            if !operations.allSatisfy(isDone) { complaints.append("COMMIT is confirmed and not all of it done") }
        }
    }

    private func isDone(_ operation: Operation) -> Bool {
        switch operation {
        case .answer(let indices): indices.allSatisfy { queue[$0] == .done }
        case .send(let index): processed.contains(index)
        }
    }

    private func performAtClient(_ event: STOMPEngineEvent.Kind) throws {
        switch event {
        case .connected:
            try client.subscribe(id: "s", destination: "in", acknowledgement: scenario.mode, token: 7, at: now)
            if let stale { expectRefusal(of: stale, .staleMessage) }
        case .connectionFailed(let failure):
            if failure.reason != .closed, failure.reason != .closedBeforeConnected {
                complaints.append("the client's connection failed: \(failure)")
            }
        default: complaints.append("the client reports \(event)")
        }
    }

    // MARK: The broker

    private func performAtServer(_ event: STOMPEngineEvent.Kind) throws {
        switch event {
        case .connectReceived: try server.accept(server: "searched", at: now)
        case .subscribeReceived:
            isSubscribed = true
            for index in queue.indices where queue[index] == .ready {
                queue[index] = .out
                try server.deliver(
                    subscription: "s", destination: "in", messageID: "m\(index)", ackID: "a\(index)",
                    body: [UInt8(ascii: "0") + UInt8(index)], at: now)
            }
        case .ackReceived(let request): try acknowledged(request)
        case .beginReceived: staged = []
        case .commitReceived(let request): try committed(request)
        case .abortReceived:
            for (operation, _) in staged ?? [] {
                // Where receipts wait for COMMIT, as RabbitMQ's do, there are none.
                guard case .answer(let indices) = operation else { continue }
                for index in indices { queue[index] = .out }
            }
            staged = nil
        case .connectionFailed(let failure):
            if failure.reason != .closed, failure.reason != .closedBeforeConnected {
                complaints.append("the broker's connection failed: \(failure)")
            }
        default: complaints.append("the broker reports \(event)")
        }
    }

    private func acknowledged(_ request: STOMPAckRequest) throws {
        let name = scenario.version == .v12 ? request.id : request.messageID
        guard let name, let last = Int(name.dropFirst()), queue.indices.contains(last), queue[last] == .out else {
            return complaints.append("ACK names no message that is out")
        }
        if scenario.version == .v11, request.subscription != "s" { complaints.append("ACK names no subscription") }
        let indices = scenario.mode == .client ? queue.indices.filter { $0 <= last && queue[$0] == .out } : [last]
        try processed(.answer(indices), isInTransaction: request.transaction != nil, request.receipt)
    }

    private func sent(_ record: STOMPMessageRecord, _ bytes: [UInt8]) throws {
        let headers = STOMPHeaderReader(version: server.version).headers(in: bytes[record.headers].span.bytes)
        let index = Int(bytes[record.body][record.body.lowerBound] - UInt8(ascii: "0"))
        try processed(.send(index), isInTransaction: headers["transaction"] != nil, headers["receipt"])
    }

    private func processed(_ operation: Operation, isInTransaction: Bool, _ receipt: String?) throws {
        if isInTransaction {
            if staged == nil { complaints.append("\(operation) is in a transaction that is over") }
            staged?.append((operation, receipt))
            if case .answer(let indices) = operation { for index in indices { queue[index] = .staged } }
            if scenario.confirmsCommitEarly, case .send = operation { return }
        } else {
            if !plain.contains(operation) { complaints.append("\(operation) took effect outside its transaction") }
            apply(operation)
        }
        if let receipt { try server.sendReceipt(receipt, at: now) }
    }

    private func apply(_ operation: Operation) {
        switch operation {
        case .answer(let indices): for index in indices { queue[index] = .done }
        case .send(let index):
            if processed.contains(index) { complaints.append("message \(index) was sent twice") }
            processed.append(index)
        }
    }

    private func committed(_ request: STOMPTransactionRequest) throws {
        guard let operations = staged else { return complaints.append("COMMIT of a transaction that is over") }
        if operations.map(\.operation) != committed { complaints.append("the transaction is not whole: \(operations)") }
        staged = nil
        for (operation, receipt) in operations {
            if scenario.confirmsCommitEarly, case .send = operation {
                late.append((operation, receipt))
            } else {
                apply(operation)
            }
        }
        if let receipt = request.receipt { try server.sendReceipt(receipt, at: now) }
    }

    private func process() throws {
        let (operation, receipt) = late.removeFirst()
        apply(operation)
        if let receipt, server.phase == .connected { try server.sendReceipt(receipt, at: now) }
    }

    // MARK: Completion

    func complete() {
        for _ in 0..<200 {
            if client.phase == .closed {
                take(.connect)
            } else if !toServer.isEmpty {
                take(.deliver(up: true))
            } else if !toClient.isEmpty {
                take(.deliver(up: false))
            } else if !late.isEmpty {
                take(.process)
            } else if transaction != nil {
                take(.commit)
            } else if !held.isEmpty {
                take(.answer(0, inTransaction: false))
            } else {
                return checkCompletion()
            }
        }
        complaints.append("it never becomes quiet")
    }

    private func checkCompletion() {
        if queue.contains(where: { $0 != .done }) { complaints.append("a message is lost: \(queue)") }
        if !promises.isEmpty || client.pendingReceipts > 0 { complaints.append("receipts are awaited for ever") }
        // One that is in a transaction is sent when that is committed.
        if !hasTransacted, processed != processed.sorted() {
            complaints.append("messages were sent in another order: \(processed)")
        }
        if client.subscriptions.entries.first?.unanswered.count != 0 {
            complaints.append("messages count as unanswered")
        }
    }

    // MARK: A cut within a frame

    /// The number of bytes of the next frame.
    func nextFrameCount(up isUp: Bool) -> Int { (isUp ? toServer : toClient).first?.count ?? 0 }

    var canBreak: Bool { breaksLeft > 0 && client.phase != .closed }

    /// So many bytes of the next frame arrive, and the link breaks.
    func cutWithinFrame(up isUp: Bool, after count: Int) {
        let bytes = Array((isUp ? toServer : toClient)[0].prefix(count))
        _ =
            isUp
            ? server.receive(bytes.span.bytes, at: now, into: &effects)
            : client.receive(bytes.span.bytes, at: now, into: &effects)
        do { try perform(atClient: !isUp, bytes) } catch { complaints.append("\(error)") }
        take(.cut)
    }

    // MARK: Writing

    func write(into writer: inout StateWriter) {
        writer.put(promises.count)
        for (_, (promise, number)) in promises.sorted(by: { $0.key < $1.key }) {
            writer.put(name: number << 1)
            switch promise {
            case .operation(let operation, let isInTransaction):
                write([operation], &writer)
                writer.put(isInTransaction)
            case .commit(let operations): write(operations, &writer)
            }
        }
        writer.put(breaksLeft)
        writer.put(hasTransacted, isSubscribed, stale != nil, staged != nil, transaction != nil, committed != nil)
        writer.put(nextSend)
        writer.put(processed)
        writer.put(queue.map(\.rawValue))
        writer.put(held.map(\.index))
        writer.put(Int(received))
        write(transaction?.operations ?? [], &writer)
        writer.put(transaction?.answered.map(\.index) ?? [])
        write(plain, &writer)
        write(committed ?? [], &writer)
        for operations in [staged ?? [], late] {
            write(operations.map(\.operation), &writer)
            for (_, receipt) in operations { write(receipt: receipt, &writer) }
        }
        for frames in [toServer, toClient] {
            writer.put(frames.count)
            for frame in frames { write(frame, &writer) }
        }
        client.write(into: &writer)
        server.write(into: &writer)
    }

    private func write(_ operations: [Operation], _ writer: inout StateWriter) {
        writer.put(operations.count)
        for operation in operations {
            switch operation {
            case .answer(let indices): writer.put(indices)
            case .send(let index): writer.put(100 + index)
            }
        }
    }

    private func write(receipt: String?, _ writer: inout StateWriter) {
        guard let receipt else { return writer.put(-1) }
        // The engine's own are apart from the numbers.
        let digits = receipt.hasPrefix("send-") ? String(receipt.dropFirst(5)) : receipt
        writer.put(name: UInt64(digits)! << 1 | (receipt == digits ? 0 : 1))
    }

    private func write(_ frame: [UInt8], _ writer: inout StateWriter) {
        for line in frame.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            for header in ["receipt:", "receipt-id:"] where line.starts(with: header.utf8) {
                write(receipt: String(decoding: line.dropFirst(header.utf8.count), as: UTF8.self), &writer)
            }
            if !line.starts(with: "receipt".utf8) { writer.put(bytes: line) }
        }
    }
}

extension STOMPEngine {
    /// Writes down what an engine does next depends on, times aside: no time passes in an exhaustive search.
    borrowing func write(into writer: inout StateWriter) {
        writer.put(name(of: phase))
        writer.put(subscriptions.entries.count)
        for entry in subscriptions.entries {
            writer.put(Int(entry.unanswered.next))
            for number in 0..<entry.unanswered.next { writer.put(entry.unanswered.contains(number)) }
            // What is unanswered after an abort.
            var rest = entry.unanswered
            for (number, open) in transactions { rest.transactionEnded(number, open.answers, isAborted: true) }
            for number in 0..<rest.next { writer.put(rest.contains(number)) }
        }
        writer.put(transactions.count)
        for (_, open) in transactions.sorted(by: { $0.key < $1.key }) {
            writer.put(open.answers.map { Int($0.number) })
        }
        writer.put(pendingReceipts)
        writer.put(owedReceipt != 0, transactionReceipts.isEmpty)
        writer.put(transactionReceipts.heldBack.count)
    }

    private func name(of phase: Phase) -> Int {
        switch phase {
        case .closed: 0
        case .connecting: 1
        case .deciding: 2
        case .connected: 3
        case .leaving: 4
        case .closing: 5
        }
    }
}
