import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClientCore {
    /// Registers a route and waits for the broker's receipt; the route is there before SUBSCRIBE goes out.
    nonisolated(nonsending) func subscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                loop.execute { self.subscribeNow(route, waiter) }
            }
        } onCancel: {
            loop.execute {
                route.isCancelled = true
                guard let waiter = route.waiter else { return }
                route.waiter = nil
                self.remove(route)
                waiter.waiter.resume(returning: .failure(.cancelledWait))
            }
        }
        try result.get()
    }

    private func subscribeNow(_ route: STOMPRoute, _ waiter: STOMPRoute.Waiter) {
        if route.isCancelled { return waiter.resume(returning: .failure(.cancelledWait)) }
        guard supervisor.isActive else {
            let error = STOMPError(.notConnected, "cannot subscribe before connect(); call it first and await it")
            return waiter.resume(returning: .failure(error))
        }
        routes[route.token] = route
        route.waiter = (route.token, waiter)
        // Without a connection the next one subscribes it.
        if supervisor.isConnected { send(route) }
    }

    /// Writes SUBSCRIBE with a receipt.
    func send(_ route: STOMPRoute) {
        let now = MonotonicClock.now
        do throws(STOMPError) {
            let headers = try route.options.headers(for: profile, ack: route.ack)
            route.sentHeaders = headers
            try link.perform(urgent: true) { machine throws(STOMPError) in
                do throws(STOMPMisuse) {
                    try machine.engine.subscribe(
                        id: route.id, destination: route.destination, ack: route.ack, headers: headers,
                        token: route.token, receiptToken: STOMPMachine.requestBit | route.token, at: now)
                } catch {
                    throw STOMPError(error)
                }
            }
        } catch {
            // Without a connection the next one subscribes; anything else cannot be mended by trying again.
            if error.code != .notConnected && error.code != .disconnected { fail(route, error) }
        }
    }

    /// RECEIPT came for a SUBSCRIBE or an UNSUBSCRIBE, or will not come.
    func requestAnswered(_ token: UInt64, _ answer: STOMPMachine.ReceiptAnswer) {
        let id = token & ~STOMPMachine.requestBit
        if let waiter = unsubscribeWaiters.removeValue(forKey: id) { return waiter.resume(returning: answer) }
        guard let route = routes[id] else { return }
        switch answer {
        case .success:
            if let waiter = route.waiter {
                route.waiter = nil
                waiter.waiter.resume(returning: .success(()))
            } else {
                events.send(.resubscribed(destination: route.destination))
            }
        case .failure(let error):
            // A lost connection is not the broker's answer: the next one subscribes.
            if error.code != .connectionLost { fail(route, error) }
        }
    }

    /// A destination cannot be subscribed: its waiter or its receivers hear of it.
    private func fail(_ route: STOMPRoute, _ error: STOMPError) {
        routes[route.token] = nil
        if let waiter = route.waiter {
            route.waiter = nil
            waiter.waiter.resume(returning: .failure(error))
        } else {
            events.send(.subscriptionLost(destination: route.destination, error))
        }
        route.finish(.failed(error))
    }

    /// Takes a route out and tells the broker. Nobody waits for the answer.
    func remove(_ route: STOMPRoute) {
        route.finish(.finished)
        guard routes.removeValue(forKey: route.token) != nil, supervisor.isConnected else { return }
        let now = MonotonicClock.now
        let headers = profile.unsubscribeRepeatsHeaders ? route.sentHeaders : [:]
        link.perform { machine in
            // A failure means that the connection is ending, and the subscription with it.
            try? machine.engine.unsubscribe(id: route.id, headers: headers, at: now)
        }
    }

    nonisolated(nonsending) func unsubscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let result = await withUnsafeContinuation { waiter in
            loop.execute { self.unsubscribeNow(route, waiter) }
        }
        try result.get()
    }

    private func unsubscribeNow(_ route: STOMPRoute, _ waiter: STOMPRoute.Waiter) {
        route.finish(.finished)
        guard routes.removeValue(forKey: route.token) != nil, supervisor.isConnected else {
            return waiter.resume(returning: .success(()))
        }
        let now = MonotonicClock.now
        let id = ids.add(1, ordering: .relaxed).newValue
        let headers = profile.unsubscribeRepeatsHeaders ? route.sentHeaders : [:]
        let refusal = link.perform(urgent: true) { machine -> STOMPError? in
            do throws(STOMPMisuse) {
                try machine.engine.unsubscribe(
                    id: route.id, headers: headers, receiptToken: STOMPMachine.requestBit | id, at: now)
                return nil
            } catch {
                return STOMPError(error)
            }
        }
        if let refusal {
            waiter.resume(returning: .failure(refusal))
        } else {
            unsubscribeWaiters[id] = waiter
        }
    }

    func makeQueue(_ policy: BufferPolicy) -> STOMPRoute.Queue {
        STOMPRoute.Queue(policy: policy) { [weak self] in self?.drained() }
    }
}
