/// Messages of QoS 1 or of QoS 2 that were sent one after the other under packet identifiers in a row, and whose
/// acknowledgements are expected in that order. One record stands for all of them, so that a message costs little more than its bytes.
///
/// A run ends with its connection, or when the peer answers in another order: then its messages go into slots of their
/// own, which can do everything.
struct SentRun: Sendable {
    let messages: [MQTTOutgoingMessage]
    let isQoS2: Bool
    /// The first message that is not acknowledged, its identifier and its place among all messages.
    var next: Int
    var id: UInt16
    var sequence: UInt64
    /// How many are not acknowledged.
    var count: Int
    /// How many of these, the first ones, had PUBREC and were answered with PUBREL; QoS 2 only.
    var released = 0
    /// Added to a message's index, the token of its completion.
    let token: UInt64
    let time: Int64
}

extension SendWindow {
    /// The messages that PUBACK in order ends; the count is 0 if there are none.
    var awaitingPuback: PacketIDSet.Row {
        guard !runs.isEmpty, !runs[runStart].isQoS2 else { return .init(first: 0, count: 0) }
        return .init(first: runs[runStart].id, count: runs[runStart].count)
    }

    /// The same for PUBCOMP.
    var awaitingPubcomp: PacketIDSet.Row {
        runs.isEmpty ? .init(first: 0, count: 0) : .init(first: runs[runStart].id, count: runs[runStart].released)
    }

    /// The same for PUBREC, which starts the second half of an exchange.
    var awaitingPubrec: PacketIDSet.Row {
        guard let run = runs[runStart...].first(where: { $0.isQoS2 && $0.released < $0.count }) else {
            return .init(first: 0, count: 0)
        }
        return .init(first: run.id + UInt16(truncatingIfNeeded: run.released), count: run.count - run.released)
    }

    /// PUBREC came for the first messages of ``awaitingPubrec``.
    mutating func markReleased(_ count: Int) {
        guard let index = runs[runStart...].firstIndex(where: { $0.isQoS2 && $0.released < $0.count }) else { return }
        runs[index].released += count
    }

    /// Records messages that were written under reserved identifiers, and releases those that were not used.
    mutating func recordRun(
        _ messages: [MQTTOutgoingMessage], from start: Int, _ reserved: PacketIDSet.Row, written count: Int,
        token: UInt64, at now: Int64
    ) {
        if count < reserved.count {
            ids.release(
                .init(first: reserved.first + UInt16(truncatingIfNeeded: count), count: reserved.count - count))
        }
        guard count > 0 else { return }
        runs.append(
            SentRun(
                messages: messages, isQoS2: messages[start].qos == .exactlyOnce, next: start, id: reserved.first,
                sequence: lastSequence + 1, count: count,
                token: token, time: now))
        lastSequence += UInt64(truncatingIfNeeded: count)
        used += count
        runMessageCount += count
    }

    /// The first messages of the first run are acknowledged; returns the token of the first.
    mutating func finishOfFirstRun(_ count: Int) -> UInt64 {
        ids.release(.init(first: runs[runStart].id, count: count))
        used -= count
        runMessageCount -= count
        let token = runs[runStart].token &+ UInt64(truncatingIfNeeded: runs[runStart].next)
        if runs[runStart].count == count {
            dropFirstRun()
        } else {
            runs[runStart].next += count
            runs[runStart].id += UInt16(truncatingIfNeeded: count)
            runs[runStart].sequence += UInt64(truncatingIfNeeded: count)
            runs[runStart].count -= count
            runs[runStart].released -= min(count, runs[runStart].released)
        }
        return token
    }

    private mutating func dropFirstRun() {
        runStart += 1
        if runStart == runs.count {
            runs.removeAll(keepingCapacity: runs.count <= 16)
            runStart = 0
        } else if runStart >= 64, runStart * 2 >= runs.count {
            runs.removeFirst(runStart)
            runStart = 0
        }
    }

    /// Gives each message of the runs a slot of its own, in the order in which all were first sent.
    mutating func settleRuns() {
        guard !runs.isEmpty else { return }
        var flying = published.indices(slots)
        var released: [Int32] = []
        for run in runs[runStart...] {
            for offset in 0..<run.count {
                let message = run.messages[run.next + offset]
                let id = run.id + UInt16(truncatingIfNeeded: offset)
                let head = PublishHead(
                    topic: message.topic, flags: MQTTPublishFlags(message.qos, retain: message.retain), packetID: id)
                let index = takeSlot()
                slots[Int(index)].fill(
                    head, message.payload, message.properties,
                    sequence: run.sequence + UInt64(truncatingIfNeeded: offset),
                    token: run.token &+ UInt64(truncatingIfNeeded: run.next + offset), at: run.time)
                slots[Int(index)].markPublished(on: connection)
                bind(id, to: index)
                flying.append(index)
                if offset < run.released { released.append(index) }
            }
        }
        runs = []
        runStart = 0
        runMessageCount = 0
        flying.sort { slots[Int($0)].sequence < slots[Int($1)].sequence }
        published = SlotChain()
        for index in flying { published.append(index, &slots) }
        for index in released { markReceived(index) }
    }
}
