import TestSupport
import Testing

@testable import MQTTCore

/// Every state of a filter with every event: what follows is in a table, or the event is impossible.
@Suite("Engine: the record of a filter", .heavy)
struct FilterRecordTests {
    // MARK: The states

    private enum Wanted: CaseIterable { case none, unclaimed, lower, higher }
    private enum Server: CaseIterable {
        case absent, holdsLess, holds, heldLess, held, refused, unknownRefused, unknown, asked, late
    }
    private enum InFlight: CaseIterable { case none, subscribe, unsubscribe }
    private enum Event: CaseIterable {
        case want, ask, unwant, stop, written, notWritten, granted, refusal, unsubscribed, late
        case connectionLost, connectionLostBecause, sessionAbsent, sessionContinues, sessionInDoubt, allowsMore
    }

    private static let lower = FilterRecord.Options(qos: .atMostOnce)
    private static let higher = FilterRecord.Options(qos: .exactlyOnce)

    /// A state, reached by events.
    ///
    /// - Returns: nil if no events lead to it.
    private static func record(_ wanted: Wanted, _ server: Server, _ inFlight: InFlight) -> FilterRecord? {
        var record = FilterRecord(mayBeHeld: server == .unknown || server == .unknownRefused)
        func grant(_ options: FilterRecord.Options) {
            record.want(options, .sendAtSubscribe, [])
            record.written(.subscribe, .identifiers, token: 1)
            record.subscribeAnswered(MQTTReasonCode(rawValue: options.qos.rawValue))
        }
        switch server {
        case .absent, .unknown: break
        case .asked:
            record.want(lower, .sendAtSubscribe, [])
            record.written(.subscribe, .identifiers, token: 1)
            record.connectionLost()
        case .holdsLess, .heldLess: grant(lower)
        case .holds, .held: grant(higher)
        case .refused, .unknownRefused:
            record.want(lower, .sendAtSubscribe, [])
            record.written(.subscribe, .identifiers, token: 1)
            record.subscribeAnswered(.notAuthorized)
        case .late:
            record.want(lower, .sendAtSubscribe, [])
            record.written(.subscribe, .identifiers, token: 1)
            record.late()
        }
        if server == .held || server == .heldLess {
            record.connectionLost()
            record.sessionContinues(isInDoubt: false, allowed: nil)
        }
        let isInFlight: Bool
        switch (inFlight, wanted) {
        case (.none, _): isInFlight = false
        case (.subscribe, _):
            record.want(higher, .sendAtSubscribe, [])
            record.written(.subscribe, .identifiers, token: 2)
            isInFlight = true
        case (.unsubscribe, _):
            // What is late becomes unknown when nobody wants it.
            if server == .late { return nil }
            record.unwant([])
            record.written(.unsubscribe, .identifiers, token: 2)
            isInFlight = true
        }
        switch wanted {
        case .none:
            if case .none = record.wanted { break }
            // The same.
            if server == .late { return nil }
            record.unwant([])
        case .unclaimed:
            record.stop()
            guard record.wanted == .unclaimed else { return nil }
        case .lower: record.want(lower, .sendAtSubscribe, [])
        case .higher: record.want(higher, .sendAtSubscribe, [])
        }
        assert((record.inFlight != .none) == isInFlight)
        return record
    }

    /// The state in words, with the packet that is due.
    private static func text(_ record: FilterRecord) -> String {
        let wanted =
            switch record.wanted {
            case .none: "none"
            case .unclaimed: "unclaimed"
            case .options(let options): options == lower ? "lower" : "higher"
            }
        let server =
            switch record.server {
            case .absent: "absent"
            case .holds(let holding):
                (holding.isConfirmed ? "holds" : "held") + (holding.asked == lower ? "Less" : "")
            case .unknown(let isOlder, _): isOlder ? "unknown" : "asked"
            case .late: "late"
            }
        let refused = record.refused.map { $0 == lower ? "Refused" : "RefusedHigher" } ?? ""
        let inFlight =
            switch record.inFlight {
            case .none: "-"
            case .subscribe: "SUBSCRIBE"
            case .unsubscribe: "UNSUBSCRIBE"
            }
        let next =
            switch record.next(.identifiers) {
            case nil: record.isOver ? "over" : "-"
            case .subscribe: "SUBSCRIBE(\(record.nextHandling))"
            case .unsubscribe: "UNSUBSCRIBE"
            }
        return "\(wanted) \(server)\(refused) \(inFlight) -> \(next)"
    }

    // MARK: The events

    /// Whether an event can happen.
    private static func isPossible(_ event: Event, _ record: FilterRecord) -> Bool {
        let isWanted = if case .options = record.wanted { true } else { false }
        switch event {
        case .want, .unwant, .stop, .connectionLost: return true
        case .connectionLostBecause: if case .subscribe = record.inFlight { return true } else { return false }
        case .ask: return isWanted
        case .written, .notWritten: return record.next(.identifiers) != nil
        case .granted, .refusal: if case .subscribe = record.inFlight { return true } else { return false }
        case .unsubscribed: if case .unsubscribe = record.inFlight { return true } else { return false }
        case .late: return record.inFlight != .none
        case .sessionAbsent, .sessionContinues, .sessionInDoubt, .allowsMore: return record.inFlight == .none
        }
    }

    private static func apply(_ event: Event, to record: inout FilterRecord) {
        switch event {
        case .want: record.want(higher, .sendAtSubscribe, [])
        case .ask: record.ask(.sendAtSubscribe)
        case .unwant: record.unwant([])
        case .stop: record.stop()
        case .written: record.written(record.next(.identifiers)!, .identifiers, token: 3)
        case .notWritten: record.notWritten(record.next(.identifiers)!)
        case .granted: record.subscribeAnswered(.grantedQoS0)
        case .refusal: record.subscribeAnswered(.notAuthorized)
        case .unsubscribed: record.unsubscribeAnswered()
        case .late: record.late()
        case .connectionLost: record.connectionLost()
        case .connectionLostBecause: record.connectionLost(isRefused: true)
        case .sessionAbsent: record.sessionIsAbsent()
        case .sessionContinues: record.sessionContinues(isInDoubt: false, allowed: nil)
        case .sessionInDoubt: record.sessionContinues(isInDoubt: true, allowed: nil)
        case .allowsMore: record.sessionContinues(isInDoubt: false, allowed: .exactlyOnce)
        }
    }

    /// Whether the state after an event is what the rules say, written independently of the record.
    private static func isExpected(_ record: FilterRecord, after event: Event, in before: FilterRecord) -> Bool {
        let keepsServer = record.server == before.server
        let (server, old) = (plain(record.server), plain(before.server))
        let isOver = record.inFlight == .none
        switch event {
        case .want, .ask: return keepsServer && record.inFlight == before.inFlight
        case .stop:
            // What was only asked for is not wanted any more.
            let isOurs = old == .absent || old == asked
            return keepsServer && record.wanted == (isOurs ? FilterRecord.Wanted.none : .unclaimed)
        case .unwant:
            // What is late may be at the server.
            return server == (old == late ? asked : old) && record.asking == nil
        case .written: return keepsServer && record.inFlight.token == 3 && record.asking == nil
        case .notWritten:
            guard before.next(.identifiers) == .subscribe else { return server == late }
            return isRefused(record, before) && record.next(.identifiers) == nil
        case .granted:
            guard case .holds(let holding) = record.server else { return false }
            return holding.isConfirmed && isOver
        case .refusal: return isRefused(record, before) && isOver
        case .unsubscribed: return record.server == .absent && isOver
        case .late:
            guard case .subscribe = before.inFlight, before.wanted == FilterRecord.Wanted.none else {
                return server == late && isOver
            }
            return server == asked && isOver
        case .connectionLost:
            if before.inFlight != .none { return server == lost(before.server) && isOver }
            guard case .holds(let old) = before.server else { return keepsServer }
            guard case .holds(let new) = record.server else { return false }
            return new.asked == old.asked && !new.isConfirmed
        case .connectionLostBecause:
            // Whatever was granted, on this connection or an earlier one, may be lost.
            return record.refused != nil && isOver && server == (old == .absent ? .absent : lost(old))
        case .sessionAbsent: return record.server == .absent && record.wanted != .unclaimed
        case .sessionInDoubt: return server == unknown
        case .sessionContinues: return old == late ? server == unknown : keepsServer
        case .allowsMore:
            guard case .holds = before.server else { return server != late }
            return isOver
        }
    }

    private static let asked = FilterRecord.Server.unknown(isOlder: false, mayLackIdentifier: true)
    private static let unknown = FilterRecord.Server.unknown(isOlder: true, mayLackIdentifier: true)
    private static let late = FilterRecord.Server.late(mayLackIdentifier: true)

    /// The state without what is known of identifiers, which `FilterIdentifierTests` checks.
    private static func plain(_ server: FilterRecord.Server) -> FilterRecord.Server {
        switch server {
        case .absent, .holds: server
        case .unknown(let isOlder, _): isOlder ? unknown : asked
        case .late: late
        }
    }

    /// What is known of the server when an answer is lost: nothing, but that it may have the filter for longer.
    private static func lost(_ server: FilterRecord.Server) -> FilterRecord.Server {
        switch server {
        case .absent, .unknown(isOlder: false, _): asked
        case .holds, .late, .unknown(isOlder: true, _): unknown
        }
    }

    /// Whether a refusal is noted as it has to be: only what this connection has granted is certain to be there still.
    private static func isRefused(_ record: FilterRecord, _ before: FilterRecord) -> Bool {
        guard record.refused != nil else { return false }
        switch (before.server, record.server) {
        case (.holds(let old), .holds(let new)): return old.isConfirmed && new.asked == old.asked
        case (.absent, .absent): return true
        case (.absent, _): return false
        case (.holds(let old), .unknown): return !old.isConfirmed
        case (_, .unknown): return plain(record.server) == lost(before.server)
        default: return false
        }
    }

    // MARK: The tables

    private static func allStates() -> [FilterRecord] {
        Wanted.allCases.flatMap { wanted in
            Server.allCases.flatMap { server in InFlight.allCases.compactMap { record(wanted, server, $0) } }
        }
    }

    @Test func `each event in each state leads to what the rules say, and none waits for ever`() {
        var count = 0
        for before in Self.allStates() {
            for event in Event.allCases where Self.isPossible(event, before) {
                var record = before
                Self.apply(event, to: &record)
                let name = "\(Self.text(before)), \(event): \(Self.text(record))"
                #expect(Self.isExpected(record, after: event, in: before), "\(name)")
                count += 1
                expectEnds(record, "\(Self.text(before)), \(event)")
            }
        }
        #expect(count > 700, "\(count)")
    }

    /// Answers what is asked for until nothing is due: a request is never repeated for ever.
    private func expectEnds(_ start: FilterRecord, _ name: String) {
        for code in [MQTTReasonCode.grantedQoS2, .grantedQoS0, .notAuthorized] {
            var (record, packets) = (start, 0)
            while packets < 4 {
                switch record.inFlight {
                case .subscribe: record.subscribeAnswered(code)
                case .unsubscribe: record.unsubscribeAnswered()
                case .none:
                    guard let next = record.next(.identifiers) else { break }
                    record.written(next, .identifiers, token: 9)
                    packets += 1
                    continue
                }
                if record.inFlight == .none, record.next(.identifiers) == nil { break }
            }
            #expect(packets < 4, "\(name) and \(code) leads to \(packets) requests, then \(Self.text(record))")
            // What is wanted is granted or refused, what is not is not there.
            switch record.wanted {
            case .none:
                let isLate = Self.plain(record.server) == Self.late
                #expect(record.isOver || isLate, "\(name): \(Self.text(record))")
            case .unclaimed, .options: break
            }
        }
    }

    // MARK: The store

    private static let notes: [FilterRecord.Note] = [.nothing, .wanted, .ended]

    /// Whether the server may have the filter because of this process.
    private static func mayBeThere(_ record: FilterRecord) -> Bool {
        if record.inFlight != .none { return true }
        switch record.server {
        case .absent: return false
        case .holds, .late, .unknown: return true
        }
    }

    /// The process dies after any event in any state, and the store has what it was given by then.
    @Test func `the next process knows each filter that the server may have, and which of them ended`() {
        var count = 0
        for start in Self.allStates() {
            for event in Event.allCases where Self.isPossible(event, start) {
                // What is in flight was noted.
                for note in Self.notes where note != .nothing || start.inFlight == .none {
                    var record = start
                    record.setNoted(note, ticket: 1)
                    // What is due leaves after its record only.
                    let isDue = event == .written && record.next(.identifiers) == .subscribe
                    record.setNoted(record.note(isDue: isDue), ticket: 2)
                    Self.apply(event, to: &record)
                    record.setNoted(record.note(isDue: false), ticket: 3)
                    let name = "\(Self.text(start)), \(note), \(event): \(Self.text(record)), \(record.noted)"
                    count += 1
                    // An earlier process may have had what this one was never granted, and did not note it.
                    if record.noted == .nothing {
                        let isKnown = note == .nothing && record.server != .absent
                        #expect(record.isGone || !Self.mayBeThere(record) || isKnown, "\(name)")
                        continue
                    }
                    #expect(!record.isGone, "\(name)")
                    var next = FilterRecord(restored: record.noted)
                    let isEnded = record.wanted == FilterRecord.Wanted.none
                    #expect((next.next(.identifiers) == .unsubscribe) == isEnded, "\(name)")
                    #expect((next.wanted == .unclaimed) == !isEnded, "\(name)")
                    #expect(next.note(isDue: true) == record.noted, "\(name)")
                    next.sessionIsAbsent()
                    #expect(next.isGone && !next.isOver && next.note(isDue: false) == .nothing, "\(name)")
                    next.setNoted(.nothing, ticket: 4)
                    #expect(next.isOver, "\(name)")
                }
            }
        }
        #expect(count > 1800, "\(count)")
    }

    @Test func `SUBSCRIBE waits for its own record`() {
        var record = FilterRecord(mayBeHeld: false)
        record.want(Self.lower, .sendAtSubscribe, [])
        // A process that ends before has asked for nothing.
        #expect(record.note(isDue: false) == .nothing)
        #expect(record.note(isDue: true) == .wanted && !record.waitsForStore(through: 0))
        record.setNoted(.wanted, ticket: 3)
        #expect(record.waitsForStore(through: 2) && !record.waitsForStore(through: 3))
        record.unwant([])
        record.setNoted(.nothing, ticket: 4)
        record = FilterRecord(restored: .ended)
        record.want(Self.lower, .sendAtSubscribe, [])
        // Or else the next process would unsubscribe what is wanted again.
        #expect(record.note(isDue: false) == .wanted)
        // The topic of replies to one process is of no use to the next.
        record.isTemporary = true
        #expect(record.note(isDue: false) == .ended)
        record.setNoted(.ended, ticket: 5)
        #expect(record.waitsForStore(through: 4) && !record.waitsForStore(through: 5))
    }

    @Test func `a store that another client may have used decides about what nobody wants`() {
        for start in Self.allStates() where start.inFlight == .none {
            for note in Self.notes {
                for (ticket, persistedTicket) in [(1, 1), (2, 1)] as [(UInt64, UInt64)] {
                    for stored in Self.notes {
                        var record = start
                        record.setNoted(note, ticket: ticket)
                        record.reopened(stored, persistedTicket: persistedTicket)
                        let name = "\(Self.text(start)), \(note) \(ticket), \(stored): \(Self.text(record))"
                        #expect(record.noted == stored && !record.waitsForStore(through: 0), "\(name)")
                        // The store was not given its end.
                        let isOwnEnd =
                            start.wanted == FilterRecord.Wanted.none && (note != .ended || ticket > persistedTicket)
                        switch start.wanted {
                        case .options: #expect(record.wanted == start.wanted, "\(name)")
                        case .none where isOwnEnd: #expect(record.wanted == start.wanted, "\(name)")
                        case .none, .unclaimed:
                            let wanted = stored == .wanted ? .unclaimed : FilterRecord.Wanted.none
                            #expect(record.wanted == wanted, "\(name)")
                            #expect(record.isGone == (stored == .nothing), "\(name)")
                        }
                        if stored != .nothing { #expect(Self.mayBeThere(record), "\(name)") }
                        // What this client was granted is there only if the other one kept it.
                        if case .holds = record.server { #expect(stored == .wanted, "\(name)") }
                    }
                }
            }
        }
    }

    @Test func `the packet that is due in each state`() {
        var due: [String: [String]] = [:]
        for record in Self.allStates() where record.inFlight == .none {
            let parts = Self.text(record).split(separator: " ", maxSplits: 3).map(String.init)
            due["\(parts[0]) \(parts[3].dropFirst(3))", default: []].append(parts[1])
        }
        let expected: [String: [String]] = [
            "none over": ["absent", "absentRefused"],
            "none UNSUBSCRIBE": ["holdsLess", "holds", "heldLess", "held", "unknownRefused", "unknown", "asked"],
            "unclaimed -": ["holdsLess", "holds", "heldLess", "held", "unknownRefused", "unknown", "late"],
            "lower SUBSCRIBE(sendAtSubscribe)": ["absent"],
            "lower SUBSCRIBE(sendIfNew)": ["unknown", "asked"],
            "lower -": ["holdsLess", "holds", "heldLess", "held", "absentRefused", "unknownRefused", "late"],
            "higher SUBSCRIBE(sendAtSubscribe)": ["absent", "absentRefused"],
            "higher SUBSCRIBE(doNotSend)": ["holdsLess"],
            "higher SUBSCRIBE(sendIfNew)": ["heldLess", "unknownRefused", "unknown", "asked"],
            "higher -": ["holds", "held", "late"],
        ]
        for key in Set(due.keys).union(expected.keys) { #expect(due[key] == expected[key], "\(key)") }
    }

    @Test func `a server that allows more is asked again for what it has granted less`() {
        var record = FilterRecord(mayBeHeld: false)
        record.want(Self.higher, .sendAtSubscribe, [])
        record.written(.subscribe, .identifiers, token: 1)
        record.subscribeAnswered(.grantedQoS0)
        #expect(record.next(.identifiers) == nil)
        record.connectionLost()
        for (allowed, isDue) in [(nil, false), (QoS.atMostOnce, false), (.atLeastOnce, true)] {
            record.sessionContinues(isInDoubt: false, allowed: allowed)
            #expect((record.next(.identifiers) == .subscribe) == isDue)
        }
    }

    @Test func `before 5_0 only a higher QoS is worth a further SUBSCRIBE`() {
        var record = FilterRecord(mayBeHeld: false)
        record.want(Self.lower, .sendAtSubscribe, [])
        record.written(.subscribe, .identifiers, token: 1)
        record.subscribeAnswered(.grantedQoS0)
        var other = Self.lower
        other.noLocal = true
        record.want(other, .sendAtSubscribe, [])
        #expect(record.next(.qos) == nil)
        #expect(record.next(.identifiers) == .subscribe)
        record.want(Self.higher, .sendAtSubscribe, [])
        #expect(record.next(.qos) == .subscribe)
    }
}
