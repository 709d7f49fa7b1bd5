import Messaging
import STOMPCore

extension STOMPClient {
    /// Sends many messages in their order and returns when their bytes are in the outbox.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent; those before it are.
    public nonisolated(nonsending) func send(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await sender.sendAll(messages, group: nil, in: transaction?.transaction)
    }

    /// Sends many messages in their order and returns when the broker has processed all of them, with a single wait for
    /// their receipts.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent or was refused; it is not known then which of the
    ///   others the broker has processed.
    public nonisolated(nonsending) func sendAndConfirm(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let group = STOMPReceiptGroup()
        try await sender.sendAll(messages, group: group, in: transaction?.transaction)
        try await sender.wait(for: group)
    }

    /// Sends a message and returns when its bytes are in the outbox; its receipt can be awaited later.
    public nonisolated(nonsending) func sendForReceipt(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        let group = STOMPReceiptGroup()
        let message = STOMPOutgoingMessage(body, to: destination, options: options)
        try await sender.sendAll([message], group: group, in: transaction?.transaction)
        return STOMPReceipt(core: core, group: group)
    }
}
