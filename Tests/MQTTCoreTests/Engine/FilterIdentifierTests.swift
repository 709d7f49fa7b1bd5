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

    // MARK: Every state of a record

    private enum Event: CaseIterable {
        case want, wantWithout, unwant, stop, named
        case written, writtenWithout, notWritten, granted, refusal, unsubscribed, late
        case connectionLost, connectionLostBecause, sessionAbsent, sessionContinues, sessionInDoubt
        case reopenedWithout, reopenedWanted, reopenedEnded, restoredWanted, restoredEnded
    }

    /// A record, and what is true of the server.
    private struct Known {
        var record: FilterRecord
        /// Whether the server may have the filter without an identifier of this process, but for what is in flight.
        var mayLackIdentifier: Bool

        /// The same with what is in flight.
        var mayLackIdentifierSoon: Bool {
            guard case .subscribe(let asked, _, _) = record.inFlight else { return mayLackIdentifier }
            return mayLackIdentifier || asked.identifier == 0
        }

        func isPossible(_ event: Event) -> Bool {
            switch event {
            case .want, .wantWithout, .unwant, .stop: true
            case .named: record.isGone
            case .written, .notWritten: record.next(.identifiers) != nil
            case .writtenWithout: record.next(.options) != nil
            case .granted, .refusal, .connectionLostBecause:
                if case .subscribe = record.inFlight { true } else { false }
            case .unsubscribed: if case .unsubscribe = record.inFlight { true } else { false }
            case .late: record.inFlight != .none
            case .connectionLost: true
            case .sessionAbsent, .sessionContinues, .sessionInDoubt: record.inFlight == .none
            case .reopenedWithout, .reopenedWanted, .reopenedEnded: record.inFlight == .none
            case .restoredWanted, .restoredEnded: true
            }
        }

        mutating func apply(_ event: Event) {
            switch event {
            case .want: record.want(.init(qos: .atLeastOnce, identifier: 7), .sendAtSubscribe, [])
            case .wantWithout: record.want(.init(qos: .atLeastOnce), .sendAtSubscribe, [])
            case .unwant: record.unwant([])
            case .stop: record.stop()
            case .named:
                record.doubt()
                mayLackIdentifier = true
            case .written: record.written(record.next(.identifiers)!, .identifiers, token: 1)
            case .writtenWithout: record.written(record.next(.options)!, .options, token: 1)
            case .notWritten: record.notWritten(record.next(.identifiers)!)
            case .granted:
                if case .subscribe(let asked, _, _) = record.inFlight { mayLackIdentifier = asked.identifier == 0 }
                record.subscribeAnswered(.grantedQoS1)
            case .refusal: record.subscribeAnswered(.notAuthorized)
            case .unsubscribed:
                record.unsubscribeAnswered()
                mayLackIdentifier = false
            case .late:
                mayLackIdentifier = mayLackIdentifierSoon
                record.late()
            case .connectionLost:
                mayLackIdentifier = mayLackIdentifierSoon
                record.connectionLost()
            case .connectionLostBecause:
                // What the server did not have it has not now.
                mayLackIdentifier = record.server != .absent && mayLackIdentifierSoon
                record.connectionLost(isRefused: true)
            case .sessionAbsent:
                record.sessionIsAbsent()
                mayLackIdentifier = false
            case .sessionContinues: record.sessionContinues(isInDoubt: false, allowed: nil)
            case .sessionInDoubt: record.sessionContinues(isInDoubt: true, allowed: nil)
            // Another client of the session has identifiers of its own.
            case .reopenedWithout: reopen(.nothing)
            case .reopenedWanted: reopen(.wanted)
            case .reopenedEnded: reopen(.ended)
            case .restoredWanted: self = Known(record: FilterRecord(restored: .wanted), mayLackIdentifier: true)
            case .restoredEnded: self = Known(record: FilterRecord(restored: .ended), mayLackIdentifier: true)
            }
        }

        private mutating func reopen(_ stored: FilterRecord.Note) {
            record.reopened(stored, persistedTicket: 1)
            mayLackIdentifier = record.server != .absent
        }
    }

    /// All states that events lead to, from a filter that the server cannot have, and from one that it may have.
    @Test func `a record claims an identifier only when the server cannot have another`() {
        var states = [false, true].map { Known(record: FilterRecord(mayBeHeld: $0), mayLackIdentifier: $0) }
        var seen = Set(states.map { "\($0)" })
        var counts: [MQTTEngine.HeldIdentifier: Int] = [:]
        while let before = states.popLast() {
            for event in Event.allCases where before.isPossible(event) {
                var state = before
                state.apply(event)
                guard seen.insert("\(state)").inserted else { continue }
                states.append(state)
                let held = state.record.heldIdentifier
                counts[held, default: 0] += 1
                #expect((held == .maybeNone) == state.mayLackIdentifierSoon, "\(before), \(event): \(state)")
                guard held == .own else { continue }
                guard case .holds = state.record.server else {
                    Issue.record("\(before), \(event): \(state)")
                    continue
                }
                #expect(state.record.inFlight != .unsubscribe(token: 1), "\(before), \(event): \(state)")
            }
        }
        #expect(counts.count == 3 && seen.count > 200, "\(counts)")
    }

    @Test func `a filter whose store another client may have used is asked for again with its identifier`() {
        var record = FilterRecord(mayBeHeld: false)
        record.want(.init(qos: .atLeastOnce, identifier: 7), .sendAtSubscribe, [])
        record.written(.subscribe, .identifiers, token: 1)
        record.subscribeAnswered(.grantedQoS1)
        record.connectionLost()
        record.stop()
        record.reopened(.wanted, persistedTicket: 0)
        #expect(record.wanted == .unclaimed && record.heldIdentifier == .maybeNone)
        record.want(.init(qos: .atLeastOnce), .sendAtSubscribe, [])
        #expect(record.next(.identifiers) == nil)
        record.want(.init(qos: .atLeastOnce, identifier: 7), .sendAtSubscribe, [])
        #expect(record.next(.options) == nil && record.next(.identifiers) == .subscribe)
        #expect(record.nextHandling == .sendIfNew)
        record.written(.subscribe, .identifiers, token: 2)
        record.subscribeAnswered(.grantedQoS1)
        #expect(record.heldIdentifier == .own)
    }
}
