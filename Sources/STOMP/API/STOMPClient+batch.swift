import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClient {
    /// Sends many messages in their order, and returns when their bytes are on their way to the socket.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent; those before it are.
    public nonisolated(nonsending) func send(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await core.sendAll(messages, group: nil, in: transaction?.transaction)
    }

    /// Sends many messages in their order, and returns when the broker has processed all of them: one wait for all
    /// receipts.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent or was refused; which of the others the broker
    ///   has processed is not known then.
    public nonisolated(nonsending) func sendAndConfirm(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let group = STOMPReceiptGroup()
        try await core.sendAll(messages, group: group, in: transaction?.transaction)
        try await core.wait(for: group)
    }

    /// Sends a message and returns when its bytes are on their way, with what its receipt can be awaited by.
    public nonisolated(nonsending) func sendForReceipt(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        let group = STOMPReceiptGroup()
        let message = STOMPOutgoingMessage(body, to: destination, options: options)
        try await core.sendAll([message], group: group, in: transaction?.transaction)
        return STOMPReceipt(core: core, group: group)
    }
}

extension STOMPClientCore {
    private enum Step {
        case sent, waitForRoom
        case waitForReceipts(Int)
    }

    /// Writes messages into the outbox, as many as fit each time that there is room.
    fileprivate nonisolated(nonsending) func sendAll(
        _ messages: [STOMPOutgoingMessage], group: STOMPReceiptGroup?, in transaction: STOMPTransaction?
    ) async throws(STOMPError) {
        let token = group.map { _ in STOMPMachine.groupBit | ids.add(1, ordering: .relaxed).newValue }
        // A mistake in any of the options is told before anything is sent.
        var headers: [STOMPHeaders] = []
        headers.reserveCapacity(messages.count)
        // Messages are looked at where they lie: taken out, each would cost a dozen counted references.
        let all = messages.span
        for index in all.indices {
            if let constant = all[index].options.constantHeaders {
                headers.append(constant)
            } else {
                headers.append(try all[index].options.allHeaders(expiringRelatively: expiresRelatively))
            }
        }
        var next = 0
        while next < messages.count {
            switch try write(messages, headers, from: &next, token, group, in: transaction) {
            case .sent: break
            case .waitForRoom:
                if Task.isCancelled { throw .cancelledWait }
                await link.room()
            case .waitForReceipts(let few):
                if let group { try await wait(for: group, downTo: few) }
            }
        }
    }

    private func write(
        _ messages: [STOMPOutgoingMessage], _ headers: [STOMPHeaders], from next: inout Int, _ token: UInt64?,
        _ group: STOMPReceiptGroup?, in transaction: STOMPTransaction?
    ) throws(STOMPError) -> Step {
        let limit = configuration.maximumOutboxBytes
        var index = next
        defer { next = index }
        let now = MonotonicClock.now
        let all = messages.span
        return try link.perform { machine throws(STOMPError) in
            if let failure = group?.failure { throw failure }
            while index < messages.count {
                guard machine.engine.output.count < limit else { return .waitForRoom }
                do throws(STOMPUsageError) {
                    try machine.engine.send(
                        destination: all[index].destination, headers: headers[index], body: all[index].body,
                        receiptToken: token, transaction: transaction,
                        omitsContentLength: all[index].options.omitsContentLength, at: now)
                } catch {
                    guard error.code == .tooManyReceipts, let group, group.outstanding > 0 else {
                        throw STOMPError(error)
                    }
                    return .waitForReceipts(group.outstanding / 2)
                }
                machine.sentCount += 1
                if let group, let token {
                    if group.outstanding == 0 { machine.groups[token & ~STOMPMachine.groupBit] = group }
                    group.outstanding += 1
                }
                index += 1
            }
            return .sent
        }
    }
}
