import MQTTCore
import MessagingShell
import Transport

/// Subscribing and unsubscribing, on the caller's task.
extension MQTTSubscriptions {
    /// Registers a route, waits for the server's answers, and acknowledges the retained messages that it was handed.
    nonisolated(nonsending) func subscribe(_ route: MQTTRoute) async throws(MQTTError) -> MQTTFilterWait.Answer {
        let answer = try await register(route)
        let core = core!
        core.loop.execute { core.subscriptions.confirmUnmatched([route]) }
        return answer
    }

    func makeReplyRoute(_ replies: MQTTClientCore.Replies) -> (address: String, route: MQTTRoute) {
        // Wildcards may be in a client identifier, but not in a topic.
        let client = String(core.link.perform { $0.engine.clientID }.map { "+#/$".contains($0) ? "-" : $0 })
        var random = core.loop.random
        let topic = "responses/\(client)/\(random.next())"
        let requests = [MQTTSubscriptionRequest(filter: topic, qos: .atMostOnce)]
        return (
            topic,
            MQTTRoute(requests: requests, policy: BufferPolicy(), acknowledgement: .automatic, replies: replies)
        )
    }

    /// Removes a route and waits for the server's answer.
    nonisolated(nonsending) func unsubscribe(
        _ route: MQTTRoute, properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        MQTTUnsubscribeResult(try await answer { $0.unsubscribeNow(route, properties, $1) })
    }

    /// Unsubscribes filters that no subscription of this client has, and waits for the server's answer.
    nonisolated(nonsending) func unsubscribe(
        _ filters: [String], properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        MQTTUnsubscribeResult(try await answer { $0.unsubscribeNow(filters, properties, $1) })
    }
}

extension MQTTUnsubscribeResult {
    fileprivate init(_ answer: MQTTFilterWait.Answer) {
        self.init(reasonCodes: answer.codes, properties: answer.properties)
    }
}
