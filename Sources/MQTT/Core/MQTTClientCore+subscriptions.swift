import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Registers a route and waits for the server's answer; the route is there before SUBSCRIBE goes out.
    nonisolated(nonsending) func subscribe(_ route: MQTTRoute) async throws(MQTTError) -> MQTTReasonCode {
        let id = callerIDs.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                loop.execute { self.subscribeNow(route, id: id, waiter: waiter) }
            }
        } onCancel: {
            loop.execute { self.cancelSubscribe(route, id: id) }
        }
        return try result.get()
    }

    private func subscribeNow(_ route: MQTTRoute, id: UInt64, waiter: MQTTRouter.Waiter) {
        if route.isCancelled { return waiter.resume(returning: .failure(.cancelledWait)) }
        guard supervisor.isActive else {
            return waiter.resume(
                returning: .failure(
                    MQTTError(.notConnected, "cannot subscribe before connect(); call it first and await it")))
        }
        let (entry, needsSubscribe) = router.add(route)
        if let granted = entry.granted, !needsSubscribe {
            return waiter.resume(returning: .success(granted))
        }
        entry.waiters.append((id, waiter))
        // Without a connection the next one subscribes it.
        if needsSubscribe, supervisor.isConnected { send([FilterKey(route.request.filter)]) }
    }

    private func cancelSubscribe(_ route: MQTTRoute, id: UInt64) {
        route.isCancelled = true
        guard let entry = router.entries[FilterKey(route.request.filter)],
            let index = entry.waiters.firstIndex(where: { $0.id == id })
        else { return }
        let waiter = entry.waiters.remove(at: index).waiter
        remove(route)
        waiter.resume(returning: .failure(.cancelledWait))
    }

    /// Takes a route out; the server forgets the filter with its last one. Nobody waits for the answer.
    func remove(_ route: MQTTRoute) {
        route.finish(.finished)
        guard router.remove(route), supervisor.isConnected else { return }
        let token = router.makeRequest(for: [])
        let now = MonotonicClock.now
        link.perform { machine in
            // A failure means that the connection is ending, and the subscription with it.
            try? machine.engine.unsubscribe([route.request.filter], token: token, at: now)
        }
    }

    nonisolated(nonsending) func unsubscribe(_ route: MQTTRoute) async throws(MQTTError) {
        let result = await withUnsafeContinuation { waiter in
            loop.execute { self.unsubscribeNow(route, waiter) }
        }
        return try result.get()
    }

    private func unsubscribeNow(
        _ route: MQTTRoute, _ waiter: UnsafeContinuation<Result<Void, MQTTError>, Never>
    ) {
        route.finish(.finished)
        guard router.remove(route), supervisor.isConnected else { return waiter.resume(returning: .success(())) }
        let token = router.makeRequest(for: [])
        let now = MonotonicClock.now
        let refusal = link.perform { machine -> MQTTMisuse? in
            do throws(MQTTMisuse) {
                try machine.engine.unsubscribe([route.request.filter], token: token, at: now)
                return nil
            } catch {
                return error
            }
        }
        if let refusal {
            waiter.resume(returning: .failure(MQTTError(refusal)))
        } else {
            unsubscribeWaiters[token] = waiter
        }
    }

    /// Writes SUBSCRIBE for some filters, in one packet.
    private func send(_ keys: [FilterKey]) {
        let requests = keys.compactMap { router.entries[$0]?.request }
        guard !requests.isEmpty else { return }
        let token = router.makeRequest(for: keys)
        let now = MonotonicClock.now
        let refusal = link.perform(urgent: true) { machine -> MQTTMisuse? in
            do throws(MQTTMisuse) {
                try machine.engine.subscribe(requests, token: token, at: now)
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
            for key in keys { send([key]) }
        } else {
            fail(keys[0], MQTTError(refusal))
        }
    }

    /// A connection was established: subscribes what the server does not know.
    func resubscribe(sessionPresent: Bool) {
        let keys = router.entries.filter { !sessionPresent || !$0.value.waiters.isEmpty || !$0.value.wasGranted }
            .map(\.key)
        for key in router.entries.keys where !keys.contains(key) {
            router.entries[key]?.granted = router.entries[key]?.lastGranted
        }
        // In packets that any server takes.
        var start = 0
        while start < keys.count {
            send(Array(keys[start..<min(start + 100, keys.count)]))
            start += 100
        }
    }

    func subscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode]) {
        guard let keys = router.takeRequest(token) else { return }
        for (key, code) in zip(keys, codes) {
            guard let entry = router.entries[key] else { continue }
            entry.isPending = false
            if code.isError {
                fail(
                    key,
                    MQTTError(.refused, "the server refused to subscribe '\(key.filter)': \(code)", reasonCode: code))
                continue
            }
            entry.granted = code
            entry.lastGranted = code
            let waiters = entry.waiters
            entry.waiters = []
            if waiters.isEmpty { events.send(.resubscribed(filter: key.filter, code)) }
            for (_, waiter) in waiters { waiter.resume(returning: .success(code)) }
        }
    }

    func requestFailed(_ token: UInt64, isLate: Bool) {
        if isLate {
            let error = MQTTError(
                .timedOut, "the server did not answer in time; the request may still take effect")
            unsubscribeWaiters.removeValue(forKey: token)?.resume(returning: .failure(error))
            for key in router.takeRequest(token) ?? [] { fail(key, error) }
        }
        // Failed because the connection closed: filters are subscribed on the next one.
    }

    /// A filter cannot be subscribed: its waiters and its routes hear of it.
    private func fail(_ key: FilterKey, _ error: MQTTError) {
        guard let entry = router.removeEntry(key) else { return }
        if entry.waiters.isEmpty, let code = error.reasonCode {
            events.send(.subscriptionLost(filter: key.filter, code))
        }
        for (_, waiter) in entry.waiters { waiter.resume(returning: .failure(error)) }
        for route in entry.routes { route.finish(.failed(error)) }
    }
}
