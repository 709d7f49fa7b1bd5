import STOMP
import TestSupport
import Testing

/// The lines of the CONNECT of a client with changed options, without the command.
private func connect(_ change: (inout STOMPConfiguration) -> Void) async throws -> [String] {
    let server = FakeServer()
    let client = server.client(change)
    let connecting = Task { try await client.connect() }
    let connection = try await server.connection(0)
    let lines = try await connection.frame().split(separator: "\n").dropFirst().map(String.init)
    connection.close()
    await client.disconnect()
    _ = await connecting.result
    return lines
}

extension OptionTableTests {
    /// Options that CONNECT tells the server.
    static let connectRows: [OptionRow] = [
        OptionRow("versions") { try await verify(connect { $0.versions = [.v11] }.contains("accept-version:1.1")) },
        OptionRow("host") { try await verify(connect { $0.host = "virtual" }.contains("host:virtual")) },
        OptionRow("credentials") {
            let lines = try await connect { $0.credentials = Credentials(userName: "ann", password: "key") }
            #expect(lines.contains("login:ann") && lines.contains("passcode:key"))
        },
        OptionRow("clientID") { try await verify(connect { $0.clientID = "mine" }.contains("client-id:mine")) },
        OptionRow("outgoingHeartBeat") {
            try await verify(
                connect { $0.outgoingHeartBeat = .seconds(7) }.contains { $0.hasPrefix("heart-beat:7000,") })
            let error = await #expect(throws: STOMPError.self) {
                try await FakeServer().client { $0.outgoingHeartBeat = .microseconds(-1) }.connect()
            }
            #expect(error?.code == .invalidRequest && error?.message.contains("outgoingHeartBeat is -") == true)
        },
        OptionRow("incomingHeartBeat") {
            try await verify(
                connect { $0.incomingHeartBeat = .seconds(7) }.contains {
                    $0.hasPrefix("heart-beat:") && $0.hasSuffix(",7000")
                })
            let error = await #expect(throws: STOMPError.self) {
                try await FakeServer().client { $0.incomingHeartBeat = .seconds(-1) }.connect()
            }
            #expect(error?.code == .invalidRequest && error?.message.contains("incomingHeartBeat is -1.0 s") == true)
        },
        OptionRow("connectHeaders") {
            try await verify(connect { $0.connectHeaders = ["tenant": "a"] }.contains("tenant:a"))
        },
        OptionRow("connectEscaping") {
            let lines = try await connect {
                $0.credentials = Credentials(userName: "ann", password: #"a\b"#)
                $0.connectEscaping = .asRabbitMQReads
            }
            #expect(lines.contains(#"passcode:a\\b"#))
        },
        OptionRow("credentialsProvider", shownBy: ConnectionTests.refusedCredentialsAskForFreshOnesOnceAndThenStop),
    ]
}
