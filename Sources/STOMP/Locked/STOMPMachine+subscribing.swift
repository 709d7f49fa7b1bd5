import MessagingShell
import STOMPCore

/// Writing SUBSCRIBE; on the loop's thread (the routes live there) and under the link's lock (the engine does).
extension STOMPMachine {
    /// CONNECTED arrived: writes SUBSCRIBE for every route under the same lock, in the order in which the user subscribed,
    /// so that no caller's SEND comes before them. Subscriptions whose headers the application provides are left to
    /// ``STOMPSubscriptions/sendProvided()``, without the lock.
    ///
    /// - Returns: the results for ``STOMPSubscriptions/subscribeWritten(_:_:)``.
    mutating func subscribeAll(_ core: STOMPClientCore, at now: Int64) -> [STOMPSubscriptions.Written] {
        let clientID = core.configuration.clientID
        return core.subscriptions.orderedRoutes.compactMap { route in
            route.options.headersProvider == nil
                ? (route, subscribe(route, [:], clientID: clientID, at: now)) : nil
        }
    }

    /// Writes SUBSCRIBE, with a receipt if the broker sends those. True if no receipt is awaited, for example because
    /// the broker subscribes the route without SUBSCRIBE.
    ///
    /// - Parameter replacement: the headers that the application provides for this SUBSCRIBE.
    mutating func subscribe(
        _ route: STOMPRoute, _ replacement: STOMPHeaders, clientID: String?, at now: Int64
    ) -> Result<Bool, STOMPError> {
        do throws(STOMPError) {
            if route.receivers.areRequests, try expectReplies(on: route) { return .success(true) }
            try checkDeletion(of: route)
            let headers = try route.options.headers(
                for: engine.profile, acknowledgement: route.acknowledgement, clientID: clientID,
                replacedBy: replacement)
            let sendsReceipts = engine.profile.sendsReceipts
            do throws(STOMPUsageError) {
                try engine.subscribe(
                    id: route.id, destination: route.destination, acknowledgement: route.acknowledgement,
                    headers: headers, token: route.token,
                    receiptToken: sendsReceipts ? Self.requestBit | route.token : nil,
                    isAnswered: !route.options.isToBeDeleted, at: now)
            } catch {
                return .failure(STOMPError(error))
            }
            return .success(!sendsReceipts)
        } catch {
            return .failure(error)
        }
    }

    /// Refuses to subscribe if the subscription is meant to be deleted later and the broker would not delete it.
    private func checkDeletion(of route: STOMPRoute) throws(STOMPError) {
        let profile = engine.profile
        guard route.options.isToBeDeleted, !profile.deletesDurable(to: route.destination) else { return }
        let prefixes = (profile.deletableDurablePrefixes ?? []).joined(separator: " or ")
        throw STOMPError(
            .unsupportedByBroker,
            "\(profile.name) deletes only durable subscriptions to destinations that begin with \(prefixes), not that to '\(route.destination)'. Delete its queue with the broker's own tools."
        )
    }

    /// Replies come over a temporary queue. Returns true if the broker creates it without SUBSCRIBE.
    private mutating func expectReplies(on route: STOMPRoute) throws(STOMPError) -> Bool {
        let profile = engine.profile
        switch profile.temporaryQueues {
        case .subscribeFirst: return false
        case .unsupported:
            throw STOMPError(
                .unsupportedByBroker,
                "\(profile.name) is not known to have temporary queues. Subscribe to a queue of your own and name it in replyTo."
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
