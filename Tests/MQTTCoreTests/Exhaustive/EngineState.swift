import TestSupport

@testable import MQTTCore

/// Added to packet identifiers that the client and the server have chosen, which have nothing to do with each other.
let (clientIDs, serverIDs): (UInt64, UInt64) = (0, 1 << 16)
/// The same for the tokens of requests.
private let requestTokens: UInt64 = 1 << 32

extension MQTTEngine {
    /// Writes down what an engine does next depends on, times aside: no time passes in an exhaustive search.
    ///
    /// Writes identifiers that the client and the server have chosen under different names.
    ///
    /// - Parameter number: the number of a message, by its payload.
    borrowing func write(into writer: inout StateWriter, number: ([UInt8]) -> Int) {
        let (own, peers) = options.value.role == .client ? (clientIDs, serverIDs) : (serverIDs, clientIDs)
        writer.put(Int(phase.rawValue))
        writer.put(Int(reconciling.rawValue))
        filters.write(into: &writer, persistedTicket: persistedTicket)
        writer.put(sessionEndsWithConnection, isCareful, owesRoom)
        if let opening = opening.value {
            writer.put(1)
            writer.put(opening.heldConnect.isEmpty)
        } else {
            writer.put(0)
        }
        session.write(into: &writer, persistedTicket: persistedTicket, own: own, peers: peers, number: number)
        for ticket in [establishedTicket, receivedTicket] { writer.put(Int(ticket - min(ticket, persistedTicket))) }
        writer.put(heldPackets.count)
        for held in heldPackets {
            writer.put(Int(held.type.rawValue))
            writer.put(name: UInt64(held.packetID) + (held.type == .pubcomp ? peers : own))
            writer.put(byte: held.reason.rawValue)
            writer.put(Int(held.ticket - min(held.ticket, persistedTicket)))
        }
    }
}

extension MQTTEngine {
    /// Writes down which identifiers come next in the rotation, whether they are free or not: some are known to the peer.
    borrowing func writeNextIdentifiers(into writer: inout StateWriter, count: Int) {
        var ids = session.window.ids
        for id in 1..<UInt16(max(1, ids.span)) { ids.release(id) }
        let own = options.value.role == .client ? clientIDs : serverIDs
        for _ in 0..<count { writer.put(nameIfKnown: UInt64(ids.reserve() ?? 0) + own) }
    }

    /// The identifier that is taken next.
    var nextIdentifier: UInt16 {
        var ids = session.window.ids
        return ids.reserve() ?? 0
    }

    /// Whether identifiers of received QoS 2 messages have not been released.
    var hasReceivedIdentifiers: Bool { session.received.count + session.answered.count > 0 }
}

extension MQTTSession {
    func write(
        into writer: inout StateWriter, persistedTicket: UInt64, own: UInt64, peers: UInt64, number: ([UInt8]) -> Int
    ) {
        func wait(_ ticket: UInt64) -> Int { Int(ticket - min(ticket, persistedTicket)) }
        writer.put(isHeld, isRecorded)
        writer.put(byte: doubt.rawValue)
        for chain in [window.published, window.received, window.queue] {
            writer.put(chain.count)
            for index in chain.indices(window.slots) {
                let slot = window.slots[Int(index)]
                writer.put(number(slot.payload))
                writer.put(slot.head.packetID == 0)
                if slot.head.packetID != 0 { writer.put(name: UInt64(slot.head.packetID) + own) }
                switch slot.kind {
                case .published, .received: writer.put(slot.connection == window.connection)
                case .queued, .requeued, .free: break
                }
                writer.put(wait(slot.ticket))
            }
        }
        writer.put(window.used)
        writer.put(window.resend < 0 ? -1 : number(window.slots[Int(window.resend)].payload))
        writer.put(Int(window.identifiedCount))
        writer.put(Int(window.queuedAtMostOnceCount))
        inbound.write(into: &writer, peers: peers, wait: wait)
        writer.put(namesOf: received.all.map { UInt64($0) + peers })
        writer.put(namesOf: answered.all.map { UInt64($0) + peers })
        writer.put(namesOf: awaitingRelease.all.map { UInt64($0) + peers })
        writer.put(namesOf: refused.keys.sorted().map { UInt64($0) + peers })
        writer.put(window.ids.count)
    }
}

extension InboundOrder {
    func write(into writer: inout StateWriter, peers: UInt64, wait: (UInt64) -> Int) {
        var rest = self
        var answers: [Bool] = []
        for token in base..<nextToken { answers.append(!awaitsAnswer(token)) }
        rest.answerAll(through: .max) { _, _ in }
        writer.put(count)
        for isAnswered in answers {
            guard let entry = rest.popAnswered(persistedThrough: .max) else { break }
            writer.put(name: UInt64(entry.packetID) + peers)
            writer.put(entry.isQoS2, entry.isRepeat, isAnswered)
            writer.put(byte: entry.reason)
            writer.put(wait(entry.ticket))
        }
        let carried = carried.sorted { $0.key < $1.key }
        writer.put(carried.count)
        for (_, id) in carried { writer.put(name: UInt64(id) + peers) }
    }
}

extension FilterTable {
    /// All options are the same, and no caller waits.
    func write(into writer: inout StateWriter, persistedTicket: UInt64) {
        writer.put(records.count)
        for (key, record) in records.sorted(by: { $0.key < $1.key }) {
            writer.put(record.wanted == .unclaimed, record.wanted == FilterRecord.Wanted.none)
            switch record.server {
            case .absent: writer.put(0)
            case .holds(let holding): writer.put(holding.isConfirmed ? 1 : 2)
            case .unknown(let isOlder, _): writer.put(isOlder ? 3 : 5)
            case .late: writer.put(4)
            }
            writer.put(record.refused != nil, first.contains(key))
            writer.put(record.inFlight == .none)
            writer.put(record.noted == .wanted, record.noted == .ended)
            writer.put(record.waitsForStore(through: persistedTicket))
            if let token = record.inFlight.token { writer.put(name: token + requestTokens) }
        }
        for request in requests.values.sorted(by: { $0.token < $1.token }) {
            writer.put(name: request.token + requestTokens)
            writer.put(name: UInt64(request.packetID) + clientIDs)
        }
        writer.put(namesOf: (work.first?.late.keys.sorted() ?? []).map { UInt64($0) + clientIDs })
    }
}
