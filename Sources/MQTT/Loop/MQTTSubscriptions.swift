import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// The subscriptions of a client: where received messages go, and what the server is to send.
///
/// This file and `MQTTSubscriptions+requests.swift`, which handles the answers to SUBSCRIBE and UNSUBSCRIBE, run on the loop's
/// thread; `MQTTSubscriptions+calls.swift` runs on the callers' tasks.
final class MQTTSubscriptions: ClientSubscriptions, @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.

    unowned var core: MQTTClientCore!
    private(set) var knownRouter: MQTTRouter?
    var fullBuffers: FullBuffers<MQTTRoute>?

    /// Made for the first subscription or message.
    var router: MQTTRouter {
        if let knownRouter { return knownRouter }
        let made = MQTTRouter(random: core.loop.random)
        knownRouter = made
        return made
    }

    // MARK: Routes

    var allRoutes: [MQTTRoute] {
        guard let router = knownRouter else { return [] }
        return router.orderedEntries.flatMap(\.value.routes) + (router.unmatched.map { [$0] } ?? [])
    }

    func subscribeNow(_ route: MQTTRoute, _ call: MQTTFilterWait.Call) {
        guard !call.isOver, core.accepts(call) else { return }
        if let error = conflict(of: route) {
            call.end(.failure(error))
        } else {
            add(route, MQTTFilterWait(call, filterCount: route.requests.count))
        }
    }

    /// Registers a route that no caller waits for, whether or not the client tries to be connected.
    func declare(_ route: MQTTRoute) {
        if let error = conflict(of: route) { return route.finish(.failed(error)) }
        add(route, nil)
        // Its receivers have the messages whatever the server answers: another subscription must not get them again.
        confirmUnmatched([route])
    }

    /// Why messages of a shared filter could not be told from those of another filter; nil if they can, or if only CONNACK
    /// will show it.
    private func conflict(of route: MQTTRoute) -> MQTTError? {
        guard core.lacksIdentifiers, !route.receivers.areRequests else { return nil }
        return router.conflict(of: route.requests).map { .filtersOverlap($0.filter, $0.other) }
    }

    private func add(_ route: MQTTRoute, _ wait: MQTTFilterWait?) {
        let added = route.requests.map { router.add(route, $0) }
        let earlier = router.identify(added.map(\.entry))
        // Before the first connection, the server's session may still hold filters of an earlier process.
        let mayBeHeld = !core.negotiation.wasAcceptedSinceStop
        let answers = core.link.perform { machine in
            for entry in earlier + added.map(\.entry) { machine.engine.want(entry, mayBeHeld: mayBeHeld) }
            return zip(added, route.requests).map { added, request in
                // A server repeats its retained messages in its answer to SUBSCRIBE, but not for shared subscriptions
                // [MQTT 5.0 4.8.2].
                let wantsRetained =
                    added.isNew && request.retainHandling == .sendAtSubscribe
                    && MQTTTopicFilter.shared(request.filter) == nil
                return machine.engine.join(request.filter, request.retainHandling, wantsRetained: wantsRetained)
            }
        }
        for (index, answer) in answers.enumerated() {
            switch answer {
            case .granted(let code):
                route.noteGranted(code)
                wait?.answer(index, .success(code))
            case .awaits(let token):
                added[index].entry.callers.append(.init(route: route, wait: wait, index: index, token: token))
            }
        }
        handUnmatched(to: route)
        endUnsubscribes(of: route.requests.map(\.filter))
        reconcile()
    }

    /// Ends the waits for UNSUBSCRIBE of filters that are wanted again, or that the server has refused: none will be written.
    func endUnsubscribes(of filters: [String]) {
        guard router.hasUnsubscribing else { return }
        for filter in filters where !core.link.perform({ $0.engine.isUnsubscribing(filter) }) {
            for caller in router.takeUnsubscribing(filter) { caller.wait.answer(caller.index, .success(nil)) }
        }
    }

    func cancelSubscribe(_ route: MQTTRoute) {
        var waits: [MQTTFilterWait] = []
        for request in route.requests {
            guard let entry = router.entries[ByteKey(request.filter)] else { continue }
            waits += entry.callers.filter { $0.route === route }.compactMap(\.wait)
        }
        guard !waits.isEmpty else { return }
        remove(route)
        for wait in waits { wait.fail(.cancelledWait) }
    }

    func unsubscribeNow(_ route: MQTTRoute, _ properties: MQTTProperties, _ call: MQTTFilterWait.Call) {
        finish(route)
        var unsubscribed = takeOut(route, properties)
        // When the client has stopped since, only the server may still have the subscription, in a session.
        let filters = route.requests.map(\.filter).filter { router.entries[ByteKey($0)] == nil }
        unsubscribed += change { engine in
            filters.filter { engine.isUnclaimed($0) && engine.forget($0, properties) }
        }
        finish(call, afterUnsubscribing: unsubscribed)
    }

    func unsubscribeNow(_ filters: [String], _ properties: MQTTProperties, _ call: MQTTFilterWait.Call) {
        guard core.accepts(call) else { return }
        if let own = filters.first(where: { router.entries[ByteKey($0)] != nil }) {
            call.end(.failure(.filterIsSubscribed(own)))
            return
        }
        change { engine in for filter in filters { engine.unwantChecked(filter, properties) } }
        finish(call, afterUnsubscribing: filters)
    }

    /// Lets a caller wait until filters are unsubscribed; without a connection, the next one of the session does it.
    private func finish(_ call: MQTTFilterWait.Call, afterUnsubscribing filters: [String]) {
        defer { reconcile() }
        guard !filters.isEmpty, core.supervisor.isConnected else {
            call.end(.success(.init()))
            return
        }
        router.addUnsubscribing(MQTTFilterWait(call, filterCount: filters.count), filters)
    }

    /// Changes what the engine knows of filters, and gives the store what follows.
    func change<Result>(_ body: (inout MQTTEngine) -> Result) -> Result {
        core.link.perform { machine in
            defer { machine.flushRecords() }
            return body(&machine.engine)
        }
    }

    /// Removes a route without waiting for the server's answer; UNSUBSCRIBE is sent for filters that no other route has.
    func remove(_ route: MQTTRoute) {
        finish(route)
        _ = takeOut(route)
        reconcile()
    }

    /// Takes a route out of the router; returns the filters that the server may have and no other route has.
    private func takeOut(_ route: MQTTRoute, _ properties: MQTTProperties = []) -> [String] {
        var (unwanted, shared) = router.remove(route)
        guard !unwanted.isEmpty || !shared.isEmpty else { return [] }
        // The route may have had an identifier for a filter.
        shared += router.identify(shared)
        return change { engine in
            for entry in shared { engine.keep(entry) }
            return unwanted.filter { engine.forget($0, properties) }
        }
    }

    /// Ends a subscription: its receivers get `end` after what has arrived, and another subscription may get what they have
    /// not acknowledged.
    func finish(_ route: MQTTRoute, _ end: DeliveryEnd<MQTTError> = .finished) {
        let now = core.loop.now
        let report = core.link.perform { $0.subscriptionEnded(route, at: now) }
        route.finish(end)
        self.report(report)
    }

    /// The client is about to disconnect: unsubscribes the topics of responses, which no later client uses, from a session that
    /// the server keeps. Some servers allow few subscriptions.
    func leave() {
        guard let router = knownRouter, core.link.perform({ $0.engine.sessionOutlivesConnection }) else { return }
        let entries = router.orderedEntries.map(\.value).filter { $0.routes.contains(where: \.receivers.areRequests) }
        guard !entries.isEmpty else { return }
        change { engine in for entry in entries { engine.forget(entry.request.filter) } }
        reconcile()
    }

    /// The client has stopped connecting: all subscriptions end, and everything that waits for an answer fails. What the
    /// server has granted stays in its session, also what an earlier process was granted, except for topics of replies: the next
    /// connection has another.
    func stop(_ failure: MQTTError) {
        let entries = knownRouter?.takeAllEntries() ?? []
        change { engine in
            for entry in entries {
                if entry.areReplies {
                    engine.forget(entry.request.filter)
                } else {
                    engine.stop(entry.request.filter)
                }
            }
        }
        for entry in entries {
            for caller in entry.callers { caller.wait?.fail(failure) }
            for route in entry.routes { finish(route, .init(stoppedBy: failure)) }
        }
        if let unmatched = knownRouter?.unmatched {
            knownRouter?.setUnmatched(nil)
            finish(unmatched, .init(stoppedBy: failure))
        }
        knownRouter?.failUnsubscribes(failure)
    }

    /// Nothing is read: all callers fail that wait for an answer. What they have asked for ends.
    func answersStandStill(because reason: String) {
        guard let router = knownRouter else { return }
        let error = MQTTError.answerIsUnread(to: "SUBSCRIBE", because: reason)
        for (key, entry) in router.orderedEntries {
            for caller in entry.takeCallers(where: { $0.wait != nil }) {
                caller.wait?.answer(caller.index, .failure(error))
                withdraw(caller.route, from: key, error)
            }
        }
        router.failUnsubscribes(.answerIsUnread(to: "UNSUBSCRIBE", because: reason))
        reconcile()
    }

    func connectionClosed(_ reason: MQTTError) {
        knownRouter?.failUnsubscribes(reason)
        fullBuffers?.removeAll()
    }

    // MARK: Messages that match no subscription

    /// Makes a route receive the messages that no other route gets; an earlier such route ends.
    func receiveUnmatched(_ route: MQTTRoute) {
        if let earlier = router.unmatched { finish(earlier) }
        router.setUnmatched(route)
        handUnmatched(to: route)
        confirmUnmatched([route])
    }

    /// The session store was opened: subscriptions that were made before get the messages that it holds.
    func storeOpened() {
        guard let router = knownRouter else { return }
        let awaited = Set(
            router.entries.values.flatMap { $0.callers.filter { $0.wait != nil }.map { ObjectIdentifier($0.route) } })
        for (_, entry) in router.entries.sorted(by: { $0.key.text < $1.key.text }) {
            for route in entry.routes {
                handUnmatched(to: route)
                if !awaited.contains(ObjectIdentifier(route)) { confirmUnmatched([route]) }
            }
        }
        guard let unmatched = router.unmatched else { return }
        handUnmatched(to: unmatched)
        confirmUnmatched([unmatched])
    }

    /// Gives a new subscription the messages that the client has kept and that match it, before any that arrive later.
    private func handUnmatched(to route: MQTTRoute) {
        let now = core.loop.now
        let (messages, report) = core.link.perform { machine in
            let report = machine.unmatched.expire(at: now, &machine.engine)
            machine.flushRecords()
            return (machine.unmatched.hand(to: route), report)
        }
        self.report(report)
        guard !messages.isEmpty else { return }
        // Count before a reader can have them.
        core.parts.counters.received(messages.count)
        guard let queue = route.receivers.queue else { return }
        let batch = batch(of: messages, for: route)
        core.link.perform { $0.unmatched.handed(batch) }
        _ = queue.push(batch)
    }

    private func batch(of messages: [MQTTUnmatchedMessages.Message], for route: MQTTRoute) -> MQTTBatch {
        var storage = MQTTBatchStorage()
        for message in messages {
            let topicStart = storage.bytes.count
            storage.bytes += message.topic.utf8
            let propertiesStart = storage.bytes.count
            storage.bytes += message.properties
            storage.records.append(
                MQTTMessageRecord(
                    delivery: MQTTUnmatchedMessages.deliveryBit | message.sequence, topicStart: UInt32(topicStart),
                    topicCount: UInt16(propertiesStart - topicStart), propertiesStart: UInt32(propertiesStart),
                    payloadStart: UInt32(storage.bytes.count), payloadCount: UInt32(message.payload.count),
                    packetID: message.packetID, flags: message.flags))
            storage.bytes += message.payload
        }
        return MQTTBatch(storage, version: .v5_0, core: core, route: route)
    }

    /// Once subscriptions exist, acknowledges and forgets the messages that they were handed, unless they acknowledge
    /// manually.
    func confirmUnmatched(_ routes: [MQTTRoute]) {
        let now = core.loop.now
        core.link.perform { machine in
            if machine.unmatched.isEmpty { return }
            for route in routes where route.acknowledgement == .automatic {
                machine.unmatched.confirm(route, &machine.engine, at: now)
            }
            machine.flushRecords()
        }
    }

    func report(_ report: MQTTUnmatchedMessages.Report) {
        for release in report.releases {
            core.news.tell(.messagesUnclaimed(filters: release.filters, count: release.count))
        }
        for drop in report.drops { core.news.tell(.unmatchedMessageDropped(topic: drop.topic, reason: drop.reason)) }
    }
}
