import TestSupport
import Testing

@testable import STOMP

/// What errors advise is what helps.
@Suite(.turns) struct AdviceTests {
    @Test func `sending without a connection names the ways to one`() async throws {
        let client = FakeServer().client()
        do throws(STOMPError) {
            try await client.send("x", to: "/queue/a")
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .notConnected)
            #expect(error.message.contains("Call connect() and wait"))
        }
    }

    @Test func `a server that just closes the connection has sent no ERROR, and is not expected to send DISCONNECT`()
        async throws
    {
        let server = FakeServer()
        let client = server.client { $0.reconnect = .never }
        var events = client.events.makeAsyncIterator()
        async let accepting = server.accept(0)
        try await client.connect()
        try await accepting.close()
        while let event = await events.next() {
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.code == .connectionLost)
            #expect(
                error.message
                    == "The server closed the connection without an ERROR frame. See its log for the reason.")
            break
        }
        await client.disconnect()
    }

    /// The last is what coilmq sends.
    @Test(arguments: [
        "User name [ann] or password is invalid.", "User name [ann] or password is invalid", "Authentication failed",
    ])
    func `refused credentials are recognised, and the advice follows one full stop`(message: String) async throws {
        let server = FakeServer()
        let client = server.client { $0.credentials = Credentials(userName: "ann", password: "wrong") }
        async let refusing: Void = {
            let connection = try await server.connection(0)
            try await connection.expect("CONNECT")
            connection.send("ERROR\nmessage:\(message)\n\n\0")
        }()
        do throws(STOMPError) {
            try await client.connect()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .badCredentials)
            #expect(
                error.message.hasSuffix("\(message.hasSuffix(".") ? message : message + ".") Check user and password."))
        }
        try await refusing
        await client.disconnect()
    }
}
