import MQTTCore
import Messaging
import Transport

/// What one input of the machine led to, performed on the loop's thread after the lock is released. All links of a
/// loop share one, so its arrays are allocated once.
final class MQTTScratch: LinkScratch {
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
    var batchResumptions: [MQTTPublishBatch] = []
    /// Publishers that find room in the queue again.
    var roomWaiters: [UnsafeContinuation<Void, Never>] = []
    /// Enqueued messages that were given up.
    var undelivered: [MQTTError] = []
    /// Kept messages that were given up.
    var keptDrops: [MQTTKeeper.Drop] = []
    /// Memory for batches.
    let pool = MQTTBatchPool()
    /// A connection of the loop had nothing to do.
    var isQuiet = false
    /// The connection could not even begin.
    var openFailure: MQTTError?
    /// The connection is gone; the inner value says why, nil for an end in order.
    var closed: TransportError??

    init() {}

    func assign(_ index: UInt32, to route: MQTTRoute) {
        if route.pending.isEmpty { touchedRoutes.append(route) }
        route.pending.append(index)
    }

    func perform(_ bytes: RawSpan) {
        resumptions.resume()
        for batch in batchResumptions { batch.finish() }
        for waiter in roomWaiters { waiter.resume() }
        if let core {
            for event in effects.events where event.isConnected { core.handle(event.kind) }
            if !effects.messages.isEmpty { deliver(bytes) }
            for event in effects.events where !event.isConnected { core.handle(event.kind) }
            if !keptDrops.isEmpty { core.report(keptDrops) }
            for error in undelivered { core.news.tell(.undelivered(error)) }
            if let openFailure { core.connectionFailed(openFailure) }
            if let closed { core.connectionClosed(closed) }
        }
        if isQuiet { pool.trim() }
        clear()
    }

    private func clear() {
        effects.removeAll()
        resumptions.removeAll()
        batchResumptions.removeAll(keepingCapacity: true)
        if !roomWaiters.isEmpty { roomWaiters.removeAll() }
        if !undelivered.isEmpty { undelivered.removeAll() }
        if !keptDrops.isEmpty { keptDrops.removeAll() }
        touchedRoutes.removeAll(keepingCapacity: true)
        uniformRoute = nil
        core = nil
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
