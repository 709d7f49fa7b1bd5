import MQTTCore
import Messaging
import Transport

/// What one input of the machine led to, performed on the loop's thread after the lock is released. All links of a
/// loop share one, so its arrays are allocated once.
final class MQTTScratch: LinkScratch {
    /// Memory for batches.
    let pool = MQTTBatchPool()
    private let owned = LoopOwned(MQTTWork())

    /// What there is to do.
    var work: MQTTWork {
        @inline(__always) unsafeAddress { UnsafePointer(owned.memory) }
        @inline(__always) unsafeMutableAddress { owned.memory }
    }

    init() {}

    deinit { owned.free() }

    func assign(_ index: UInt32, to route: MQTTRoute) {
        if route.pending.isEmpty { work.touchedRoutes.append(route) }
        route.pending.append(index)
    }

    func perform(_ bytes: RawSpan) {
        work.resumptions.resume()
        work.batchEnds.drain { $0.resume() }
        work.roomWaiters.resume(returning: ())
        if let core = work.core {
            for event in work.effects.events where event.isConnected { core.handle(event.kind) }
            if !work.effects.messages.isEmpty { deliver(bytes) }
            for event in work.effects.events where !event.isConnected { core.handle(event.kind) }
            let drops = work.keptDrops
            if !drops.isEmpty { core.report(drops) }
            for error in work.undelivered { core.news.tell(.undelivered(error)) }
            if let failure = work.openFailure { core.connectionFailed(failure) }
            if work.unsentCount > 0 { core.news.tell(.unsentMessagesDiscarded(work.unsentCount)) }
            if let closed = work.closed { core.connectionClosed(closed) }
        }
        if work.isQuiet { pool.trim() }
        work.clear()
    }
}

/// What one input led to.
struct MQTTWork: ~Copyable {
    var core: MQTTClientCore?
    var effects = MQTTEffects()
    var version = MQTTVersion.v3_1_1
    /// The one subscription that all messages go to, if it is one.
    var uniformRoute: MQTTRoute?
    /// Otherwise the subscriptions that got messages, which hold their indexes.
    var touchedRoutes: [MQTTRoute] = []
    /// The messages for one of them.
    var selected: [MQTTMessageRecord] = []
    var resumptions = Resumptions<MQTTMachine.PublishAnswer>()
    var batchEnds = UniqueArray<Resumption<Result<Void, MQTTError>>>()
    /// Publishers that find room in the queue again.
    var roomWaiters = UniqueArray<Waiter<Void>>()
    /// Enqueued messages that were given up.
    var undelivered: [MQTTError] = []
    /// Kept messages that were given up.
    var keptDrops: [MQTTKeeper.Drop] = []
    /// QoS 0 messages that were not sent before their connection ended.
    var unsentCount = 0
    /// A connection of the loop had nothing to do.
    var isQuiet = false
    /// The connection could not even begin.
    var openFailure: MQTTError?
    /// The connection is gone; the inner value says why, nil for an end in order.
    var closed: TransportError??

    /// Forgets everything and keeps the capacity. Nobody waits any more: all were resumed.
    mutating func clear() {
        effects.removeAll()
        if !undelivered.isEmpty { undelivered.removeAll() }
        if !keptDrops.isEmpty { keptDrops.removeAll() }
        touchedRoutes.removeAll(keepingCapacity: true)
        uniformRoute = nil
        core = nil
        unsentCount = 0
        isQuiet = false
        openFailure = nil
        closed = nil
    }
}

extension MQTTEngineEvent {
    fileprivate var isConnected: Bool {
        if case .connected = kind { true } else { false }
    }
}
