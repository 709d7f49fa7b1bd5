import MessagingShell
import MessagingWire
import STOMPCore
import Transport

/// The results of one input of the machine. The machine fills it under the link's lock; the loop's thread performs it
/// after the lock is released. All links of a loop share one, so its arrays are allocated once.
final class STOMPAfterLock: LinkAfterLock {
    var core: STOMPClientCore?
    var effects = STOMPEffects()
    /// Where the next piece of the bytes begins that are being received.
    var pieceStart = 0
    var version = STOMPVersion.v12
    var connection: UInt32 = 0
    var resumptions = UniqueArray<Resumption<STOMPMachine.ReceiptAnswer>>()
    var batchEnds = UniqueArray<Resumption<Bool>>()
    var requestAnswers: [(UInt64, STOMPMachine.ReceiptAnswer)] = []
    /// The results of the SUBSCRIBE frames that follow CONNECTED.
    var subscriptions: [STOMPSubscriptions.Written] = []
    /// A heart-beat was written.
    var hasSentHeartBeat = false
    /// No large batch has arrived for a while.
    var isQuiet = false
    /// Whether the server takes nothing, or takes bytes again; nil for no change.
    var standstill: Standstill?
    /// Messages that were not sent before their connection ended.
    var unsentCount = 0
    /// Set when the connection has closed; the inner value is the error, nil for a graceful end.
    var closed: TransportError??
    /// The subscription that receives every message of this read, if there is only one.
    var uniformRoute: STOMPRoute?
    /// Otherwise the subscriptions that receive messages, which hold the messages' indexes.
    private(set) var touchedRoutes: [STOMPRoute] = []
    /// Messages without a subscription.
    var unmatchedCount = 0
    /// The readers that waited for the messages.
    private var readers = UniqueArray<Waiter<Void>>()
    /// Memory for batches.
    let pool = BatchPool<STOMPMessageRecord>()

    init() {}

    var isReceiving: Bool { pieceStart > 0 }

    /// Whether CONNECTED arrived.
    var hasConnected: Bool { effects.events.contains { Self.isConnected($0.kind) } }

    private static func isConnected(_ event: STOMPEngineEvent.Kind) -> Bool {
        if case .connected = event { true } else { false }
    }

    /// Whether the connection failed because the server did not answer, was silent or sent no receipt.
    var hasLostServer: Bool {
        effects.events.contains { record in
            guard case .connectionFailed(let failure) = record.kind else { return false }
            return switch failure.reason {
            case .connectTimeout, .heartBeatLost, .acknowledgementTimeout: true
            default: false
            }
        }
    }

    /// Whether the engine reports that the connection is over.
    private var hasEnded: Bool {
        effects.events.contains { record in
            switch record.kind {
            case .disconnected, .connectionFailed: true
            default: false
            }
        }
    }

    func assign(_ index: UInt32, to route: STOMPRoute) {
        if route.receivers.pending.isEmpty { touchedRoutes.append(route) }
        route.receivers.pending.append(index)
    }

    func perform(_ bytes: RawSpan) {
        if let core {
            for record in effects.events where Self.isConnected(record.kind) { core.handle(record.kind, subscriptions) }
            if !effects.messages.isEmpty {
                deliver(bytes, core)
                readers.resume(returning: ())
            }
            for record in effects.events where !Self.isConnected(record.kind) { core.handle(record.kind) }
            if hasSentHeartBeat { core.news.tell(.heartBeatSent) }
            if closed == nil, hasEnded { core.connectionIsEnding() }
            for (token, answer) in requestAnswers { core.subscriptions.requestAnswered(token, answer) }
            if let standstill { core.report(standstill) }
            if unsentCount > 0 { core.news.tell(.unsentMessagesDiscarded(unsentCount)) }
        }
        if isQuiet || closed != nil { pool.trim() }
        // It resumes callers of disconnect(), after which nothing of the connection is left.
        if let closed { core?.connectionClosed(closed) }
        // Last, so that the resumed callers find the state that belongs to their answer.
        resumptions.drain { $0.resume() }
        batchEnds.drain { $0.resume() }
        effects.removeAll()
        requestAnswers.removeAll(keepingCapacity: true)
        if !subscriptions.isEmpty { subscriptions = [] }
        core = nil
        hasSentHeartBeat = false
        isQuiet = false
        touchedRoutes.removeAll(keepingCapacity: true)
        uniformRoute = nil
        unmatchedCount = 0
        unsentCount = 0
        standstill = nil
        closed = nil
    }

    /// Delivers the messages of one read to their subscriptions, as one batch each.
    private func deliver(_ bytes: RawSpan, _ core: STOMPClientCore) {
        if let route = uniformRoute { deliver(effects.messages, of: bytes, to: route, core) }
        for route in touchedRoutes {
            let records = route.receivers.pending.map { effects.messages[Int($0)] }
            route.receivers.pending.removeAll(keepingCapacity: true)
            deliver(records, of: bytes, to: route, core)
        }
        if unmatchedCount > 0 { core.unmatched(unmatchedCount) }
    }

    private func deliver(
        _ records: [STOMPMessageRecord], of bytes: RawSpan, to route: STOMPRoute, _ core: STOMPClientCore
    ) {
        if route.receivers.areRequests {
            let unmatched =
                route.receivers.replies?.receive(makeBatch(records, of: bytes, route, core)) ?? records.count
            core.parts.counters.received(records.count - unmatched)
            if unmatched > 0 { core.unmatched(unmatched) }
            return
        }
        // Before a reader can see them.
        core.parts.counters.received(records.count)
        guard let queue = route.receivers.queue else { return }
        core.subscriptions.push(makeBatch(records, of: bytes, route, core), to: queue, of: route, for: &readers)
    }

    /// Copies the frames out of what was read.
    private func makeBatch(
        _ records: [STOMPMessageRecord], of bytes: RawSpan, _ route: STOMPRoute, _ core: STOMPClientCore
    ) -> STOMPBatch {
        let start = records[0].frame.lowerBound
        let end = records[records.count - 1].frame.upperBound
        let needed = records.reduce(0) { $0 + $1.frame.count }
        // Few messages must not keep the large memory of many.
        var storage = needed >= BatchPool<STOMPMessageRecord>.minimumBytes ? pool.take() : BatchStorage()
        if needed * 2 >= end - start {
            bytes.extracting(start..<end).append(to: &storage.bytes)
            storage.records.append(contentsOf: records.lazy.map { $0.moved(by: start) })
        } else {
            storage.bytes.reserveCapacity(needed)
            storage.records.reserveCapacity(records.count)
            for record in records {
                storage.records.append(record.moved(by: record.frame.lowerBound - storage.bytes.count))
                bytes.extracting(record.frame).append(to: &storage.bytes)
            }
        }
        return STOMPBatch(
            storage, version: version, connection: connection, route: route, firstNumber: route.firstNumber, core: core,
            pool: pool)
    }
}
