import Messaging
import STOMPCore
import Transport
import Wire

/// What one input of the machine led to, performed on the loop's thread after the lock is released. All links of a
/// loop share one, so its arrays are allocated once.
final class STOMPScratch: LinkScratch {
    var core: STOMPClientCore?
    var effects = STOMPEffects()
    var version = STOMPVersion.v12
    var connection: UInt32 = 0
    var resumptions = Resumptions<STOMPMachine.ReceiptAnswer>()
    var requestAnswers: [(UInt64, STOMPMachine.ReceiptAnswer)] = []
    /// What became of the SUBSCRIBE frames that follow CONNECTED.
    var subscriptions: [(STOMPRoute, Result<Bool, STOMPError>)] = []
    /// Messages that were not sent before their connection ended.
    var unsentCount = 0
    /// The connection is gone; the inner value says why, nil for an end in order.
    var closed: TransportError??
    private var touchedRoutes: [STOMPRoute] = []

    init() {}

    func perform(_ bytes: RawSpan) {
        if let core {
            for record in effects.events where record.kind.isConnected { core.handle(record.kind, subscriptions) }
            if !effects.messages.isEmpty { deliver(bytes, core) }
            for record in effects.events where !record.kind.isConnected { core.handle(record.kind) }
            if closed == nil, effects.events.contains(where: \.kind.isEnd) { core.connectionIsEnding() }
            for (token, answer) in requestAnswers { core.requestAnswered(token, answer) }
            if unsentCount > 0 { core.news.tell(.unsentMessagesDiscarded(unsentCount)) }
            if let closed { core.connectionClosed(closed) }
        }
        // Last, so that whoever hears of an end finds the state that goes with it.
        resumptions.resume()
        effects.removeAll()
        requestAnswers.removeAll(keepingCapacity: true)
        if !subscriptions.isEmpty { subscriptions = [] }
        core = nil
        unsentCount = 0
        closed = nil
    }

    /// Hands the messages of one read to their subscriptions: one batch each.
    private func deliver(_ bytes: RawSpan, _ core: STOMPClientCore) {
        let first = effects.messages[0].subscription
        if effects.messages.allSatisfy({ $0.subscription == first }) {
            guard let route = core.routes[first] else { return core.unmatched(effects.messages.count) }
            return hand(effects.messages, of: bytes, to: route, core)
        }
        var unmatched = 0
        for (index, record) in effects.messages.enumerated() {
            guard let route = core.routes[record.subscription] else {
                unmatched += 1
                continue
            }
            if route.pending.isEmpty { touchedRoutes.append(route) }
            route.pending.append(UInt32(index))
        }
        for route in touchedRoutes {
            let records = route.pending.map { effects.messages[Int($0)] }
            route.pending.removeAll(keepingCapacity: true)
            hand(records, of: bytes, to: route, core)
        }
        touchedRoutes.removeAll(keepingCapacity: true)
        if unmatched > 0 { core.unmatched(unmatched) }
    }

    private func hand(_ records: [STOMPMessageRecord], of bytes: RawSpan, to route: STOMPRoute, _ core: STOMPClientCore)
    {
        if route.isForReplies {
            let unmatched = route.replies?.receive(makeBatch(records, of: bytes, route, core)) ?? records.count
            core.counters.received(records.count - unmatched)
            if unmatched > 0 { core.unmatched(unmatched) }
            return
        }
        // Before anybody can have them.
        core.counters.received(records.count)
        for queue in route.receivers.queues {
            let batch = makeBatch(records, of: bytes, route, core)
            // A receiver with acknowledgements is bounded by the broker's prefetch, and by pausing where it has none.
            if queue.push(batch) == .full, route.policy.overflow == .pauseReading || route.acknowledgement != .auto {
                core.pauseReading(for: route)
            }
            if queue.connectionIsFull { core.pauseReading() }
        }
    }

    /// Copies the frames out of the read buffer.
    private func makeBatch(
        _ records: [STOMPMessageRecord], of bytes: RawSpan, _ route: STOMPRoute, _ core: STOMPClientCore
    ) -> STOMPBatch {
        let start = records[0].frameStart
        let end = records[records.count - 1].frame.upperBound
        let needed = records.reduce(0) { $0 + $1.frame.count }
        var moved: [STOMPMessageRecord]
        var copied: [UInt8]
        if needed * 2 >= end - start {
            copied = bytes.bytes(in: start..<end)
            moved = records.map { $0.moved(by: start) }
        } else {
            copied = []
            copied.reserveCapacity(needed)
            moved = []
            moved.reserveCapacity(records.count)
            for record in records {
                moved.append(record.moved(by: record.frameStart - copied.count))
                bytes.extracting(record.frame).append(to: &copied)
            }
        }
        return STOMPBatch(
            bytes: copied, records: moved, version: version, connection: connection, route: route, core: core)
    }
}

extension STOMPEngineEvent.Kind {
    var isConnected: Bool {
        if case .connected = self { true } else { false }
    }

    /// Whether the connection failed because the peer was silent.
    var isHeartBeatLost: Bool {
        if case .connectionFailed(let failure) = self { failure.reason == .heartBeatLost } else { false }
    }

    /// Whether the engine reports that the connection is over.
    var isEnd: Bool {
        switch self {
        case .disconnected, .connectionFailed: true
        default: false
        }
    }
}
