import MessagingWire
import STOMPCore

/// Reads what clients of STOMP write to one server and what it writes to them, in 1.0, 1.1 and 1.2, and notes which rules the
/// clients break.
///
/// It knows frames and chapters of the specifications, and nothing of a client or an engine. What the server wrote counts as
/// received. The server itself is not judged. It is used as ``MQTTJudge`` is; nothing of a client outlives its connection.
package struct STOMPJudge: Sendable {
    private let options: JudgeOptions
    private var connections: [Int: STOMPJudgedConnection] = [:]
    private var violations = ViolationList()

    package init(_ options: JudgeOptions = JudgeOptions()) {
        self.options = options
    }

    /// What was found since the last call.
    package mutating func takeViolations() -> [Violation] { violations.takeAll() }

    /// A connection begins; its number was not used before.
    package mutating func opened(_ number: Int) {
        connections[number] = STOMPJudgedConnection(number: number, options: options)
    }

    /// A connection has ended.
    package mutating func closed(_ number: Int) { connections[number] = nil }

    /// The server has not read for a while, by its own decision.
    package mutating func resumedReading(_ number: Int, at now: Int64) { connections[number]?.lastWrite = now }

    package mutating func clientWrote(_ bytes: RawSpan, on number: Int, at now: Int64) {
        guard var connection = connections.removeValue(forKey: number) else { return }
        connection.clientWrote(bytes, at: now)
        put(connection, number)
    }

    package mutating func serverWrote(_ bytes: RawSpan, on number: Int, at now: Int64) {
        guard var connection = connections.removeValue(forKey: number) else { return }
        connection.serverWrote(bytes, at: now)
        put(connection, number)
    }

    private mutating func put(_ connection: STOMPJudgedConnection, _ number: Int) {
        var connection = connection
        for violation in connection.found.takeAll() { violations.append(violation) }
        connections[number] = connection
    }
}
