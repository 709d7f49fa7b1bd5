import MQTTCore
import Synchronization
import Transport

/// Brings a client's records to its store, on a thread of its own: what came in during one commit goes in the next.
final class MQTTJournal: Sendable {
    private struct State {
        var records: [MQTTStoreRecord] = []
        /// The ticket of the newest record.
        var ticket: UInt64 = 0
        /// Something waits until one of the records is stored.
        var isAwaited = false
        /// Empty; the memory of the last records, for the next ones.
        var spare: [MQTTStoreRecord] = []
        var commitIsDue = false
        var failure: MQTTError?
    }

    let store: any SessionStore
    let thread: SerialThread
    private let state = Lock(State())
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

    /// Takes records over; cheap, under the link's lock. `ticket` is that of the last one. Nothing waits for the ends of
    /// messages: of them alone nobody is told.
    func append(_ records: [MQTTStoreRecord], through ticket: UInt64) {
        let isFirst = state.withLock { state in
            state.records += records
            state.ticket = ticket
            state.isAwaited = state.isAwaited || !records.allSatisfy(Self.isEnd)
            defer { state.commitIsDue = true }
            return !state.commitIsDue
        }
        if isFirst { thread.run { self.commit() } }
    }

    private func commit() {
        var records: [MQTTStoreRecord] = []
        let (ticket, isAwaited, failure) = state.withLock { state in
            defer {
                swap(&records, &state.records)
                swap(&state.records, &state.spare)
                state.isAwaited = false
                state.commitIsDue = false
            }
            return (state.ticket, state.isAwaited, state.failure)
        }
        guard failure == nil else { return }
        attempt {
            try store.append(records)
            if isAwaited { persisted(ticket) }
        }
        guard records.capacity <= Self.spareLimit else { return }
        records.removeAll(keepingCapacity: true)
        state.withLock { swap(&records, &$0.spare) }
    }

    /// What a journal that has nothing to do holds on to at most.
    private static let spareLimit = 1024

    /// Notes whose session it is.
    func begin(clientID: String) {
        thread.run { self.attempt { try self.store.setClientID(clientID) } }
    }

    /// Forgets everything; returns when it is done.
    func removeAll() async throws(MQTTError) {
        let call = PendingCall<Result<Void, MQTTError>>()
        thread.run {
            do {
                try self.store.removeAll()
                call.end(.success(()))
            } catch {
                call.end(.failure(MQTTError(store: error)))
            }
        }
        try await call.answer().get()
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

    /// Whether a message is done: no packet and no caller waits until that is stored.
    private static func isEnd(_ record: MQTTStoreRecord) -> Bool {
        switch record {
        case .finished, .keptFinished: true
        default: false
        }
    }
}
