import MQTTCore
import Synchronization
import Transport

/// Brings a client's records to its store, on a thread of its own: what came in during one commit goes in the next.
final class MQTTJournal: Sendable {
    private struct State {
        var records: [MQTTStoreRecord] = []
        /// The ticket of the newest record.
        var ticket: UInt64 = 0
        var commitIsDue = false
        var failure: MQTTError?
    }

    let store: any SessionStore
    let thread: SerialThread
    private let state = Mutex(State())
    /// Both on the journal's thread.
    private let persisted: @Sendable (UInt64) -> Void
    private let failed: @Sendable (MQTTError) -> Void

    init(
        _ store: any SessionStore, thread: SerialThread, persisted: @escaping @Sendable (UInt64) -> Void,
        failed: @escaping @Sendable (MQTTError) -> Void
    ) {
        self.store = store
        self.thread = thread
        self.persisted = persisted
        self.failed = failed
    }

    deinit {
        let store = store
        thread.run { store.close() }
    }

    /// Why nothing is stored any more.
    var failure: MQTTError? { state.withLock { $0.failure } }

    /// Takes records over; cheap, under the link's lock. `ticket` is that of the last one.
    func append(_ records: [MQTTStoreRecord], through ticket: UInt64) {
        let isFirst = state.withLock { state in
            if state.records.isEmpty { state.records = records } else { state.records += records }
            state.ticket = ticket
            defer { state.commitIsDue = true }
            return !state.commitIsDue
        }
        if isFirst { thread.run { self.commit() } }
    }

    private func commit() {
        let (records, ticket, failure) = state.withLock { state in
            defer {
                state.records = []
                state.commitIsDue = false
            }
            return (state.records, state.ticket, state.failure)
        }
        guard failure == nil else { return }
        attempt {
            try store.append(records)
            persisted(ticket)
        }
    }

    /// Notes whose session it is.
    func begin(clientID: String) {
        thread.run { self.attempt { try self.store.setClientID(clientID) } }
    }

    /// Forgets everything; returns when it is done.
    func removeAll() async throws(MQTTError) {
        let failure = await withUnsafeContinuation { (waiter: UnsafeContinuation<MQTTError?, Never>) in
            thread.run {
                do {
                    try self.store.removeAll()
                    waiter.resume(returning: nil)
                } catch {
                    waiter.resume(returning: MQTTError(store: error))
                }
            }
        }
        if let failure { throw failure }
    }

    private func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            let failure = MQTTError(store: error)
            state.withLock { $0.failure = failure }
            failed(failure)
        }
    }
}

extension MQTTError {
    init(store error: any Error) {
        self.init(.storeFailed, "the session store cannot be used: \(error)", underlying: error)
    }
}
