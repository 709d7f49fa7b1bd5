import STOMPCore

/// Assigns received messages to their subscriptions; on the loop's thread (the routes live there) and under the link's
/// lock (the engine does).
extension STOMPMachine {
    /// Assigns the messages of one read to their subscriptions, and numbers those that are acknowledged.
    mutating func route(into afterLock: STOMPAfterLock) {
        guard let core else { return }
        let messages = afterLock.effects.messages
        let first = messages[0].subscription
        if messages.allSatisfy({ $0.subscription == first }) {
            afterLock.uniformRoute = core.subscriptions.route(first)
            if let route = afterLock.uniformRoute {
                number(messages.count, of: route)
            } else {
                afterLock.unmatchedCount = messages.count
            }
        } else {
            for (index, message) in messages.enumerated() {
                if let route = core.subscriptions.route(message.subscription) {
                    afterLock.assign(UInt32(index), to: route)
                } else {
                    afterLock.unmatchedCount += 1
                }
            }
            for route in afterLock.touchedRoutes { number(route.receivers.pending.count, of: route) }
        }
    }

    /// Notes the number of the first of the messages that a subscription received in this read.
    private mutating func number(_ count: Int, of route: STOMPRoute) {
        guard route.acknowledgement != .auto else { return }
        let received = engine.messagesReceived(bySubscription: route.id)
        route.firstNumber = received.map { $0 - UInt64(count) }
    }
}
