import MQTTCore
import Synchronization
import Transport

/// Writes a client's records to its store on the store's thread: those that arrive during one commit go into the next.
///
/// ``append(_:through:)`` is called under the link's lock, the other methods on any thread.
final class MQTTJournal: Sendable {
    private struct State {
        var records: [MQTTStoreRecord] = []
        /// The tickets of the newest record and of the newest that is stored.
        var ticket: UInt64 = 0
        var stored: UInt64 = 0
        /// Whether the alarm is set, or about to be.
        var isWatched = false
        /// A packet or a caller waits until one of the records is stored.
        var isAwaited = false
        /// Empty: memory that was used for the last records and is reused for the next ones.
        var spare: [MQTTStoreRecord] = []
        var commitIsDue = false
        var failure: MQTTError?
        /// Ends of messages that could not be stored, for the next time that the store is opened.
        var unstoredEnds: [MQTTStoreRecord] = []
        var isClosed = false
    }

    let store: any SessionStore
    private let thread: SerialThread
    private let loop: EventLoop
    /// The difference between the wall clock and the engine's clock, in nanoseconds, which the records that arrive were
    /// made with.
    let wallClockOffset: Int64
    private let state = Lock(State())
    /// Both are called on the store's thread.
    private let persisted: @Sendable (UInt64) -> Void
    private let failed: @Sendable (MQTTError) -> Void
    private let watch: StoreWatch

    /// - Parameters:
    ///   - patience: how long the store may store nothing before `isSilent` is called, on the loop's thread; nanoseconds.
    init(
        _ store: any SessionStore, thread: SerialThread, loop: EventLoop, patience: Int64,
        persisted: @escaping @Sendable (UInt64) -> Void,
        isSilent: @escaping @Sendable () -> Void,
        failed: @escaping @Sendable (MQTTError) -> Void
    ) {
        watch = StoreWatch(loop: loop, patience: patience, isSilent: isSilent)
        self.store = store
        self.thread = thread
        self.loop = loop
        wallClockOffset = (loop.timeOfDay * 1_000_000).advanced(byNanoseconds: -loop.now)
        self.persisted = persisted
        self.failed = failed
    }

    deinit {
        if isClosed { return }
        let store = store
        thread.run { store.close() }
    }

    /// Why nothing can be stored any more.
    var failure: MQTTError? { state.withLock { $0.failure } }

    /// Why a message cannot be accepted: the store has failed and is not open again, or a disconnect at the same time has
    /// closed it.
    static func failure(_ journal: MQTTJournal?, _ engine: borrowing MQTTEngine) -> MQTTError? {
        if let journal { return journal.failure }
        return engine.options.value.persists ? .disconnectedByUser : nil
    }

    /// Takes records over; cheap, under the link's lock. Records of messages that are done are stored without a report,
    /// because nothing waits for them.
    ///
    /// - Parameter ticket: that of the last record.
    func append(_ records: [MQTTStoreRecord], through ticket: UInt64) {
        let (isFirst, isUnwatched) = state.withLock { state in
            state.records += records
            state.ticket = ticket
            state.isAwaited = state.isAwaited || !records.allSatisfy(Self.isEnd)
            let (isFirst, isUnwatched) = (!state.commitIsDue, state.isAwaited && !state.isWatched)
            state.commitIsDue = true
            if isUnwatched { state.isWatched = true }
            return (isFirst, isUnwatched)
        }
        if isFirst { thread.run(asWorkOf: loop) { self.commit() } }
        if isUnwatched { loop.execute { self.watch.begin(self) } }
    }

    /// How many records are stored, by their tickets; nil, and not watched any longer, if none waits.
    func progress() -> UInt64? {
        state.withLock { state in
            state.isWatched = state.stored != state.ticket && state.failure == nil && !state.isClosed
            return state.isWatched ? state.stored : nil
        }
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
        guard failure == nil else { return retainEnds(of: records) }
        correctTimes(of: &records)
        attempt {
            do {
                try store.append(records)
            } catch {
                retainEnds(of: records)
                throw error
            }
            state.withLock { $0.stored = ticket }
            if isAwaited { persisted(ticket) }
        }
        guard records.capacity <= Self.spareLimit else { return }
        records.removeAll(keepingCapacity: true)
        state.withLock { swap(&records, &$0.spare) }
    }

    /// The most records for which an idle journal keeps memory.
    private static let spareLimit = 1024

    /// The store still has messages whose end was reported, for example to their publishers.
    private func retainEnds(of records: [MQTTStoreRecord]) {
        let ends = records.filter(Self.isEnd)
        if !ends.isEmpty { state.withLock { $0.unstoredEnds += ends } }
    }

    /// Stores the client identifier of the session.
    func begin(clientID: String) {
        thread.run { self.attempt { try self.store.setClientID(clientID) } }
    }

    /// Deletes everything in the store; returns when that is done, with false if the store was closed before.
    func removeAll() async throws(MQTTError) -> Bool {
        let call = PendingCall<Result<Bool, MQTTError>>()
        thread.run {
            do {
                let isOpen = !self.isClosed
                if isOpen {
                    try self.store.removeAll()
                    self.state.withLock { $0.unstoredEnds = [] }
                }
                call.end(.success(isOpen))
            } catch {
                call.end(.failure(MQTTError(store: error)))
            }
        }
        return try await call.answer().get()
    }

    /// Closes the store when it holds what it was given; nothing is appended after this. Returns the ends of messages that a
    /// store which has failed does not have.
    func close() async -> [MQTTStoreRecord] {
        let call = PendingCall<[MQTTStoreRecord]>()
        thread.run {
            self.store.close()
            self.loop.execute { self.watch.end() }
            call.end(
                self.state.withLock { state in
                    state.isClosed = true
                    return state.unstoredEnds
                })
        }
        return await call.answer()
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            let failure = MQTTError(store: error)
            state.withLock { $0.failure = failure }
            failed(failure)
        }
    }

    /// If the wall clock was set since the store was opened, shifts the stored times by the difference. Ignores less than a
    /// second, because the two clocks are read one after the other.
    private func correctTimes(of records: inout [MQTTStoreRecord]) {
        let change = loop.timeOfDay - loop.now.advanced(byNanoseconds: wallClockOffset) / 1_000_000
        guard change.magnitude >= 1000 else { return }
        for index in records.indices {
            switch records[index] {
            case .message(var message) where message.time != 0:
                // 0 means that the time is not known.
                message.time = max(1, message.time + change)
                records[index] = .message(message)
            case .kept(var message):
                message.time += change
                records[index] = .kept(message)
            default: break
            }
        }
    }

    /// Whether a message is done: no packet and no caller waits until that is stored.
    private static func isEnd(_ record: MQTTStoreRecord) -> Bool {
        switch record {
        case .finished, .retired, .keptFinished: true
        default: false
        }
    }
}
