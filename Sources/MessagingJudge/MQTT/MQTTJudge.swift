import MQTTCore
import MessagingWire

/// Reads what clients of MQTT write to one server and what it writes to them, in 3.1, 3.1.1 and 5.0, and notes which rules
/// the clients break.
///
/// It knows packets and clauses, and nothing of a client or an engine. What the server wrote counts as received: a client
/// may act on it from then on, and need not have received it when its connection ends. What a client wrote may be lost with
/// its connection. The server itself is not judged.
///
///     var judge = MQTTJudge()
///     judge.opened(1)
///     judge.clientWrote(bytes, on: 1, at: now)
///     judge.serverWrote(answer, on: 1, at: now)
///     judge.closed(1)
///     let violations = judge.takeViolations()
package struct MQTTJudge: Sendable {
    private let options: JudgeOptions
    private var connections: [Int: MQTTJudgedConnection] = [:]
    /// Those of clients without a connection, and the connections that have the others.
    private var sessions: [ByteKey: MQTTJudgedSession] = [:]
    private var owners: [ByteKey: Int] = [:]
    private var violations = ViolationList()

    package init(_ options: JudgeOptions = JudgeOptions()) {
        self.options = options
    }

    /// What was found since the last call.
    package mutating func takeViolations() -> [Violation] { violations.takeAll() }

    /// A connection begins; its number was not used before.
    package mutating func opened(_ number: Int) {
        connections[number] = MQTTJudgedConnection(number: number, options: options)
    }

    /// A connection has ended.
    package mutating func closed(_ number: Int) {
        guard var connection = connections.removeValue(forKey: number) else { return }
        giveBackSession(of: &connection)
    }

    /// The server has not read for a while, by its own decision.
    package mutating func resumedReading(_ number: Int, at now: Int64) {
        connections[number]?.lastWrite = now
    }

    /// What connects with this client identifier next may be another process, or have another configuration.
    package mutating func mayBeAnother(_ client: String) {
        let key = ByteKey(client)
        sessions[key]?.forgetProcess()
        if let owner = owners[key] { connections[owner]?.session.forgetProcess() }
    }

    package mutating func clientWrote(_ bytes: RawSpan, on number: Int, at now: Int64) {
        guard var connection = connections.removeValue(forKey: number) else { return }
        connection.clientWrote(bytes, at: now)
        put(connection, number)
    }

    package mutating func serverWrote(_ bytes: RawSpan, on number: Int, at now: Int64) {
        guard var connection = connections.removeValue(forKey: number) else { return }
        connection.beginServerBytes(bytes)
        while let packet = connection.nextServerPacket() {
            if case .connack(let connack) = packet, connack.reasonCode == .success, connection.phase == .connecting {
                begin(connack, &connection, number, at: now)
            }
            connection.serverWrote(packet, at: now)
        }
        put(connection, number)
    }

    private mutating func put(_ connection: MQTTJudgedConnection, _ number: Int) {
        var connection = connection
        for violation in connection.found.takeAll() { violations.append(violation) }
        connections[number] = connection
    }

    // MARK: Sessions

    /// The server accepts a client, which continues with its session or gets a new one.
    private mutating func begin(
        _ connack: MQTTPacket.Connack, _ connection: inout MQTTJudgedConnection, _ number: Int, at now: Int64
    ) {
        guard let connect = connection.connect else { return }
        let key = ByteKey(connack.properties.assignedClientIdentifier ?? connect.clientID)
        if let owner = owners[key], owner != number, var other = connections.removeValue(forKey: owner) {
            // What the client still writes there concerns no session.
            giveBackSession(of: &other)
            other.phase = .unjudged
            put(other, owner)
        }
        var session = sessions.removeValue(forKey: key) ?? MQTTJudgedSession()
        // 3.1 does not report whether there is a session.
        let isPresent = connect.version == .v3_1 ? !connect.cleanStart : connack.sessionPresent
        if !isPresent { session.discard() }
        owners[key] = number
        connection.begin(session, key, connack, isPresent: isPresent, at: now)
    }

    private mutating func giveBackSession(of connection: inout MQTTJudgedConnection) {
        guard let (key, given) = connection.takeSession() else { return }
        var session = given
        session.ended(connection.number)
        owners[key] = nil
        sessions[key] = session
    }
}
