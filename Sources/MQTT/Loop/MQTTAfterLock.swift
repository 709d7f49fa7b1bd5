import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// What one input of ``MQTTMachine`` leads to: filled under the link's lock, performed after it is released. Both happen
/// on the loop's thread. All links of a loop share one, so that its arrays are allocated once.
final class MQTTAfterLock: LinkAfterLock {
    /// Memory for batches.
    let pool = MQTTBatchPool()
    /// What there is to do.
    ///
    /// Safe without checks, which would cost a quarter of a round trip: the link uses it under its lock or on the loop's
    /// thread, and no access to a field lasts while something is called that may change the same field.
    @safe @exclusivity(unchecked) var work = MQTTWork()

    init() {}

    var isReceiving: Bool { work.pieceStart > 0 }

    func assign(_ index: UInt32, to route: MQTTRoute) {
        if route.receivers.pending.isEmpty { work.touchedRoutes.append(route) }
        route.receivers.pending.append(index)
    }

    func perform(_ bytes: RawSpan) {
        let refusing = work.effects.events.contains { $0.kind.isRefusalOfFilter } ? work.core : nil
        if let core = work.core {
            // A new connection is handled before its first messages are delivered, all other events after.
            for event in work.effects.events where Self.isConnected(event) { core.handle(event.kind) }
            if !work.effects.messages.isEmpty {
                deliver(bytes, core)
                work.readers.resume(returning: ())
                if work.mayBeFull { reportFull(core) }
            }
            for event in work.effects.events where !Self.isConnected(event) { core.handle(event.kind) }
            if work.hasPinged { core.news.tell(.pingSent) }
            let unmatched = work.unmatched
            if !unmatched.isEmpty { core.subscriptions.report(unmatched) }
            for error in work.undelivered { core.news.tell(.undelivered(error)) }
            if let failure = work.connectFailure { core.connectWasNotSent(failure) }
            if let standstill = work.standstill { core.report(standstill) }
            if work.unsentCount > 0 { core.news.tell(.unsentMessagesDiscarded(work.unsentCount)) }
        }
        if work.isQuiet || work.closed != nil {
            pool.trim()
            work.core?.subscriptions.knownRouter?.forgetTopics(keepingCapacity: false)
        }
        // It resumes callers of disconnect(), after which nothing of the connection is left.
        if let closed = work.closed { work.core?.connectionClosed(closed) }
        // Last, so that the resumed callers find the state that belongs to their answer.
        work.resumptions.drain { $0.resume() }
        work.batchEnds.drain { $0.resume() }
        work.queueWaiters.resume(returning: nil)
        work.clear()
        // Once, when all that was refused is known: the subscriptions that are left may want something else.
        refusing?.subscriptions.reconcile()
    }

    /// Reports if the server can send no more because messages were not acknowledged manually.
    private func reportFull(_ core: MQTTClientCore) {
        let now = core.loop.now
        guard let full = core.link.perform({ $0.manual.reportFull($0.engine, at: now) }) else { return }
        core.news.tell(.receiveMaximumReached(oldestTopic: full.topic, age: .nanoseconds(full.age)))
    }

    private static func isConnected(_ event: MQTTEngineEvent) -> Bool {
        if case .connected = event.kind { true } else { false }
    }

    // MARK: Delivery

    /// Delivers the messages of one read to their subscriptions, as one batch each.
    private func deliver(_ bytes: RawSpan, _ core: MQTTClientCore) {
        if let route = work.uniformRoute {
            // Few messages must not keep the memory of many.
            let isLarge = work.effects.messageBytes >= MQTTBatchPool.minimumBytes
            var storage = isLarge ? pool.take() : MQTTBatchStorage()
            let topic = work.effects.commonTopic(in: bytes)
            storage.takeAll(&work.effects, of: bytes)
            return deliver(storage, topic, to: route, core)
        }
        for route in work.touchedRoutes {
            // Few messages must not keep the large memory of many.
            var storage = route.receivers.pending.count < 256 ? MQTTBatchStorage() : pool.take()
            storage.fill(work.effects.messages.span, route.receivers.pending.span, of: bytes)
            route.receivers.pending.removeAll(keepingCapacity: true)
            deliver(storage, nil, to: route, core)
        }
    }

    private func deliver(_ storage: MQTTBatchStorage, _ topic: String?, to route: MQTTRoute, _ core: MQTTClientCore) {
        // Count before a receiver can have them.
        core.parts.counters.received(storage.records.count)
        let batch = MQTTBatch(
            storage, aliasTopics: work.effects.aliasTopics, commonTopic: topic, version: work.version, core: core,
            route: route, pool: pool)
        if route.receivers.areRequests { return route.receiveReplies(batch) }
        guard let queue = route.receivers.queue else { return }
        if route.acknowledgement == .manual {
            let now = core.loop.now
            // Before the queue has it: a full one drops messages from it.
            core.link.perform { $0.manual.add(batch, at: now) }
        }
        core.subscriptions.push(batch, to: queue, of: route, for: &work.readers)
    }
}

/// What one input led to.
struct MQTTWork: ~Copyable {
    var core: MQTTClientCore?
    var effects = MQTTEffects()
    /// Where the next piece of the bytes begins that are being received.
    var pieceStart = 0
    var version = MQTTVersion.v3_1_1
    /// The subscription that receives every message of this read, if there is only one.
    var uniformRoute: MQTTRoute?
    /// The number of each message's destination in the router.
    var destinations: [UInt32] = []
    /// Otherwise the subscriptions that receive messages, which hold the messages' indexes.
    var touchedRoutes: [MQTTRoute] = []
    /// The readers that waited for the messages.
    var readers = UniqueArray<Waiter<Void>>()
    var resumptions = UniqueArray<Resumption<MQTTWaitingPublishers.Answer>>()
    var batchEnds = UniqueArray<Resumption<Bool>>()
    /// Publishers that try again, because the queue has room.
    var queueWaiters = UniqueArray<Waiter<MQTTError?>>()
    /// Enqueued messages that were not delivered.
    var undelivered: [MQTTError] = []
    /// What became of messages without a subscription.
    var unmatched = MQTTUnmatchedMessages.Report()
    /// QoS 0 messages that were not sent before their connection ended.
    var unsentCount = 0
    /// Whether the server takes nothing, or takes bytes again; nil for no change.
    var standstill: Standstill?
    /// The server may send no more messages before some of these are acknowledged.
    var mayBeFull = false
    /// PINGREQ was written.
    var hasPinged = false
    /// The connection has not read much for a while.
    var isQuiet = false
    /// Why CONNECT was not sent.
    var connectFailure: MQTTError?
    /// The connection has closed; the inner value is the reason, nil if the server closed it gracefully.
    var closed: TransportError??

    /// Empties everything and keeps the capacity; all waiters have been resumed.
    mutating func clear() {
        effects.removeAll()
        if !undelivered.isEmpty { undelivered.removeAll() }
        if !unmatched.isEmpty { unmatched = .init() }
        touchedRoutes.removeAll(keepingCapacity: true)
        uniformRoute = nil
        core = nil
        unsentCount = 0
        standstill = nil
        isQuiet = false
        mayBeFull = false
        hasPinged = false
        connectFailure = nil
        closed = nil
    }
}

extension MQTTEngineEvent.Kind {
    /// Whether the engine waits until the client has told it what is wanted instead.
    fileprivate var isRefusalOfFilter: Bool {
        switch self {
        case .subscribeCompleted(_, let codes, _): codes.contains { $0.isError }
        case .requestLate, .requestNotWritten: true
        default: false
        }
    }
}
