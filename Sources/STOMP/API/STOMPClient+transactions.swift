import MessagingShell
import STOMPCore

extension STOMPClient {
    /// Begins a transaction, which has to be committed or aborted; ``withTransaction(named:_:)`` does that.
    ///
    /// - Parameter name: its name for the broker and its logs, which no other transaction of the connection may have (STOMP
    ///   1.2 "BEGIN"); it must not begin with `tx-`. Default: nil, a number.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/notConnected`` without a connection, ``STOMPError/Code/invalidRequest`` for a
    ///   name that an open transaction has.
    public nonisolated func begin(named name: String? = nil) throws(STOMPError) -> STOMPTransactionHandle {
        STOMPTransactionHandle(
            transaction: try sender.write { engine, now throws(STOMPUsageError) in
                try engine.begin(named: name, at: now)
            })
    }

    /// Commits a transaction and returns when the broker has confirmed that.
    ///
    /// - Throws: ``STOMPError``: ``STOMPError/Code/notConnected`` without a connection, ``STOMPError/Code/stale`` if its own
    ///   has ended: nothing of it happened; ``STOMPError/Code/stale`` also if it was committed or aborted before; with
    ///   ``STOMPError/Code/connectionLost`` and ``STOMPError/Code/timedOut`` it is not known whether it happened, and another
    ///   commit of it, which throws `stale`, does not tell either.
    public nonisolated(nonsending) func commit(_ handle: STOMPTransactionHandle) async throws(STOMPError) {
        try await sender.confirmed { engine, token, now throws(STOMPUsageError) in
            try engine.commit(handle.transaction, receiptToken: token, at: now)
        }
    }

    /// Aborts a transaction.
    ///
    /// - Throws: ``STOMPError``: ``STOMPError/Code/notConnected`` without a connection, ``STOMPError/Code/stale`` if its own
    ///   has ended: the broker has aborted it then; ``STOMPError/Code/stale`` also if it was committed or aborted before.
    public nonisolated func abort(_ handle: STOMPTransactionHandle) throws(STOMPError) {
        try sender.write { engine, now throws(STOMPUsageError) in try engine.abort(handle.transaction, at: now) }
    }

    /// Runs `body` in a transaction: commits when it returns, aborts when it throws.
    ///
    /// A transaction does not survive its connection: then the commit throws ``STOMPError/Code/stale``, or
    /// ``STOMPError/Code/notConnected`` without a connection, and nothing of it has been processed. Without a connection at the
    /// beginning this throws ``STOMPError/Code/notConnected`` and does not run `body`.
    /// - Parameters:
    ///   - name: see ``begin(named:)``. Default: nil, a number.
    ///   - body: sends, acknowledges and rejects in the transaction that it is passed.
    @discardableResult
    public nonisolated(nonsending) func withTransaction<Result>(
        named name: String? = nil, _ body: (STOMPTransactionHandle) async throws -> Result
    ) async throws -> Result {
        let handle = try begin(named: name)
        do {
            let result = try await body(handle)
            try await commit(handle)
            return result
        } catch {
            // Has no effect if COMMIT was sent, or if the connection is gone, which aborts the transaction.
            try? abort(handle)
            throw error
        }
    }
}

/// A transaction of a client: the broker processes all frames that are sent, acknowledged or rejected in it, or none.
///
/// It ends with ``STOMPClient/commit(_:)``, ``STOMPClient/abort(_:)`` or its connection; using it afterwards throws
/// ``STOMPError/Code/stale``.
public struct STOMPTransactionHandle: Sendable, Hashable {
    let transaction: STOMPTransaction
}
