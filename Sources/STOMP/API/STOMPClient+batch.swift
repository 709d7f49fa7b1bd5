import Messaging
import STOMPCore

extension STOMPClient {
    /// Sends many messages in their order, and returns when their bytes are on their way to the socket.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent; those before it are.
    public nonisolated(nonsending) func send(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await core.sender.sendAll(messages, group: nil, in: transaction?.transaction)
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
        try await core.sender.sendAll(messages, group: group, in: transaction?.transaction)
        try await core.sender.wait(for: group)
    }

    /// Sends a message and returns when its bytes are on their way, with what its receipt can be awaited by.
    public nonisolated(nonsending) func sendForReceipt(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        let group = STOMPReceiptGroup()
        let message = STOMPOutgoingMessage(body, to: destination, options: options)
        try await core.sender.sendAll([message], group: group, in: transaction?.transaction)
        return STOMPReceipt(core: core, group: group)
    }
}
