/// One try of a protocol's opening exchange, written by hand: the client libraries under test have no part in it.
enum Readiness {
    /// How long an answer may take before the exchange is tried again on a new connection.
    private static let patience = Duration.seconds(30)

    /// MQTT 3.1.1 CONNECT with a clean session, then DISCONNECT.
    ///
    /// - Returns: whether a CONNACK came, whatever it says.
    static func mqtt(_ connection: RawConnection, user: BrokerUser?) async throws -> Bool {
        try await connection.send(connect(clientID: "readiness", user: user))
        let answer = try await connection.receive(atLeast: 4, timeout: patience)
        guard answer.count >= 4, answer[0] == 0x20 else { return false }
        try await connection.send([0xE0, 0x00])
        return true
    }

    static func connect(clientID: String, user: BrokerUser?, keepAlive: UInt16 = 30) -> [UInt8] {
        func string(_ text: String) -> [UInt8] {
            [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xFF)] + Array(text.utf8)
        }
        var body = string("MQTT") + [4, user == nil ? 0x02 : 0xC2, UInt8(keepAlive >> 8), UInt8(keepAlive & 0xFF)]
        body += string(clientID)
        if let user { body += string(user.name) + string(user.password) }
        precondition(body.count < 128, "a CONNECT with a one-byte remaining length")
        return [0x10, UInt8(body.count)] + body
    }

    /// STOMP 1.2 CONNECT.
    ///
    /// - Returns: whether CONNECTED came.
    static func stomp(_ connection: RawConnection, user: BrokerUser?, host: String) async throws -> Bool {
        var frame = "CONNECT\naccept-version:1.2\nhost:\(host)\n"
        if let user { frame += "login:\(user.name)\npasscode:\(user.password)\n" }
        try await connection.send(frame + "\n\0")
        let answer = try await connection.receive(timeout: patience) { $0.contains(0) }
        return answer.starts(with: Array("CONNECTED\n".utf8))
    }
}
