import MessagingShell
import STOMPCore
import Transport

/// The subscriptions of a client: where received messages go, and what the broker is to send.
///
/// This file runs on the loop's thread, `STOMPSubscriptions+calls.swift` on the callers' tasks.
final class STOMPSubscriptions: ClientSubscriptions, @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.

    /// A route, and the result of writing SUBSCRIBE for it: true if the broker sends no receipt for it.
    typealias Written = (STOMPRoute, Result<Bool, STOMPError>)

    unowned var core: STOMPClientCore!
    private var routes: [UInt64: STOMPRoute] = [:]
    /// A route whose UNSUBSCRIBE awaits its receipt, and the callers that wait for that.
    private struct Unsubscribe {
        let route: STOMPRoute
        /// What remains at the broker once it has confirmed.
        let remainder: STOMPRoute.Remainder
        var calls: [STOMPRoute.Call]
    }

    /// By the numbers of the receipts.
    private var unsubscribes: [UInt64: Unsubscribe] = [:]
    var fullBuffers: FullBuffers<STOMPRoute>?

    var allRoutes: [STOMPRoute] { orderedRoutes }

    func route(_ token: UInt64) -> STOMPRoute? { routes[token] }

    // MARK: Subscribing

    func subscribeNow(_ route: STOMPRoute, _ call: STOMPRoute.Call) {
        guard !call.isOver, core.accepts(call) else { return }
        route.call = call
        declare(route)
    }

    /// Registers a route, whether or not the client tries to be connected.
    func declare(_ route: STOMPRoute) {
        routes[route.token] = route
        // Without a connection the next one subscribes it.
        if core.supervisor.isConnected { send(route) }
    }

    func cancelSubscribe(_ route: STOMPRoute) {
        guard route.call != nil else { return }
        route.call = nil
        remove(route)
    }

    /// Subscribes a route on the connection that is open.
    private func send(_ route: STOMPRoute) {
        let replacement = route.options.headersProvider?() ?? [:]
        let (clientID, now) = (core.configuration.clientID, core.loop.now)
        let result = core.link.perform(urgent: true) { machine in
            machine.subscribe(route, replacement, clientID: clientID, at: now)
        }
        subscribeWritten(route, result)
    }

    /// CONNECTED arrived, and the other routes are subscribed: subscribes those whose headers the application provides.
    func sendProvided() {
        let provided = routes.values.filter { $0.options.headersProvider != nil }
        for route in provided.sorted(by: { $0.token < $1.token }) { send(route) }
    }

    /// Handles the result of writing SUBSCRIBE, after the lock is released.
    func subscribeWritten(_ route: STOMPRoute, _ result: Result<Bool, STOMPError>) {
        switch result {
        case .success(true): subscribed(route)
        case .success(false): if route.firstWritten == .max { route.firstWritten = core.loop.now }
        // Without a connection the next one subscribes; other failures would recur.
        case .failure(let error) where error.code == .notConnected || error.code == .disconnected: break
        case .failure(let error): fail(route, error)
        }
    }

    // MARK: The broker's answers

    /// RECEIPT arrived for SUBSCRIBE or UNSUBSCRIBE, or will not arrive.
    func requestAnswered(_ token: UInt64, _ answer: STOMPMachine.ReceiptAnswer) {
        let id = token & ~STOMPMachine.requestBit
        if let ended = unsubscribes.removeValue(forKey: id) { return end(ended, answer) }
        guard let route = routes[id] else { return }
        switch answer {
        case .success: subscribed(route)
        case .failure(let error):
            switch error.code {
            // This is not the broker's answer: the next connection subscribes.
            case .connectionLost: route.isUnanswered = true
            // An ERROR without a receipt-id may refer to a frame that had no receipt. A subscription that has worked before
            // fails with the second one in a row.
            case .refused
            where error.serverError?.receiptID == nil && route.call == nil && route.presumedRefusals == 0:
                route.presumedRefusals += 1
            case .timedOut where route.call == nil:
                // The answer may be among what is not read.
                if core.link.pauseReason != nil {
                    route.receivers.replies?.subscribedAgain()
                    return
                }
                // The server is at fault, not the subscription: the next connection subscribes.
                core.giveUpConnection(
                    .resubscriptionLate(route.destination, core.link.perform { $0.engine.receiptHint }))
            case .timedOut:
                fail(route, error)
                // The broker may have subscribed it nevertheless.
                unsubscribeWithoutWaiting(route)
            default: fail(route, error.namingSubscribe(to: route.destination))
            }
        }
    }

    func subscribed(_ route: STOMPRoute) {
        (route.presumedRefusals, route.unansweredEnds, route.isUnanswered) = (0, 0, false)
        if let call = route.call {
            route.call = nil
            call.end(.success(()))
        }
        core.news.tell(
            route.wasGranted
                ? .resubscribed(destination: route.destination) : .subscribed(destination: route.destination))
        route.wasGranted = true
        route.receivers.replies?.subscribedAgain()
    }

    /// A message of a subscription is beyond the client's limits and has ended the connection. The broker delivers such
    /// a message again on the next connection, so the third time in a row ends the subscription: otherwise nothing else
    /// would arrive.
    ///
    /// - Parameter wasStable: whether the connection had lasted, so that an earlier end has nothing to do with this one.
    func messageRefused(_ token: UInt64, wasStable: Bool, _ error: STOMPError) {
        guard let route = routes[token] else { return }
        route.endedConnections = wasStable ? 1 : route.endedConnections + 1
        guard route.endedConnections >= 3 else { return }
        fail(route, error)
        // Its message may have come before the receipt of SUBSCRIBE.
        if route.options.durableName != nil { route.remainder = .durable }
    }

    /// A destination cannot be subscribed: fails the waiting caller, or ends the subscription.
    private func fail(_ route: STOMPRoute, _ error: STOMPError) {
        routes[route.token] = nil
        // A subscription that the broker refuses to create does not remain there, unless it existed before.
        if !route.wasGranted { route.remainder = .nothing }
        if let call = route.call {
            route.call = nil
            call.end(.failure(error))
        } else {
            core.news.tell(.subscriptionLost(destination: route.destination, error))
        }
        route.finish(.failed(error))
    }

    // MARK: Unsubscribing

    /// Removes a route without waiting for the broker's answer. A durable subscription remains at the broker.
    func remove(_ route: STOMPRoute) {
        route.finish(.finished)
        guard routes.removeValue(forKey: route.token) != nil else { return }
        // After UNSUBSCRIBE is written: frames that are sent in reaction to the events follow it.
        let unanswered = core.supervisor.isConnected ? unsubscribeWithoutWaiting(route) : 0
        tellEnd(of: route, unanswered)
    }

    /// Writes UNSUBSCRIBE without a receipt. Returns the number of unanswered messages.
    @discardableResult
    private func unsubscribeWithoutWaiting(_ route: STOMPRoute) -> Int {
        // The broker deletes a reply queue that it made without SUBSCRIBE, at the end of the connection. Its messages match no
        // route until then.
        if route.receivers.areRequests, core.profile.temporaryQueues == .implicit { return 0 }
        // An error means that the connection is ending, and the subscription with it.
        return core.link.perform { try? $0.engine.unsubscribe(id: route.id, at: core.loop.now) } ?? 0
    }

    private func tellEnd(of route: STOMPRoute, _ unanswered: Int) {
        core.news.tell(.unsubscribed(destination: route.destination))
        guard unanswered > 0 else { return }
        core.news.tell(.messagesLeftUnanswered(destination: route.destination, count: unanswered))
    }

    func unsubscribeNow(_ route: STOMPRoute, _ receipt: UInt64, _ call: STOMPRoute.Call) {
        if let (number, _) = unsubscribes.first(where: { $1.route === route }) {
            unsubscribes[number]?.calls.append(call)
            return
        }
        route.finish(.finished)
        let isKnown = routes.removeValue(forKey: route.token) != nil
        guard isKnown, core.supervisor.isConnected else {
            if isKnown { tellEnd(of: route, 0) }
            call.end(remainderError(route).map { .failure($0) } ?? .success(()))
            return
        }
        var unanswered = 0
        defer { tellEnd(of: route, unanswered) }
        let profile = core.profile
        let sendsReceipts = profile.sendsReceipts
        do throws(STOMPError) {
            let durable = try deletingHeaders(route, profile)
            unanswered = try core.sender.write(urgent: true) { engine, now throws(STOMPUsageError) in
                let token = sendsReceipts ? STOMPMachine.requestBit | receipt : nil
                guard let durable, profile.deletesDurableApart else {
                    return try engine.unsubscribe(
                        id: route.id, headers: durable ?? [:], receiptToken: token, at: now)
                }
                let unanswered = try engine.unsubscribe(id: route.id, at: now)
                try engine.deleteDurable(id: route.id, headers: durable, receiptToken: token, at: now)
                return unanswered
            }
            let remainder: STOMPRoute.Remainder =
                durable == nil || profile.deletesDurable(to: route.destination) ? .nothing : .undeletable
            if route.options.durableName != nil { route.remainder = sendsReceipts ? .unknown : remainder }
            if sendsReceipts {
                unsubscribes[receipt] = Unsubscribe(route: route, remainder: remainder, calls: [call])
            } else {
                call.end(remainderError(route).map { .failure($0) } ?? .success(()))
            }
        } catch {
            // It ends with its connection, which is ending.
            let hasEnded = route.options.durableName == nil && core.link.perform { $0.engine.phase != .connected }
            call.end(hasEnded ? .success(()) : .failure(error))
        }
    }

    /// The headers with which UNSUBSCRIBE deletes a durable subscription; nil for another one.
    private func deletingHeaders(
        _ route: STOMPRoute, _ profile: STOMPBrokerProfile
    ) throws(STOMPError) -> STOMPHeaders? {
        guard let name = route.options.durableName else { return nil }
        // RabbitMQ finds the queue by what named it in SUBSCRIBE, such as x-queue-name.
        guard profile.durable == .flags else { return profile.durableHeaders(name: name) }
        return try route.options.headers(
            for: profile, acknowledgement: route.acknowledgement, clientID: core.configuration.clientID)
    }

    /// The receipt of UNSUBSCRIBE arrived, or will not arrive.
    private func end(_ ended: Unsubscribe, _ answer: STOMPMachine.ReceiptAnswer) {
        var answer = answer
        switch answer {
        case .success:
            ended.route.remainder = ended.remainder
            if let remains = remainderError(ended.route) { answer = .failure(remains) }
        case .failure(let error) where error.code == .connectionLost || error.code == .timedOut:
            // Calling again does not send UNSUBSCRIBE again.
            if let unknown = remainderError(ended.route, error) { answer = .failure(unknown) }
        case .failure(let error):
            answer = .failure(error.namingUnsubscribe(from: ended.route.destination))
        }
        for call in ended.calls { call.end(answer) }
    }

    private func endUnsubscribes(_ failure: STOMPError) {
        let ended = unsubscribes.sorted { $0.key < $1.key }
        unsubscribes = [:]
        for (_, unsubscribe) in ended { end(unsubscribe, .failure(failure)) }
    }

    /// Why a subscription that has ended here may not have ended at the broker; nil if it has.
    ///
    /// - Parameter cause: why the broker's answer is missing, when that has just become known.
    private func remainderError(_ route: STOMPRoute, _ cause: STOMPError? = nil) -> STOMPError? {
        switch route.remainder {
        case .nothing: nil
        case .durable: .durableRemains(route.destination, isConnected: core.supervisor.isConnected)
        case .undeletable: .durableIsUndeletable(route.destination)
        case .unknown: .durableMayRemain(route.destination, cause)
        }
    }

    // MARK: The connection

    /// In the order of their subscription.
    var orderedRoutes: [STOMPRoute] { routes.values.sorted { $0.token < $1.token } }

    /// Why the connection ended, naming the subscription whose SUBSCRIBE was the first without an answer on three connections
    /// in a row: the server may end them because of it. RabbitMQ closes a WebSocket before its ERROR arrives.
    func naming(_ reason: STOMPError) -> STOMPError {
        let unanswered = routes.values.filter(\.isUnanswered)
        for route in unanswered { route.isUnanswered = false }
        guard let first = unanswered.min(by: { $0.token < $1.token }),
            reason.code == .connectionLost, reason.serverError == nil, !reason.isSilenceOrViolation
        else { return reason }
        if first.unansweredEnds < .max { first.unansweredEnds += 1 }
        guard first.unansweredEnds >= 3 else { return reason }
        return reason.hinting(
            STOMPError.hint(atUnansweredSubscribeTo: first.destination, connections: Int(first.unansweredEnds)))
    }

    func connectionClosed(_ reason: STOMPError) {
        fullBuffers?.removeAll()
        endUnsubscribes(reason)
        failLateSubscribes()
        // A temporary queue ends with its connection.
        for route in orderedRoutes where route.receivers.areRequests {
            route.receivers.replies?.connectionEnded(reason)
        }
    }

    /// The connection has ended: callers fail whose SUBSCRIBE was written so long ago, on this connection or an earlier one,
    /// that the answer is late.
    private func failLateSubscribes() {
        let (now, timeout) = (core.loop.now, core.configuration.requestTimeout.inNanoseconds)
        for route in orderedRoutes
        where route.call != nil && route.firstWritten.advanced(byNanoseconds: timeout) <= now {
            fail(route, .connectionsEndBeforeReceipt(ofSubscribeTo: route.destination))
        }
    }

    /// Nothing is read: all callers fail that wait for a receipt. What they have asked for ends.
    func readingStandsStill() {
        let error = STOMPError(.timedOut, nil, unreadBecause: core.link.pauseReason)
        for route in orderedRoutes where route.call != nil {
            fail(route, error.namingSubscribe(to: route.destination))
            // The broker may have subscribed it nevertheless.
            unsubscribeWithoutWaiting(route)
        }
        endUnsubscribes(error)
    }

    /// The client has stopped connecting: all subscriptions end, and all waiting callers fail.
    func stop(_ failure: STOMPError) {
        let all = orderedRoutes
        routes = [:]
        for route in all {
            route.call?.end(.failure(failure))
            route.call = nil
            route.finish(.init(stoppedBy: failure))
        }
        endUnsubscribes(failure)
    }
}
