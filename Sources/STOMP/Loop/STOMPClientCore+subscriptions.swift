import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClientCore {
    /// Registers a route and waits for the broker's receipt; the route is there before SUBSCRIBE goes out.
    nonisolated(nonsending) func subscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let call = STOMPRoute.Call()
        let result = await call.answer {
            loop.execute { self.subscribeNow(route, call) }
        } onCancel: {
            loop.execute {
                if route.call != nil {
                    route.call = nil
                    self.remove(route)
                }
                call.end(.failure(.cancelledWait))
            }
        }
        try result.get()
    }

    private func subscribeNow(_ route: STOMPRoute, _ call: STOMPRoute.Call) {
        if call.isOver { return }
        guard supervisor.isActive else {
            let failure: STOMPError? = if case .disconnected(let failure) = news.state { failure } else { nil }
            call.end(.failure(.notSupervised(after: failure)))
            return
        }
        routes[route.token] = route
        route.call = call
        // Without a connection the next one subscribes it.
        if supervisor.isConnected { send(route) }
    }

    /// Subscribes a route on the connection that is open.
    private func send(_ route: STOMPRoute) {
        let result = link.perform(urgent: true) { machine in self.write(route, to: &machine.engine) }
        settle(route, result)
    }

    /// CONNECTED arrived: writes SUBSCRIBE for every route under the same lock, in the order in which they were asked
    /// for, so that no caller's SEND comes before them. What each led to is returned for ``settle(_:_:)``.
    func writeSubscriptions(to engine: inout STOMPEngine) -> [(STOMPRoute, Result<Bool, STOMPError>)] {
        routes.values.sorted { $0.token < $1.token }.map { ($0, write($0, to: &engine)) }
    }

    /// Writes SUBSCRIBE with a receipt. True if the broker subscribes the route by itself and answers nothing.
    private func write(_ route: STOMPRoute, to engine: inout STOMPEngine) -> Result<Bool, STOMPError> {
        do throws(STOMPError) {
            if route.isForReplies, try expectReplies(route, &engine) { return .success(true) }
            let headers = try route.options.headers(
                for: engine.profile, acknowledgement: route.acknowledgement, clientID: configuration.clientID)
            do throws(STOMPUsageError) {
                try engine.subscribe(
                    id: route.id, destination: route.destination, acknowledgement: route.acknowledgement,
                    headers: headers, token: route.token,
                    receiptToken: STOMPMachine.requestBit | route.token, at: MonotonicClock.now)
            } catch {
                return .failure(STOMPError(error))
            }
            return .success(false)
        } catch {
            return .failure(error)
        }
    }

    /// What became of writing SUBSCRIBE, once the lock is released.
    func settle(_ route: STOMPRoute, _ result: Result<Bool, STOMPError>) {
        switch result {
        case .success(true): subscribed(route)
        case .success(false): break
        // Without a connection the next one subscribes; anything else cannot be mended by trying again.
        case .failure(let error) where error.code == .notConnected || error.code == .disconnected: break
        case .failure(let error): fail(route, error)
        }
    }

    private func request(
        _ body: (inout STOMPEngine, _ now: Int64) throws(STOMPUsageError) -> Void
    ) throws(STOMPError) {
        try link.perform(urgent: true) { machine throws(STOMPError) in
            do throws(STOMPUsageError) {
                try body(&machine.engine, MonotonicClock.now)
            } catch {
                throw explain(error)
            }
        }
    }

    /// RECEIPT came for a SUBSCRIBE or an UNSUBSCRIBE, or will not come.
    func requestAnswered(_ token: UInt64, _ answer: STOMPMachine.ReceiptAnswer) {
        let id = token & ~STOMPMachine.requestBit
        if let call = unsubscribes.removeValue(forKey: id) {
            call.end(answer)
            return
        }
        guard let route = routes[id] else { return }
        switch answer {
        case .success: subscribed(route)
        case .failure(let error):
            switch error.code {
            // A lost connection is not the broker's answer: the next one subscribes.
            case .connectionLost: break
            // An ERROR that names no receipt may have meant a frame without one; only the second in a row counts
            // against a subscription that was good before.
            case .refused
            where error.serverError?.receiptID == nil && route.call == nil && route.presumedRefusals == 0:
                route.presumedRefusals += 1
            case .timedOut:
                fail(route, error)
                // The broker may have it all the same.
                link.perform { try? $0.engine.unsubscribe(id: route.id, at: MonotonicClock.now) }
            default: fail(route, error)
            }
        }
    }

    func subscribed(_ route: STOMPRoute) {
        route.presumedRefusals = 0
        if let call = route.call {
            route.call = nil
            call.end(.success(()))
            news.tell(.subscribed(destination: route.destination))
        } else {
            news.tell(.resubscribed(destination: route.destination))
        }
    }

    /// A destination cannot be subscribed: its waiter or its receivers hear of it.
    private func fail(_ route: STOMPRoute, _ error: STOMPError) {
        routes[route.token] = nil
        if let call = route.call {
            route.call = nil
            call.end(.failure(error))
        } else {
            news.tell(.subscriptionLost(destination: route.destination, error))
        }
        finish(route, .failed(error))
    }

    /// Nothing more comes for a route, so that its full buffers need not hold up the others.
    private func finish(_ route: STOMPRoute, _ end: STOMPRoute.Queue.Next) {
        route.finish(end)
        stopPausing(for: route)
    }

    /// Takes a route out and tells the broker, which keeps what is durable. Nobody waits for the answer.
    func remove(_ route: STOMPRoute) {
        finish(route, .finished)
        guard routes.removeValue(forKey: route.token) != nil else { return }
        // Told once UNSUBSCRIBE is written: what is sent after the event comes after it on the wire.
        defer { news.tell(.unsubscribed(destination: route.destination)) }
        guard supervisor.isConnected else { return }
        // A failure means that the connection is ending, and the subscription with it.
        link.perform { try? $0.engine.unsubscribe(id: route.id, at: MonotonicClock.now) }
    }

    /// Takes a route out and waits for the broker's receipt. A cancelled task does not wait; UNSUBSCRIBE is sent all the
    /// same.
    nonisolated(nonsending) func unsubscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let receipt = ids.add(1, ordering: .relaxed).newValue
        let call = STOMPRoute.Call()
        loop.execute { self.unsubscribeNow(route, receipt, call) }
        let result = await call.answer {
        } onCancel: {
            call.end(.failure(.cancelledWait))
        }
        try result.get()
    }

    private func unsubscribeNow(_ route: STOMPRoute, _ receipt: UInt64, _ call: STOMPRoute.Call) {
        finish(route, .finished)
        guard routes.removeValue(forKey: route.token) != nil else {
            call.end(.success(()))
            return
        }
        defer { news.tell(.unsubscribed(destination: route.destination)) }
        let durable = route.options.durableName.flatMap { profile.durableHeaders(name: $0) }
        guard supervisor.isConnected else {
            // The subscription ended with its connection, a durable one did not.
            let error = STOMPError(
                .notConnected,
                "the durable subscription to '\(route.destination)' stays at the broker, for there is no connection; subscribe again and unsubscribe then"
            )
            call.end(route.options.durableName == nil ? .success(()) : .failure(error))
            return
        }
        do throws(STOMPError) {
            try request { (engine, now) throws(STOMPUsageError) in
                let token = STOMPMachine.requestBit | receipt
                guard let durable, engine.profile.deletesDurableApart else {
                    return try engine.unsubscribe(
                        id: route.id, headers: durable ?? [:], receiptToken: token, at: now)
                }
                try engine.unsubscribe(id: route.id, at: now)
                try engine.deleteDurable(id: route.id, headers: durable, receiptToken: token, at: now)
            }
            unsubscribes[receipt] = call
        } catch {
            call.end(.failure(error))
        }
    }

    /// Where the broker makes the reply queue by itself there is nothing to subscribe. Returns whether that is so.
    func expectReplies(_ route: STOMPRoute, _ engine: inout STOMPEngine) throws(STOMPError) -> Bool {
        let profile = engine.profile
        switch profile.temporaryQueues {
        case .subscribeFirst: return false
        case .unsupported:
            throw STOMPError(
                .unsupportedByBroker,
                "\(profile.name) is not known to have temporary queues; subscribe to a queue of your own and name it in replyTo"
            )
        case .implicit:
            do throws(STOMPUsageError) {
                try engine.expectMessages(
                    subscription: route.id, destination: route.destination, token: route.token)
            } catch {
                throw STOMPError(error)
            }
            return true
        }
    }
}
