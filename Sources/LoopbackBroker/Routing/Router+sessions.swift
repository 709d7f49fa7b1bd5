package import MQTTCore
import MessagingWire

/// One MQTT session, connected or waiting for its client.
struct SessionRecord: Sendable {
    var clientID: String
    var connection: Router.ConnectionID?
    var filters = SessionFilters()
    /// How long it outlives its connection, in seconds; `UInt32.max` for ever.
    var expiry: UInt32
    var will: MQTTWill?

    // While it is not connected:
    /// The engine's part: what is in flight.
    var kept = MQTTSession()
    var queue: SessionQueue
    var expiresAt = Int64.max
    /// Its place in the order in which clients left.
    var left = 0
    var willIsDueAt = Int64.max
}

/// What a session subscribed to, by the filters as the client wrote them.
struct SessionFilters: Sendable {
    private(set) var all: Set<ByteKey> = []
    /// Bounded by ``LoopbackBrokerLimits/maximumSessionBytes``.
    private(set) var bytes = 0

    /// Returns whether the filter is new.
    mutating func insert(_ filter: ByteKey) -> Bool {
        guard all.insert(filter).inserted else { return false }
        bytes += Self.size(of: filter)
        return true
    }

    /// Returns whether there was the filter.
    mutating func remove(_ filter: ByteKey) -> Bool {
        guard all.remove(filter) != nil else { return false }
        bytes -= Self.size(of: filter)
        return true
    }

    /// The bytes that a filter and the options of its subscription count.
    static func size(of filter: ByteKey) -> Int { filter.text.utf8.count + MemoryLayout<HeldSubscription>.size }
}

/// What a client gets when it connects.
package struct OpenedSession: Sendable {
    package var session: Int
    /// Whether it resumes an earlier session.
    package var isPresent: Bool
    package var kept: MQTTSession
    package var queue: SessionQueue
}

extension Router {
    /// The connection that a client identifier is used on.
    package func connection(of clientID: String) -> ConnectionID? {
        guard let session = sessionsByClient[ByteKey(clientID)] else { return nil }
        return sessions[session]?.connection
    }

    /// Gives a connection its session. Another connection of the same client must have been closed before.
    ///
    /// - Parameter expiry: seconds that the session outlives the connection, `UInt32.max` for ever.
    /// Where there are too many sessions, the one that has been without a connection for longest ends.
    ///
    /// - Returns: nil when all sessions have connections, and there are too many.
    package mutating func openSession(
        clientID: String, connection: ConnectionID, cleanStart: Bool, expiry: UInt32, will: MQTTWill?, at now: Int64,
        into effects: inout RouterEffects
    ) -> OpenedSession? {
        defer { updateDeadline() }
        let name = ByteKey(clientID)
        if let old = sessionsByClient[name] {
            // A delayed will is not sent if the client comes back for its session in time [MQTT-3.1.3-9]; if the
            // session ends here, the will is due now.
            if cleanStart || !keepsSessions {
                endSession(old, at: now, into: &effects)
            }
        }
        let expiry = keepsSessions ? expiry : 0
        if let old = sessionsByClient[name], let record = sessions[old] {
            sessions[old]?.connection = connection
            sessions[old]?.expiry = expiry
            sessions[old]?.will = will
            sessions[old]?.expiresAt = .max
            sessions[old]?.willIsDueAt = .max
            sessions[old]?.kept = MQTTSession()
            sessions[old]?.queue = SessionQueue(countLimit: 0, byteLimit: 0)
            return OpenedSession(session: old, isPresent: true, kept: record.kept, queue: record.queue)
        }
        if sessionsByClient.count >= limits.maximumSessions {
            guard let oldest = times.oldest(where: isPresent) else { return nil }
            endSession(oldest, at: now, into: &effects)
        }
        let record = SessionRecord(
            clientID: clientID, connection: connection, expiry: expiry, will: will, queue: emptyQueue())
        let slot: Int
        if let free = freeSessions.popLast() {
            slot = free
            sessions[slot] = record
        } else {
            slot = sessions.count
            sessions.append(record)
        }
        sessionsByClient[name] = slot
        return OpenedSession(session: slot, isPresent: false, kept: MQTTSession(), queue: emptyQueue())
    }

    /// A connection is over: keeps its session or ends it, and publishes the will unless the client disconnected gracefully.
    ///
    /// - Parameter expiry: what DISCONNECT said about it, if anything.
    package mutating func closeSession(
        _ session: Int, kept: MQTTSession, queue: SessionQueue, sendsWill: Bool, expiry: UInt32? = nil, at now: Int64,
        into effects: inout RouterEffects
    ) {
        guard sessions[session]?.connection != nil else { return }
        defer { updateDeadline() }
        sessions[session]?.connection = nil
        if let expiry, keepsSessions { sessions[session]?.expiry = expiry }
        let seconds = sessions[session]?.expiry ?? 0
        if !sendsWill { sessions[session]?.will = nil }
        if seconds == 0 {
            return endSession(session, at: now, into: &effects)
        }
        sessionsLeft += 1
        sessions[session]?.left = sessionsLeft
        var queue = queue
        queue.removeUnreliable()
        sessions[session]?.kept = kept
        sessions[session]?.queue = queue
        let expiresAt = seconds == .max ? .max : now.advanced(byNanoseconds: Int64(seconds) * 1_000_000_000)
        let delay = sessions[session]?.will?.properties.willDelayInterval ?? 0
        let willIsDueAt = delay == 0 ? .max : now.advanced(byNanoseconds: Int64(delay) * 1_000_000_000)
        sessions[session]?.expiresAt = expiresAt
        sessions[session]?.willIsDueAt = willIsDueAt
        times.append(
            session, left: sessionsLeft, times: [expiresAt, willIsDueAt], sessionCount: sessionCount, where: isPresent)
        if delay == 0 { publishWill(of: session, at: now, into: &effects) }
    }

    /// Whether a session still waits for its client since an entry about its time was made.
    private func isPresent(_ entry: SessionTimes.Entry) -> Bool {
        guard let record = sessions[entry.session] else { return false }
        return record.connection == nil && record.left == entry.left
    }

    /// Ends sessions and publishes wills whose time has come.
    package mutating func handleTimeout(at now: Int64, into effects: inout RouterEffects) {
        while let slot = times.takeDue(at: now, where: isPresent) {
            guard let record = sessions[slot] else { continue }
            if record.willIsDueAt <= now { publishWill(of: slot, at: now, into: &effects) }
            if record.expiresAt <= now { endSession(slot, at: now, into: &effects) }
        }
        updateDeadline()
    }

    private mutating func updateDeadline() { nextDeadline = times.next(where: isPresent) }

    /// Ends a session that has no connection; returns whether there was one.
    mutating func forgetSession(of clientID: String, at now: Int64, into effects: inout RouterEffects) -> Bool {
        guard let session = sessionsByClient[ByteKey(clientID)], sessions[session]?.connection == nil else {
            return false
        }
        endSession(session, at: now, into: &effects)
        updateDeadline()
        return true
    }

    /// The seconds for which a session outlives its connection.
    func expiry(ofSession session: Int) -> UInt32 { sessions[session]?.expiry ?? 0 }

    /// What is published when the connection of a session ends without DISCONNECT.
    func will(ofSession session: Int) -> MQTTWill? { sessions[session]?.will }

    func emptyQueue() -> SessionQueue {
        SessionQueue(countLimit: limits.maximumSessionMessages, byteLimit: limits.maximumSessionBytes)
    }

    private mutating func endSession(_ session: Int, at now: Int64, into effects: inout RouterEffects) {
        guard let record = sessions[session] else { return }
        publishWill(of: session, at: now, into: &effects)
        for filter in record.filters.all.map(\.text).sorted() { removeSubscription(filter, of: session) }
        sessionsByClient[ByteKey(record.clientID)] = nil
        sessions[session] = nil
        freeSessions.append(session)
    }

    private mutating func publishWill(of session: Int, at now: Int64, into effects: inout RouterEffects) {
        guard let will = sessions[session]?.will else { return }
        sessions[session]?.will = nil
        sessions[session]?.willIsDueAt = .max
        publish(Message(will, publisher: session, at: now), at: now, into: &effects)
    }
}
