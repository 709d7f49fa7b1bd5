import TestSupport
import Testing

@testable import MQTTCore

@Suite("Engine: Subscription Identifiers of the client's choice", .heavy)
struct FilterIdentifierTests {
    /// The filters of the SUBSCRIBE packets that a client has sent, each with its identifier.
    private func requests(_ pair: EnginePair) -> [String] {
        pair.client.sent.compactMap { packet in
            guard case .subscribe(let packet) = packet else { return nil }
            let identifier = packet.properties.subscriptionIdentifiers.first ?? 0
            return packet.subscriptions.map(\.filter).joined(separator: " ") + " \(identifier)"
        }
    }

    private func want(_ pair: EnginePair, _ filter: String, _ identifier: UInt32) {
        pair.client.engine.want(
            MQTTSubscriptionRequest(filter: filter), identifier: identifier, [], mayBeHeld: false)
        pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
    }

    /// A server that sends one copy of a message sends it with the identifier of the later filter alone meanwhile, and the client
    /// would not know that it is for the earlier one too.
    @Test func `a filter waits while another one is in flight without its identifier`() throws {
        let pair = EnginePair.persistent(version: .v5_0)
        try pair.connect()
        want(pair, "a/#", 0)
        want(pair, "a/#", 1)
        want(pair, "a/b", 2)
        pair.serverAnswers = true
        pair.settle()
        #expect(requests(pair) == ["a/# 0", "a/# 1", "a/b 2"])
    }

    @Test func `the client knows with which identifier the server has a filter`() throws {
        let pair = EnginePair.persistent(version: .v5_0)
        try pair.connect()
        func held() -> MQTTEngine.HeldIdentifier { pair.client.engine.heldIdentifier(of: "a") }
        #expect(held() == .maybeNone)
        pair.serverAnswers = true
        want(pair, "a", 1)
        #expect(held() == .ownOrNothing)
        pair.settle()
        #expect(held() == .own)
        // A shared filter, or another server: it has the filter with its identifier still, or not at all.
        pair.cut()
        pair.client.engine.configuration.resubscribesWithSessionPresent = true
        try pair.connect()
        pair.settle()
        #expect(held() == .own && requests(pair).count == 2)
        pair.client.engine.forget("a")
        pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
        pair.settle()
        #expect(held() == .maybeNone)
    }
}
