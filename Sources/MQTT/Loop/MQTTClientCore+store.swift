import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

/// Where a client stands with its session store.
struct MQTTPersistence: Sendable {
    typealias Call = PendingCall<Result<Void, MQTTError>>

    enum Phase: Sendable {
        case unopened
        case opening([Call])
        case ready
    }

    var phase = Phase.unopened
    var journal: MQTTJournal?
}

extension MQTTClientCore {
    /// Opens the session store before anything depends on it; every caller waits for the one that opens it.
    nonisolated(nonsending) func prepareStore() async throws(MQTTError) {
        guard let store = configuration.sessionStore, !isStoreReady else { return }
        let call = MQTTPersistence.Call()
        let opens = persistence.withLock { persistence -> Bool? in
            switch persistence.phase {
            case .unopened:
                persistence.phase = .opening([call])
                return true
            case .opening(let calls):
                persistence.phase = .opening(calls + [call])
                return false
            case .ready:
                return nil
            }
        }
        guard let opens else { return }
        if opens { open(store) }
        let result = await call.answer {
        } onCancel: {
            call.end(.failure(.cancelledWait))
        }
        try result.get()
    }

    private var isStoreReady: Bool {
        persistence.withLock { if case .ready = $0.phase { true } else { false } }
    }

    private func open(_ store: any SessionStore) {
        let thread = SerialThread(named: "mqtt-store")
        thread.run { [self] in
            do {
                let stored = try store.open()
                let clientID = try identifier(stored)
                let journal = MQTTJournal(store, thread: thread) { [weak self] ticket in
                    self?.persisted(through: ticket)
                } failed: { [weak self] error in
                    self?.storeFailed(error)
                }
                restore(stored, clientID: clientID, limits: store.limits, journal: journal)
                if let damage = stored.damage { news.tell(.storeDamaged(damage)) }
                storeIsOpen(.success(()), journal: journal)
            } catch let error as MQTTError {
                store.close()
                storeIsOpen(.failure(error), journal: nil)
            } catch {
                storeIsOpen(.failure(MQTTError(store: error)), journal: nil)
            }
        }
    }

    private func storeIsOpen(_ result: Result<Void, MQTTError>, journal: MQTTJournal?) {
        let calls = persistence.withLock { persistence -> [MQTTPersistence.Call] in
            guard case .opening(let calls) = persistence.phase else { return [] }
            persistence.phase = journal == nil ? .unopened : .ready
            persistence.journal = journal
            return calls
        }
        for call in calls { call.end(result) }
    }

    /// A session belongs to a client identifier: one that is made at random, or by the server, is the stored one again.
    private func identifier(_ stored: StoredSession) throws(MQTTError) -> String? {
        guard let known = stored.clientID else { return nil }
        let wanted = configuration.clientID
        if wanted.isEmpty || wanted.utf8.contains(UInt8(ascii: "%")) || wanted.hasSameBytes(as: known) {
            return known
        }
        throw MQTTError(
            .storeFailed,
            "the session store holds the session of client '\(known)', not of '\(wanted)': give each client a store of its own"
        )
    }

    private func restore(
        _ stored: StoredSession, clientID: String?, limits: SessionStoreLimits, journal: MQTTJournal
    ) {
        let drops = link.perform { machine -> [MQTTKeeper.Drop] in
            var engine = machine.engine.configuration
            engine.persists = true
            engine.maximumQueuedMessages = min(engine.maximumQueuedMessages, limits.maximumMessages)
            engine.maximumQueuedBytes = min(engine.maximumQueuedBytes, limits.maximumBytes)
            if let clientID { engine.clientID = clientID }
            let now = MonotonicClock.now
            engine.wallClockOffset = WallClock.milliseconds * 1_000_000 - now
            let session = MQTTSession(
                restoring: stored.records, at: now, wallClockOffset: engine.wallClockOffset
            ) { _ in MQTTMachine.looseBit }
            machine.engine = MQTTEngine(configuration: engine, session: session)
            machine.journal = journal
            var image = MQTTSessionImage()
            for record in stored.records { image.apply(record) }
            return machine.restoreKept(image.kept, at: now)
        }
        report(drops)
    }

    // MARK: On the journal's thread

    private func persisted(through ticket: UInt64) {
        loop.execute { [self] in
            let scratch = MQTTScratch()
            let now = MonotonicClock.now
            var stored = link.perform(urgent: true) { machine in
                machine.persisted(through: ticket, at: now, into: scratch)
            }
            stored.resume(returning: .success(()))
            scratch.perform(RawSpan())
        }
    }

    /// What was promised cannot be kept any more: nothing more is promised.
    private func storeFailed(_ error: MQTTError) {
        loop.execute { [self] in
            var waiters = link.perform { machine in
                machine.callers.value.storeWaiters = []
                return machine.callers.value.storeSlots.takeAll()
            }
            waiters.resume(returning: .failure(error))
            connectionFailed(error)
            link.dropConnection()
        }
    }
}

extension MQTTMachine {
    /// Hands the engine's records to the journal; after everything that may have made some.
    @inline(__always)
    mutating func flushRecords() {
        if !engine.storeRecords.isEmpty { moveRecords() }
    }

    private mutating func moveRecords() {
        guard let journal else { return engine.storeRecords.removeAll() }
        journal.append(engine.storeRecords, through: engine.lastTicket)
        engine.storeRecords.removeAll(keepingCapacity: engine.storeRecords.capacity <= 1024)
    }

    /// Returns the callers that waited for what is stored now.
    mutating func persisted(
        through ticket: UInt64, at now: Int64, into scratch: MQTTScratch
    ) -> UniqueArray<Waiter<Result<Void, MQTTError>>> {
        scratch.work.core = core
        engine.persisted(through: ticket, at: now, into: &scratch.work.effects)
        updateReadingPaused(at: now)
        collect(into: scratch, at: now)
        var stored = UniqueArray<Waiter<Result<Void, MQTTError>>>()
        let count = callers.value.storeWaiters.firstIndex { $0.ticket > ticket } ?? callers.value.storeWaiters.count
        for wait in callers.value.storeWaiters[..<count] {
            // Those that were cancelled are gone.
            if let waiter = callers.value.storeSlots.take(wait.token) { stored.append(waiter) }
        }
        callers.value.storeWaiters.removeFirst(count)
        return stored
    }
}

/// A caller that waits until a record is stored.
struct MQTTStoreWait: Sendable {
    typealias Token = WaiterSlots<Result<Void, MQTTError>>.Token

    let ticket: UInt64
    let token: Token
}
