import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

extension MQTTClientCore {
    /// Registers a route and waits for the server's answers; the route is there before SUBSCRIBE goes out.
    nonisolated(nonsending) func subscribe(_ route: MQTTRoute) async throws(MQTTError) -> MQTTSubscribeWait.Answer {
        let call = MQTTSubscribeWait.Call()
        let result = await call.answer {
            loop.execute { self.subscribeNow(route, call) }
        } onCancel: {
            loop.execute {
                self.cancelSubscribe(route)
                call.end(.failure(.cancelledWait))
            }
        }
        let answer = try result.get()
        loop.execute { self.confirmKept(route) }
        return answer
    }

    private func subscribeNow(_ route: MQTTRoute, _ call: MQTTSubscribeWait.Call) {
        if call.isOver { return }
        guard supervisor.isActive else {
            call.end(.failure(notSupervised))
            return
        }
        let wait = MQTTSubscribeWait(route, call)
        var keys: [ByteKey] = []
        for (index, request) in route.requests.enumerated() {
            let (entry, needsSubscribe) = router.add(route, request)
            if needsSubscribe {
                entry.properties = route.properties
                if !route.properties.subscriptionIdentifiers.isEmpty { entry.identifier = 0 }
            }
            if let granted = entry.granted, !needsSubscribe {
                wait.answer(index, .success(granted))
            } else {
                entry.waiters.append((wait, index))
                if needsSubscribe { keys.append(ByteKey(request.filter)) }
            }
        }
        router.identify(route)
        handKept(to: route)
        // Without a connection the next one subscribes it.
        if supervisor.isConnected { send(keys) }
    }

    /// Why nobody tries to be connected, and what to do about it.
    var notSupervised: MQTTError { link.perform { $0.refusal?.value } ?? .notSupervised(after: nil) }

    private func cancelSubscribe(_ route: MQTTRoute) {
        var waits: [MQTTSubscribeWait] = []
        for request in route.requests {
            guard let entry = router.entries[ByteKey(request.filter)] else { continue }
            waits += entry.waiters.filter { $0.wait.route === route }.map(\.wait)
            entry.waiters.removeAll { $0.wait.route === route }
        }
        guard !waits.isEmpty else { return }
        remove(route)
        for wait in waits { wait.fail(.cancelledWait) }
    }

    /// Takes a route out; the server forgets filters with their last one. Nobody waits for the answer.
    func remove(_ route: MQTTRoute) {
        route.finish(.finished)
        forget(router.remove(route))
    }

    /// Lets the server forget filters, now or with the next connection that continues the session.
    private func forget(_ filters: [String]) {
        guard !filters.isEmpty else { return }
        guard supervisor.isConnected else { return router.forgetLater(filters) }
        writeUnsubscribe(filters)
    }

    private func writeUnsubscribe(_ filters: [String]) {
        let token = router.makeRequest(forgetting: filters)
        let now = MonotonicClock.now
        link.perform { machine in
            // A failure means that the connection is ending; the next one tries again.
            try? machine.engine.unsubscribe(filters, token: token, at: now)
        }
    }

    /// Makes a route get what no other one does; one that did so before ends.
    func receiveUnmatched(_ route: MQTTRoute) {
        router.unmatched?.finish(.finished)
        router.setUnmatched(route)
        handKept(to: route)
        confirmKept(route)
    }

    /// Takes a route out and waits for the server's answer. A cancelled task does not wait; UNSUBSCRIBE is sent all the
    /// same.
    nonisolated(nonsending) func unsubscribe(
        _ route: MQTTRoute, properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        let call = PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>()
        loop.execute { self.unsubscribeNow(route, properties, call) }
        let result = await call.answer {
        } onCancel: {
            call.end(.failure(.cancelledWait))
        }
        return try result.get()
    }

    private func unsubscribeNow(
        _ route: MQTTRoute, _ properties: MQTTProperties, _ call: PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>
    ) {
        route.finish(.finished)
        let filters = router.remove(route)
        guard supervisor.isActive else {
            call.end(.failure(notSupervised))
            return
        }
        guard !filters.isEmpty, supervisor.isConnected else {
            router.forgetLater(filters)
            call.end(.success(MQTTUnsubscribeResult()))
            return
        }
        let token = router.makeRequest(forgetting: filters)
        let now = MonotonicClock.now
        let refusal = link.perform { machine -> MQTTUsageError? in
            do throws(MQTTUsageError) {
                try machine.engine.unsubscribe(filters, properties: properties, token: token, at: now)
                return nil
            } catch {
                return error
            }
        }
        if let refusal {
            call.end(.failure(MQTTError(refusal)))
        } else {
            unsubscribes[token] = call
        }
    }

    /// Writes SUBSCRIBE for some filters: one packet for each that has an identifier of its own, if the server knows
    /// identifiers, and one for all others that have the same properties.
    private func send(_ keys: [ByteKey], comesFirst: Bool = false) {
        let knowsIdentifiers = link.perform {
            $0.engine.version.hasProperties && $0.engine.limits.subscriptionIdentifiersAvailable
        }
        var others: [ByteKey] = []
        var identified: [(key: ByteKey, identifier: UInt32)] = []
        for key in keys {
            guard knowsIdentifiers, let entry = router.entries[key], entry.identifier != 0 else {
                others.append(key)
                continue
            }
            if !identified.contains(where: { $0.key == key }) { identified.append((key, entry.identifier)) }
        }
        sendTogether(others, comesFirst: comesFirst)
        // In the order of their subscription: a message that comes for a later one has been sent for earlier ones.
        for (key, identifier) in identified.sorted(by: { $0.identifier < $1.identifier }) {
            var properties = router.entries[key]?.properties ?? []
            properties.subscriptionIdentifiers = [identifier]
            write([key], properties, comesFirst: comesFirst)
        }
    }

    private func sendTogether(_ keys: [ByteKey], comesFirst: Bool) {
        guard let first = keys.first else { return }
        let properties = router.entries[first]?.properties ?? []
        let others = keys.filter { router.entries[$0]?.properties ?? [] != properties }
        if !others.isEmpty {
            sendTogether(others, comesFirst: comesFirst)
            return sendTogether(
                keys.filter { router.entries[$0]?.properties ?? [] == properties }, comesFirst: comesFirst)
        }
        write(keys, properties, comesFirst: comesFirst)
    }

    private func write(_ keys: [ByteKey], _ properties: MQTTProperties, comesFirst: Bool) {
        let requests = keys.compactMap { router.entries[$0]?.request }
        guard !requests.isEmpty else { return }
        let token = router.makeRequest(for: keys, comesFirst: comesFirst)
        let now = MonotonicClock.now
        let refusal = link.perform(urgent: true) { machine -> MQTTUsageError? in
            do throws(MQTTUsageError) {
                try machine.engine.subscribe(requests, properties: properties, token: token, at: now)
                return nil
            } catch {
                return error
            }
        }
        guard let refusal else { return }
        _ = router.takeRequest(token)
        // The connection is ending: the next one subscribes. Anything else is the user's mistake.
        if refusal.code == .notConnected || refusal.code == .closing { return }
        if keys.count > 1 {
            for key in keys { write([key], properties, comesFirst: comesFirst) }
        } else {
            fail(keys[0], MQTTError(refusal))
        }
    }

    /// A connection was established: subscribes what the server does not know, and lets messages leave once that is
    /// answered.
    func resubscribe(sessionPresent: Bool) {
        if let router = knownRouter {
            sendUnsubscriptions(of: router)
            sendSubscriptions(of: router, sessionPresent: sessionPresent)
        }
        let scratch = MQTTScratch()
        let now = MonotonicClock.now
        link.perform(urgent: true) { $0.subscriptionsSent(at: now, into: scratch) }
        scratch.perform(RawSpan())
    }

    /// Filters of a session that continues, whose subscriptions ended without a connection.
    private func sendUnsubscriptions(of router: MQTTRouter) {
        let filters = router.takeFiltersToForget()
        guard blockedSession.isResumed else { return }
        // In packets that any server takes.
        for start in stride(from: 0, to: filters.count, by: 100) {
            writeUnsubscribe(Array(filters[start..<min(start + 100, filters.count)]))
        }
    }

    private func sendSubscriptions(of router: MQTTRouter, sessionPresent: Bool) {
        let keys = router.entries.filter { !sessionPresent || !$0.value.waiters.isEmpty || !$0.value.wasGranted }
            .map(\.key)
        let asked = Set(keys)
        for (key, entry) in router.entries where !asked.contains(key) { entry.granted = entry.lastGranted }
        // In packets that any server takes.
        var start = 0
        while start < keys.count {
            send(Array(keys[start..<min(start + 100, keys.count)]), comesFirst: true)
            start += 100
        }
    }

    func subscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        guard let request = router.takeRequest(token) else { return }
        for (key, code) in zip(request.keys, codes) {
            guard let entry = router.entries[key] else { continue }
            entry.isPending = false
            if code.isError {
                fail(
                    key,
                    MQTTError(
                        .refused, "the server refused to subscribe '\(key.text)': \(code.words(properties))",
                        reasonCode: code, properties: properties), answer: token)
                continue
            }
            entry.granted = code
            entry.lastGranted = code
            let waiters = entry.waiters
            entry.waiters = []
            if waiters.isEmpty { news.tell(.resubscribed(filter: key.text, code)) }
            for (wait, index) in waiters {
                wait.note(properties, of: token)
                wait.answer(index, .success(code))
            }
        }
    }

    func unsubscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        _ = router.takeRequest(token)
        guard let call = unsubscribes.removeValue(forKey: token) else { return }
        guard let refusal = codes.first, codes.allSatisfy(\.isError) else {
            call.end(.success(MQTTUnsubscribeResult(reasonCodes: codes, properties: properties)))
            return
        }
        let error = MQTTError(
            .refused,
            "The server refused to unsubscribe: \(refusal.words(properties)). Its messages may still arrive and come to unmatchedMessages().",
            reasonCode: refusal, properties: properties)
        call.end(.failure(error))
    }

    func requestFailed(_ token: UInt64, isLate: Bool) {
        if isLate {
            let error = MQTTError(
                .timedOut, "the server did not answer in time; the request may still take effect")
            unsubscribes.removeValue(forKey: token)?.end(.failure(error))
            guard let request = router.takeRequest(token) else { return }
            for key in request.keys {
                if request.comesFirst { failWaits(key, error) } else { fail(key, error) }
            }
        }
        // Failed because the connection closed: filters are subscribed on the next one.
    }

    /// Nobody waits any longer for a filter's answer; subscriptions that were granted before continue on the next
    /// connection.
    private func failWaits(_ key: ByteKey, _ error: MQTTError) {
        guard let entry = router.entries[key], !entry.waiters.isEmpty else { return }
        guard entry.wasGranted else { return fail(key, error) }
        let waits = entry.waiters
        entry.waiters = []
        for (wait, index) in waits {
            router.withdraw(wait.route, from: entry)
            wait.answer(index, .failure(error))
        }
    }

    /// A filter cannot be subscribed: its waiters and its routes hear of it.
    ///
    /// - Parameter answer: the request whose answer says so; 0 if none does.
    private func fail(_ key: ByteKey, _ error: MQTTError, answer: UInt64 = 0) {
        guard let entry = router.removeEntry(key) else { return }
        if entry.waiters.isEmpty, let code = error.reasonCode {
            news.tell(.subscriptionLost(filter: key.text, code))
        }
        for (wait, index) in entry.waiters {
            wait.note(error.properties, of: answer)
            wait.answer(index, .failure(error))
        }
        for route in entry.routes {
            // A subscription of several filters lives as long as one of them does.
            route.lostFilters += 1
            if route.lostFilters >= route.requests.count { route.finish(.failed(error)) }
        }
    }
}
