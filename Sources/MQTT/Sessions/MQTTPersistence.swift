import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization
import Transport

/// The session store of a client: opens it before anything depends on it, restores the session, reports what is stored,
/// and closes it when the client has disconnected.
///
/// ``prepare(_:for:)``, ``close(_:)`` and ``removeAll(_:)`` may be called on any thread, ``beginOpening(_:)`` on the loop's.
/// The store is opened and written on a thread of its own (see ``MQTTJournal``); results go to the loop's thread. Jobs on
/// these threads keep the client alive.
final class MQTTPersistence: Sendable {
    private typealias Call = PendingCall<Result<Void, MQTTError>>

    private enum Phase {
        case unopened
        /// With the callers that wait until it is open; those without a purpose wait to close it.
        case opening([(call: Call, purpose: Purpose?)])
        case open(MQTTJournal)
        /// The store has failed, and everything that waited for it has ended: the next attempt closes it and opens it again.
        /// An attempt that did so earlier would restore messages that are about to fail, and send them.
        case failed(MQTTJournal)
        /// With the callers that wait until it is closed.
        case closing([Call])
    }

    private let store: any SessionStore
    private let phase = Lock(Phase.unopened)
    /// Ends of messages that could not be stored before the store was closed: they are stored first when it is opened again.
    private let unstoredEnds = Lock<[MQTTStoreRecord]>([])

    init(_ store: any SessionStore) { self.store = store }

    /// Nil until the store is open.
    var journal: MQTTJournal? {
        phase.withLock { phase in
            switch phase {
            case .open(let journal), .failed(let journal): journal
            case .unopened, .opening, .closing: nil
            }
        }
    }

    /// How many callers wait until the store is open.
    var waitingCount: Int { phase.withLock { if case .opening(let calls) = $0 { calls.count } else { 0 } } }

    /// Why the store is opened.
    enum Purpose {
        /// An attempt to connect, so that no connection depends on the store: a store that has failed is closed and
        /// opened again.
        case attempt
        /// A message that only a client which connects takes: without one, the store does not stay open for it.
        case publish
        /// A change of what is in the store.
        case change
    }

    /// What is to be done before the store is open.
    private enum Step { case opens, waits, isOpen, hasFailed }

    /// Begins to open the store for an attempt, on the loop's thread: a later disconnect sees that it is being opened, and
    /// closes it. Returns whether the attempt has to wait for the store.
    func beginOpening(_ core: MQTTClientCore) -> Bool {
        if Task.isCancelled { return true }
        switch enter(nil, for: .attempt) {
        case .opens:
            open(core)
            return true
        case .isOpen: return false
        case .waits, .hasFailed: return true
        }
    }

    /// Notes that the store is needed. While it is being opened or closed, `call` waits for that, if there is one.
    private func enter(_ call: Call?, for purpose: Purpose) -> Step {
        phase.withLock { phase in
            switch phase {
            case .unopened:
                phase = .opening(call.map { [($0, purpose)] } ?? [])
                return .opens
            case .opening(let calls): phase = .opening(calls + (call.map { [($0, purpose)] } ?? []))
            case .open: return .isOpen
            case .failed: return .hasFailed
            case .closing(let calls): phase = .closing(calls + (call.map { [$0] } ?? []))
            }
            return .waits
        }
    }

    /// The client has stopped: messages wait no longer, however long the store takes.
    func stop(_ failure: MQTTError) {
        let ended = phase.withLock { phase -> [Call] in
            guard case .opening(let calls) = phase else { return [] }
            phase = .opening(calls.filter { $0.purpose != .publish })
            return calls.filter { $0.purpose == .publish }.map(\.call)
        }
        for call in ended { call.end(.failure(failure)) }
    }

    /// Opens the store, unless it is open; every caller waits for the one that opens it.
    ///
    /// - Throws: for a message, why it cannot be published.
    nonisolated(nonsending) func prepare(_ core: MQTTClientCore, for purpose: Purpose) async throws(MQTTError) {
        var hasWaited = false
        while true {
            if purpose == .attempt, Task.isCancelled { throw .cancelledWait }
            if purpose == .publish, hasWaited || journal == nil,
                let reason = core.link.perform({ $0.publishers.reasonNotSupervised })
            {
                // The client may have disconnected meanwhile, and another one may be about to use the store.
                if hasWaited { await close(core) }
                throw reason.value
            }
            let call = Call()
            switch enter(call, for: purpose) {
            case .isOpen: return
            case .hasFailed:
                guard purpose == .attempt else { return }
                if let journal = takeJournal(core, onlyFailed: true).journal { await end(journal) }
                continue
            case .opens: open(core)
            case .waits: break
            }
            do throws(MQTTError) {
                try await call.answer(ifCancelled: .failure(.cancelledWait)).get()
            } catch {
                // Close the store if the client has stopped: no later step checks.
                if purpose != .change { core.loop.startTask { await self.close(core) } }
                throw error
            }
            hasWaited = true
        }
    }

    /// Takes the journal away from the client; with `onlyFailed` that of a store that has failed alone. While the store is
    /// being opened or closed, `call` waits for that, if there is one.
    private func takeJournal(
        _ core: MQTTClientCore, onlyFailed: Bool = false, orWait call: Call? = nil
    ) -> (journal: MQTTJournal?, waits: Bool) {
        let result = phase.withLock { phase -> (journal: MQTTJournal?, waits: Bool) in
            switch phase {
            case .unopened: return (nil, false)
            case .opening(let calls): phase = .opening(calls + (call.map { [($0, nil)] } ?? []))
            case .closing(let calls): phase = .closing(calls + (call.map { [$0] } ?? []))
            case .open where onlyFailed: return (nil, false)
            case .open(let journal), .failed(let journal):
                phase = .closing([])
                return (journal, false)
            }
            return (nil, call != nil)
        }
        if result.journal != nil { core.link.perform { $0.endJournal() } }
        return result
    }

    /// Closes the store once it holds everything that it was given, so that another client can use it. The next request
    /// opens it again. Does nothing if the client is connecting again.
    func close(_ core: MQTTClientCore) async {
        // Most have nothing to close, and the loop may not even be able to start.
        if phase.withLock({ if case .unopened = $0 { true } else { false } }) { return }
        while true {
            let call = Call()
            // On the loop's thread, where the client would begin to connect. A client whose loop cannot start does not
            // connect.
            let canConnect = (try? core.supervisor.startLoop()) != nil
            let (journal, waits) =
                canConnect
                ? await core.loop.result { self.beginClosing(core, call) } : takeJournal(core, orWait: call)
            if let journal { return await end(journal) }
            guard waits else { return }
            _ = await call.answer()
        }
    }

    /// Takes the journal away from the client. If there is no journal to take, returns whether `call` waits for the
    /// thread of the store.
    private func beginClosing(_ core: MQTTClientCore, _ call: Call) -> (journal: MQTTJournal?, waits: Bool) {
        guard core.supervisor.isIdle else { return (nil, false) }
        // A connection that was abandoned may still be open until its end is reported: it must not outlive the journal.
        core.link.dropConnectionNow()
        return takeJournal(core, orWait: call)
    }

    /// Closes the store of a journal that was taken away from the client.
    private func end(_ journal: MQTTJournal) async {
        let ends = await journal.close()
        if !ends.isEmpty { unstoredEnds.withLock { $0 += ends } }
        closed()
    }

    private func closed() {
        let calls = phase.withLock { phase -> [Call] in
            guard case .closing(let calls) = phase else { return [] }
            phase = .unopened
            return calls
        }
        for call in calls { call.end(.success(())) }
    }

    /// Deletes everything in the store, which is opened if need be.
    func removeAll(_ core: MQTTClientCore) async throws(MQTTError) {
        repeat {
            try await prepare(core, for: .change)
            // Unless a disconnect at the same time has closed it.
        } while try await journal?.removeAll() != true
    }

    // MARK: On the store's thread

    private func open(_ core: MQTTClientCore) {
        let thread: SerialThread
        do {
            thread = try SerialThread(named: "mqtt-store", for: core.loop)
        } catch {
            return opened(.failure(MQTTError(connecting: error)))
        }
        thread.run { [self] in
            do {
                let stored = try store.open()
                if closesAtOnce() {
                    store.close()
                    return closed()
                }
                let clientID = try identifier(stored, core.clientIDTemplate)
                let patience = core.settings.engineOptions.value.requestTimeout
                let journal = MQTTJournal(store, thread: thread, loop: core.loop, patience: patience) {
                    [weak core] ticket in
                    if let core { Self.persisted(through: ticket, core) }
                } isSilent: { [weak core] in
                    core?.storeIsSilent()
                } failed: { [weak core] error in
                    // Not `self`, which holds the journal.
                    if let core { core.persistence?.failed(error, core) }
                }
                restore(stored, clientID: clientID, journal: journal, core)
                if let damage = stored.damage { core.news.tell(.storeDamaged(damage)) }
                opened(.success(journal))
            } catch let error as MQTTError {
                store.close()
                opened(.failure(error))
            } catch {
                opened(.failure(MQTTError(store: error)))
            }
        }
    }

    /// Whether the client has stopped meanwhile, and only callers of `close` still wait. Subscriptions do not receive the
    /// stored messages then, since they would receive them again at the next opening.
    private func closesAtOnce() -> Bool {
        phase.withLock { phase in
            guard case .opening(let calls) = phase, calls.contains(where: { $0.purpose == nil }),
                calls.allSatisfy({ $0.purpose == nil || $0.call.isOver })
            else { return false }
            phase = .closing(calls.map(\.call))
            return true
        }
    }

    private func opened(_ result: Result<MQTTJournal, MQTTError>) {
        let calls = phase.withLock { phase -> [Call] in
            guard case .opening(let calls) = phase else { return [] }
            phase = if case .success(let journal) = result { .open(journal) } else { .unopened }
            return calls.map(\.call)
        }
        for call in calls { call.end(result.map { _ in }) }
    }

    /// A session belongs to a client identifier: a random identifier, or one chosen by the server, is replaced by the
    /// stored one.
    private func identifier(_ stored: StoredSession, _ wanted: String) throws(MQTTError) -> String? {
        guard let known = stored.clientID else { return nil }
        if wanted.isEmpty || wanted.utf8.contains(UInt8(ascii: "%")) || wanted.hasSameBytes(as: known) {
            return known
        }
        throw MQTTError(
            .storeFailed,
            "The session store holds the session of client '\(known)', not of '\(wanted)'. Give each client a store of its own."
        )
    }

    private func restore(_ stored: StoredSession, clientID: String?, journal: MQTTJournal, _ core: MQTTClientCore) {
        let limits = store.limits
        var image = MQTTSessionImage()
        for record in stored.records { image.apply(record) }
        // Another client may have ended the message since, or have deleted everything.
        var ends: [MQTTStoreRecord] = []
        unstoredEnds.withLock { swap(&ends, &$0) }
        ends.removeAll { !image.canChange(by: $0) }
        for end in ends { image.apply(end) }
        let report = core.link.perform { [ends, image] machine -> MQTTUnmatchedMessages.Report in
            var engine = machine.engine.configuration
            engine.persists = true
            engine.maximumQueuedMessages = min(engine.maximumQueuedMessages, limits.maximumMessages)
            engine.maximumQueuedBytes = min(engine.maximumQueuedBytes, limits.maximumBytes)
            if let clientID { engine.clientID = clientID }
            let now = core.loop.now
            engine.wallClockOffset = journal.wallClockOffset
            let session = MQTTSession(
                restoring: stored.records + ends, at: now, wallClockOffset: engine.wallClockOffset
            ) { _ in MQTTWaitingPublishers.unawaitedBit }
            // Another client may have used the store since this one did.
            machine.engine.configuration = engine
            machine.engine.restore(session)
            machine.journal = journal
            if !ends.isEmpty { journal.append(ends, through: machine.engine.lastTicket) }
            defer { machine.flushRecords() }
            machine.engine.restoreFilters(of: image)
            return machine.unmatched.restore(image.kept, &machine.engine, at: now)
        }
        core.subscriptions.report(report)
        // Before anything that waits for the store.
        core.loop.execute { core.subscriptions.storeOpened() }
    }

    private static func persisted(through ticket: UInt64, _ core: MQTTClientCore) {
        core.loop.execute {
            let afterLock = MQTTAfterLock.apart(on: core.loop)
            let now = core.loop.now
            var stored = core.link.perform(urgent: true) { machine in
                machine.persisted(through: ticket, at: now, into: afterLock)
            }
            stored.resume(returning: .success(()))
            afterLock.perform(RawSpan())
        }
    }

    /// Nothing can be stored any more: the waiting callers fail, and the connection ends, so that nothing is acknowledged
    /// that is not stored.
    private func failed(_ error: MQTTError, _ core: MQTTClientCore) {
        core.loop.execute { [self] in
            var ended = MQTTEndedPublishers()
            var waiters = core.link.perform { $0.takeUnstored(&ended) }
            waiters.resume(returning: .failure(error))
            ended.resume()
            core.storeFailed(error)
            core.link.dropConnection()
            core.supervisor.stopTrying(error)
            phase.withLock { phase in
                // Unless the client has disconnected meanwhile, and opened the store again.
                if case .open(let journal) = phase, journal.failure != nil { phase = .failed(journal) }
            }
        }
    }
}
