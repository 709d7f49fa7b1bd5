import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// Messages of QoS 1 and 2 without a subscription, retained for the next one that matches. Part of ``MQTTMachine``, under the
/// link's lock.
///
/// A message is *unclaimed* for up to ten seconds: it is not acknowledged, so that the server keeps it if this process ends,
/// and it holds up the acknowledgements of messages that arrived later. These are the messages that a subscription with
/// manual acknowledgement leaves behind when it ends, and those that a resumed session brings before the application has
/// subscribed. After that, and all others at once, a message is acknowledged and *kept* within the bounds of the policy.
///
/// With a session store every end of such a message is noted there; the caller hands the engine's records to the journal
/// (``MQTTMachine/flushRecords()``).
struct MQTTUnmatchedMessages: Sendable {
    typealias Drop = MQTTUnmatchedList.Drop
    typealias Message = MQTTUnmatchedList.Message

    /// Unclaimed messages that were acknowledged, because no subscription matched them in time.
    struct Release: Sendable, Equatable {
        /// The filters of the subscription that left them; none for messages that no subscription has received.
        let filters: [String]
        var count = 1
    }

    /// What became of messages, for events.
    struct Report: Sendable {
        var drops: [Drop] = []
        var releases: [Release] = []

        var isEmpty: Bool { drops.isEmpty && releases.isEmpty }

        mutating func add(_ other: Report) {
            drops += other.drops
            for release in other.releases { add(release.filters, count: release.count) }
        }

        /// Counts messages that the same subscription has left.
        mutating func add(_ filters: [String], count: Int) {
            if let last = releases.indices.last, releases[last].filters == filters {
                releases[last].count += count
            } else {
                releases.append(Release(filters: filters, count: count))
            }
        }
    }

    /// Whether a resumed session's messages that match no subscription are unclaimed.
    private enum Start {
        /// Since `connect()` or `start()` no server has resumed a session.
        case awaited
        /// On the first connection that resumed it, until ``MQTTUnmatchedList/claimEnd``.
        case claiming
        case over
    }

    /// Set in the delivery tokens of these messages; the rest is the sequence number.
    static let deliveryBit: UInt64 = 1 << 63
    /// How long messages are unclaimed.
    static let claimTime: Int64 = 10_000_000_000

    private let policy: Shared<MQTTUnmatchedMessagePolicy>
    /// Made for the first session that is resumed, or the first message.
    private var known: MQTTUnmatchedList?
    private var start = Start.awaited

    init(_ policy: Shared<MQTTUnmatchedMessagePolicy>) { self.policy = policy }

    var isEmpty: Bool { known?.messages.isEmpty ?? true }
    var count: Int { known?.messages.count ?? 0 }

    /// When the first of them expires or is acknowledged; `Int64.max` for never.
    var nextDeadline: Int64 { known?.nextDeadline ?? .max }

    private var list: MQTTUnmatchedList {
        mutating get {
            if let known { return known }
            let made = MQTTUnmatchedList(policy: policy.value)
            known = made
            return made
        }
    }

    // MARK: Connections

    /// `connect()` or `start()` begins: messages of the session that the server resumes next are unclaimed at first.
    mutating func clientStopped() { start = .awaited }

    /// CONNACK arrived.
    mutating func connected(_ info: MQTTConnectionInfo, _ engine: borrowing MQTTEngine, at now: Int64) {
        guard case .awaited = start else { return }
        // 3.1 has no Session Present.
        guard info.sessionPresent || info.version == .v3_1, engine.sessionOutlivesConnection else { return }
        if engine.options.value.persists {
            // A store keeps the messages in place of the server.
            start = .over
        } else {
            start = .claiming
            list.claimEnd = now.advanced(byNanoseconds: Self.claimTime)
        }
    }

    /// The connection has closed. The server sends messages again that were not acknowledged; one of QoS 2 that no receiver
    /// has taken is forgotten with its identifier, so that the repetition is delivered.
    mutating func connectionClosed(_ engine: inout MQTTEngine) {
        if case .claiming = start { start = .over }
        guard let known, known.hasUnclaimed else { return }
        known.remove { message in
            guard message.isUnclaimed else { return false }
            guard engine.awaitsAnswer(message.delivery) else { return true }
            if message.isTaken || message.holder != nil { return false }
            engine.forget(message.delivery)
            return true
        }
    }

    // MARK: Messages

    /// A message arrived that matches no subscription.
    mutating func receive(
        _ record: MQTTMessageRecord, of bytes: RawSpan, topic: String, _ engine: inout MQTTEngine, at now: Int64
    ) -> Report {
        guard policy.value.isOn else {
            engine.markAcknowledged(record.delivery, at: now)
            return Report(drops: [Drop(sequence: 0, topic: topic, reason: .count)])
        }
        var report = expire(at: now, &engine)
        var message = list.makeMessage(record, of: bytes, topic: topic, at: now)
        if case .claiming = start, now < list.claimEnd {
            if list.hasRoom(for: message) {
                message.claim = .init(deadline: min(list.claimEnd, message.deadline), filters: [])
                list.add(message)
                return report
            }
            // The bounds apply to what is unclaimed as well: the memory is the same.
            start = .over
            list.endClaims()
            report.add(expire(at: now, &engine))
        }
        list.add(message)
        report.drops += keep([message], &engine, at: now)
        return report
    }

    /// A subscription has ended: the messages that it was handed are free again, and so are those that it left without an
    /// acknowledgement.
    mutating func subscriptionEnded(
        _ route: MQTTRoute, leaving messages: [MQTTManualMessages.Message], _ engine: inout MQTTEngine,
        at now: Int64
    ) -> Report {
        let filters = route.requests.map(\.filter)
        let deadline = now.advanced(byNanoseconds: Self.claimTime)
        known?.release(route, claimedUntil: route.acknowledgement == .manual ? deadline : nil, filters)
        let isConnected = engine.phase != .closed
        let persists = engine.options.value.persists
        // With a session that ends, waiting would lose them; with a store they are as safe as at the server.
        let keepsAtOnce = persists || isConnected && !engine.sessionOutlivesConnection
        for left in messages {
            // Without a connection only messages of QoS 2 are left. With a store they come again, as after the end of the
            // process.
            if !isConnected, !left.isTaken || persists {
                engine.forget(left.delivery)
                continue
            }
            var message = list.makeMessage(left, at: now)
            message.claim = .init(deadline: keepsAtOnce ? now : min(deadline, message.deadline), filters: filters)
            message.wasLeft = true
            if left.isTaken { message.markTaken() }
            list.add(message)
        }
        return expire(at: now, &engine)
    }

    /// Acknowledges messages that the list keeps from now on, once they are stored. Returns those that the bounds do not
    /// allow.
    private mutating func keep(_ messages: [Message], _ engine: inout MQTTEngine, at now: Int64) -> [Drop] {
        for message in messages {
            guard engine.options.value.persists else {
                engine.markAcknowledged(message.delivery, at: now)
                continue
            }
            let wallClock = message.deadline.advanced(byNanoseconds: engine.options.value.wallClockOffset) / 1_000_000
            engine.acknowledge(
                message.delivery,
                storing: .kept(
                    .init(
                        sequence: message.sequence, packetID: message.packetID, topic: message.topic,
                        payload: message.payload, qos: message.flags.qos, retain: message.flags.isRetained,
                        properties: MQTTProperties(publishBytes: message.properties), time: wallClock)), at: now)
        }
        let drops = list.keepBounds()
        noteEnds(drops.map(\.sequence), &engine)
        return drops
    }

    /// Acknowledges the messages that no subscription claimed in time, and removes the messages that are too old.
    mutating func expire(at now: Int64, _ engine: inout MQTTEngine) -> Report {
        var report = Report()
        guard let known, now >= known.nextDeadline else { return report }
        let unclaimed = known.takeUnclaimed(at: now, keeping: policy.value.isOn)
        for message in unclaimed { report.add(message.claim?.filters ?? [], count: 1) }
        if policy.value.isOn {
            report.drops = keep(unclaimed, &engine, at: now)
        } else {
            for message in unclaimed {
                engine.markAcknowledged(message.delivery, at: now)
                report.drops.append(Drop(sequence: message.sequence, topic: message.topic, reason: .count))
            }
        }
        engine.writeAnswers(at: now)
        let expired = known.expire(at: now)
        noteEnds(expired.map(\.sequence), &engine)
        report.drops += expired
        return report
    }

    // MARK: Subscriptions

    /// Gives a subscription the messages that match its filters; all of them without a filter. They stay here until
    /// they are confirmed.
    mutating func hand(to route: MQTTRoute) -> [Message] {
        guard let known, !known.messages.isEmpty else { return [] }
        let inner = route.requests.map { MQTTRouter.inner($0.filter) }
        let filters = inner + inner.compactMap { MQTTRouter.withoutPrefix($0) }
        return known.hand(to: route) { topic in
            filters.isEmpty || filters.contains { MQTTTopicFilter.matches($0, topic: topic) }
        }
    }

    /// The batch in which a subscription was handed messages.
    func handed(_ batch: MQTTBatch) { known?.handed(batch) }

    /// A subscription owns the messages that it was handed: acknowledges and forgets them.
    mutating func confirm(_ route: MQTTRoute, _ engine: inout MQTTEngine, at now: Int64) {
        finish({ $0.holder === route }, &engine, at: now)
    }

    /// A message was acknowledged by its receiver: forgets it.
    mutating func confirm(delivery: UInt64, _ engine: inout MQTTEngine, at now: Int64) {
        let sequence = delivery & ~Self.deliveryBit
        finish({ $0.sequence == sequence }, &engine, at: now)
    }

    /// A message was acknowledged by the receiver that had it first, after its subscription had ended.
    mutating func answered(_ delivery: UInt64, _ engine: inout MQTTEngine, at now: Int64) {
        guard known?.hasLeft ?? false else { return }
        finish({ $0.delivery == delivery && $0.wasLeft }, &engine, at: now)
    }

    private func finish(
        _ isDone: (Message) -> Bool, _ engine: inout MQTTEngine, at now: Int64
    ) {
        guard let known, !known.messages.isEmpty else { return }
        var sequences: [UInt64] = []
        known.remove { message in
            guard isDone(message) else { return false }
            if message.isUnclaimed { engine.markAcknowledged(message.delivery, at: now) }
            sequences.append(message.sequence)
            return true
        }
        noteEnds(sequences, &engine)
        engine.writeAnswers(at: now)
    }

    func removeAll() { known?.removeAll() }

    /// Restores what an earlier process retained, within the bounds of this one.
    mutating func restore(_ records: [MQTTStoreRecord], _ engine: inout MQTTEngine, at now: Int64) -> Report {
        var report = Report()
        for case .kept(let message) in records {
            // The wall clock may have been changed: no message is retained for longer than this process would.
            let longest = max(0, policy.value.timeToLive.inNanoseconds)
            let present = now.advanced(byNanoseconds: engine.options.value.wallClockOffset) / 1_000_000
            let (left, isFar) = max(0, message.time).subtractingReportingOverflow(present)
            let nanoseconds = isFar || left > longest / 1_000_000 ? longest : max(0, left) * 1_000_000
            list.add(
                Message(
                    sequence: message.sequence, topic: message.topic, properties: message.properties.publishBytes,
                    payload: message.payload, packetID: message.packetID,
                    deadline: now.advanced(byNanoseconds: nanoseconds),
                    flags: MQTTPublishFlags(message.qos, retain: message.retain)))
            report.drops += keep([], &engine, at: now)
        }
        report.add(expire(at: now, &engine))
        return report
    }

    /// Notes in the store that messages are retained no longer.
    private func noteEnds(_ sequences: [UInt64], _ engine: inout MQTTEngine) {
        guard engine.options.value.persists else { return }
        for sequence in sequences { engine.note(.keptFinished(sequence: sequence)) }
    }
}
