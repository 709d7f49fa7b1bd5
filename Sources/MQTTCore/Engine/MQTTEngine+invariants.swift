// What is always true of an engine between two inputs; in debug builds only. Each input that changes more than a time ends
// with `checkInvariants()`, so that an engine which contradicts itself stops where it has begun to. What a peer sends, or a
// caller does wrong, is never asserted.

import MessagingWire

extension MQTTEngine {
    /// Counts an input and stops the process where the engine contradicts itself. True, so that it is what `assert` checks,
    /// and costs nothing in a release build.
    mutating func checkInvariants() -> Bool {
        session.window.pace.count()
        session.checkInvariants(isOpen: phase.isOpen, passes: isCareful)
        checkDerived()
        checkPhase()
        if phase.isOpen { checkOpenConnection() }
        return true
    }

    /// What is noted, and follows from something else.
    private mutating func checkDerived() {
        assert(messagesMayLeave == computedMessagesMayLeave, "Whether messages may leave was noted and has changed.")
        assert(isPaced || pace.value == nil, "What has left is counted although it is not limited.")
        assert(persistedTicket <= lastTicket, "A record is stored that was not given to the store.")
        assert(max(receivedTicket, establishedTicket) <= lastTicket, "A packet waits for a record that was not made.")
        assert(largePayload.map { $0.place <= output.count } ?? true, "A payload belongs behind the end of the output.")
        let turns = authentication
        assert(turns.turn != .none || turns.deadline == .max, "AUTH is late although none is awaited.")
        assert(turns.turn == .none || turns.deadline <= turns.limit, "A step of AUTH may take longer than all of it.")
        assert(turns.turn == .none || authenticationMethod.value != nil, "AUTH is awaited without a method.")
    }

    /// What exists in some phases only.
    private mutating func checkPhase() {
        switch phase {
        case .closed:
            session.checkWithoutConnection()
            assert(filters.identifiers.isEmpty, "A request outlives its connection.")
            assert(opening.value == nil && leaving.value == nil, "A connection that has ended begins or ends.")
            assert(heldPackets.isEmpty, "A packet of a connection that has ended waits for the store.")
            assert(keepAlive.interval == 0 && keepAlive.pingSent == .max, "PINGRESP is awaited without a connection.")
        case .connecting:
            assert((opening.value != nil) == !isServer, "CONNACK is awaited without a CONNECT.")
            assert(session.window.usedCount == 0, "A message was sent before the connection was accepted.")
        case .deciding:
            assert(isServer && opening.value != nil, "A client decides about a connection.")
            assert(connectDeadline == .max, "CONNECT is late although it has come.")
        case .connected, .leaving:
            assert(opening.value == nil, "What CONNACK needed outlives it.")
            assert(connectDeadline == .max, "CONNACK is late although it has come.")
            assert((leaving.value != nil) == (phase == .leaving), "DISCONNECT waits on a connection that does not end.")
        case .closing: break
        }
    }

    private mutating func checkOpenConnection() {
        assert(session.isHeld, "A connection is accepted and no session begun.")
        session.window.check(receiveMaximum: limits.receiveMaximum)
        guard phase == .connected else { return }
        if !isServer { checkFilters() }
        if messagesMayLeave, persistedTicket == lastTicket, paceDeadline == .max { session.window.checkNothingWaits() }
    }

    /// Filters that await answers are those of the requests in flight.
    private mutating func checkFilters() {
        guard session.window.pace.isDue(for: filters.records.count) else { return }
        filters.check()
        for id in filters.identifiers {
            let isRequest = session.window.slot(of: id) == SendWindow.requestSlot
            assert(isRequest, "The identifier of a request belongs to another packet, or to none.")
        }
    }
}
