import Messaging
import STOMPCore

extension STOMPClient {
    /// Begins a transaction. ``withTransaction(_:)`` ends it by itself.
    public nonisolated func begin() throws(STOMPError) -> STOMPTransactionHandle {
        STOMPTransactionHandle(
            transaction: try core.sender.write { engine, now throws(STOMPUsageError) in try engine.begin(at: now) })
    }

    /// Makes all of a transaction count; returns when the broker has confirmed it.
    public nonisolated(nonsending) func commit(_ handle: STOMPTransactionHandle) async throws(STOMPError) {
        try await core.sender.confirmed { engine, token, now throws(STOMPUsageError) in
            try engine.commit(handle.transaction, receiptToken: token, at: now)
        }
    }

    /// Takes all of a transaction back.
    public nonisolated func abort(_ handle: STOMPTransactionHandle) throws(STOMPError) {
        try core.sender.write { engine, now throws(STOMPUsageError) in try engine.abort(handle.transaction, at: now) }
    }

    /// Runs `body` in a transaction: commits when it returns, aborts when it throws.
    ///
    /// A transaction does not survive its connection: then the commit throws ``STOMPError/Code/stale``, and nothing of
    /// it counts.
    public nonisolated(nonsending) func withTransaction<Result>(
        _ body: (STOMPTransactionHandle) async throws -> Result
    ) async throws -> Result {
        let handle = try begin()
        let result: Result
        do {
            result = try await body(handle)
        } catch {
            // The connection may be gone, and the transaction with it: that is an abort, too.
            try? abort(handle)
            throw error
        }
        try await commit(handle)
        return result
    }
}
