// What is always true of a session; in debug builds only.

import MessagingWire

extension MQTTSession {
    /// Stops the process where the session contradicts itself.
    ///
    /// - Parameters:
    ///   - isOpen: whether the session continues on a connection.
    ///   - passes: whether messages may pass others on it.
    mutating func checkInvariants(isOpen: Bool, passes: Bool) {
        window.checkInvariants(isOpen: isOpen, passes: passes)
        if window.pace.isDue(for: inbound.count + inbound.carried.count) { inbound.checkInvariants() }
        if window.pace.isDue(for: received.words.count) {
            received.checkInvariants()
            answered.checkInvariants()
            awaitingRelease.checkInvariants()
        }
        assert(!isNew || isRecorded, "A session that was recorded just now is in no store.")
    }

    /// What is gone with a connection.
    mutating func checkWithoutConnection() {
        assert(inbound.count == 0, "A message of a connection that has ended can be acknowledged.")
        assert(awaitingRelease.count == 0, "PUBREC of a connection that has ended counts against Receive Maximum.")
        window.checkWithoutConnection()
    }
}

extension InboundOrder {
    fileprivate mutating func checkInvariants() {
        assert(ring.count & (ring.count &- 1) == 0, "The length of a ring is no power of two.")
        assert(count <= ring.count && head < max(1, ring.count), "A ring has more entries than room.")
        assert(answeredThrough < nextToken, "A message that has not arrived is answered.")
        var (offset, exactlyOnce) = (0, 0)
        while offset < count {
            let entry = ring[(head + offset) & (ring.count - 1)]
            offset += 1
            if entry.isQoS2 { exactlyOnce += 1 }
            assert(entry.isQoS2 || !entry.isRepeat, "A message of QoS 1 counts as delivered before.")
            assert(entry.packetID != 0, "A message that is to be acknowledged has no identifier.")
        }
        assert(exactlyOnceCount == exactlyOnce, "Another number of QoS 2 messages is unacknowledged than is counted.")
        guard !carried.isEmpty else { return }
        for token in carried.keys { assert(token < base, "A message of an earlier connection has a new token.") }
    }
}
