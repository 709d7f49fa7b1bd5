import Foundation
import STOMPCore
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

    @Test func `a server's text neither forges lines of a log nor fills them`() {
        let forged = "bye\n2026-01-01 ERROR \u{1b}[31m" + String(repeating: "x", count: 3_000)
        let answer = STOMPServerError(STOMPFrame(.error, headers: ["message": forged]))
        let errors = [
            STOMPError(.refused, answer), STOMPError(.sessionEnded, answer),
            STOMPError(STOMPConnectionFailure(.error, "The server ended the session: \(answer)", error: answer)),
        ]
        for error in errors {
            for text in [error.message, "\(error)", error.localizedDescription] {
                #expect(!text.unicodeScalars.contains { $0.value < 0x20 })
                #expect(text.count < 700)
            }
        }
        #expect(errors[0].message.contains("bye\\n2026"))
        #expect(answer.message == forged)
    }

    @Test func `an ERROR without a message is shown with its body, or as one without a reason`() {
        let body = Array("queue full".utf8)
        #expect(STOMPServerError(STOMPFrame(.error, body: body)).description == "queue full")
        #expect(STOMPServerError(STOMPFrame(.error)).description == "no reason given")
        let refused = STOMPError(.refused, STOMPServerError(STOMPFrame(.error)))
        #expect(
            refused.message == "The server refused the frame: no reason given. Correct the frame and send it again.")
    }

    @Test func `the description of a heart-beat is its name`() {
        #expect("\(STOMPEvent.heartBeatSent)" == "heartBeatSent")
    }

    @Test(arguments: [
        ("localhost:61613", "stomp://localhost:61613"), ("ssl://broker.example", "stomps://broker.example"),
    ])
    func `a URL in another client's form is answered with ours`(url: String, proposal: String) async throws {
        do throws(STOMPError) {
            try await STOMPClient(url).connect()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .badURL)
            #expect(error.message.contains(proposal))
        }
    }
}
