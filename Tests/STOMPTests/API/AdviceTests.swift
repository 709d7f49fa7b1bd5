import Foundation
import LoopbackBroker
import STOMPCore
import TestSupport
import Testing
import Transport

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

    @Test func `a server that closes the connection within an ERROR has sent what came of it`() async throws {
        let server = FakeServer()
        let (client, connection) = try await server.connected { $0.reconnect = .never }
        var events = client.events.makeAsyncIterator()
        connection.send("ERROR\nmessage:The disk is full\ncontent-le")
        connection.close()
        while let event = await events.next() {
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.code == .refused && error.serverError?.message == "The disk is full")
            #expect(
                error.message
                    == "The server ended the session: The disk is full. The end of the server's ERROR frame did not arrive: see the server's log for the rest."
            )
            break
        }
        await client.disconnect()
    }

    @Test(arguments: [true, false])
    func `a connection that ends after a long silence without heart-beats may have been ended by a proxy`(asks: Bool)
        async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        // It takes no part in heart-beats.
        let (client, connection) = try await server.connected(clock: clock) {
            $0.reconnect = .never
            if !asks { ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero) }
        }
        var events = client.events.makeAsyncIterator()
        await clock.advance(by: .seconds(60))
        connection.close()
        while let event = await events.next() {
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.message.contains("for 60 seconds: a proxy or load balancer may end"))
            #expect(error.message.contains(asks ? "Spring" : "Set incomingHeartBeat"))
            break
        }
        await client.disconnect()
    }

    @Test func `an attempt that did not connect has lost no connection`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let client = server.client(clock: clock) { $0.connectTimeout = .seconds(10) }
        var events = client.events.makeAsyncIterator()
        await client.start()
        // It never answers the first attempt, and ends the second.
        let first = try await server.connection(0)
        await clock.advance(by: .seconds(15))
        try await server.connection(1).close()
        await clock.advance(by: .seconds(5))
        let third = try await server.accept(2)
        var failures = 0
        while let event = await events.next() {
            if case .connectionLost(let error) = event { Issue.record(error) }
            if case .attemptFailed = event { failures += 1 }
            if case .connected = event { break }
        }
        #expect(failures == 2)
        // Otherwise the client waits for its RECEIPT, for which no time passes.
        third.close()
        await client.disconnect()
        first.close()
    }

    @Test func `a message over the limits ends its subscription instead of each connection`() async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .discard
        try await withBroker(options) { broker in
            let sender = try await broker.connected()
            let client = try await broker.connected { $0.limits.maximumBodyBytes = 1_000 }
            // Acknowledged, since what arrives on a connection that is ending would be lost otherwise.
            let others = try await client.subscribe(to: "/queue/small", acknowledgement: .clientIndividual)
            let messages = try await client.subscribe(to: "/queue/large", acknowledgement: .clientIndividual)
            try await sender.sendAndConfirm([UInt8](repeating: 7, count: 2_000), to: "/queue/large")
            await expectError(.protocolError, containing: "/queue/large") {
                for try await _ in messages {}
            }
            #expect(client.counters.connections <= 4)
            try await sender.sendAndConfirm("x", to: "/queue/small")
            #expect(try await others.texts(1) == ["x"])
            await client.disconnect()
            await sender.disconnect()
        }
    }

    @Test(arguments: ["", "destination:/queue/bad\nmessage-id:1\n"])
    func `a message that breaks the protocol each time ends its subscription instead of each connection`(
        before: String
    ) async throws {
        let server = FakeServer()
        let client = server.client {
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(1)
            $0.requestTimeout = .patience
        }
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        async let subscribing = client.subscribe(to: "/queue/bad", acknowledgement: .clientIndividual)
        for number in 0..<3 {
            let connection = number == 0 ? first : try await server.accept(number)
            let lines = try await connection.frame().split(separator: "\n")
            let id = try #require(lines.first { $0.hasPrefix("id:") }).dropFirst(3)
            let receipt = try #require(lines.first { $0.hasPrefix("receipt:") }).dropFirst(8)
            connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0MESSAGE\n\(before)subject:")
            let byte: [UInt8] = [0xE9]
            _ = byte.withUnsafeBytes { connection.stream.write(from: $0) }
            let after = before.isEmpty ? "destination:/queue/bad\nmessage-id:1\n" : ""
            connection.send("\nsubscription:\(id)\n\(after)\n\0")
        }
        let messages = try await subscribing
        await expectError(.protocolError, containing: "/queue/bad") { for try await _ in messages {} }
        try await server.accept(3).close()
        await client.disconnect()
    }

    /// A line over the limit, and what the client knows by then of the subscription.
    enum LongLine: CaseIterable {
        /// The rest of the frame has not arrived, and there is one subscription.
        case first
        /// `subscription` comes behind it.
        case beforeSubscription
        /// Its destination is known, and the rest of the frame has not arrived.
        case afterDestination
        /// No line: the first one has no colon.
        case broken
    }

    @Test(arguments: LongLine.allCases)
    func `a message whose first header is over the limits ends its subscription instead of each connection`(
        line: LongLine
    ) async throws {
        let server = FakeServer()
        let client = server.client {
            $0.limits.maximumLineBytes = 1_000
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(1)
            $0.requestTimeout = .patience
        }
        let good = line == .first ? nil : client.subscription(to: "/queue/good")
        let bad = client.subscription(to: "/queue/bad", acknowledgement: .clientIndividual)
        await client.start()
        let long = "trace:" + String(repeating: "x", count: 2_000)
        for number in 0..<3 {
            let connection = try await server.accept(number)
            if good != nil { try await connection.confirm("SUBSCRIBE") }
            let id = try await connection.expect("SUBSCRIBE", "id")
            let rest = "subscription:\(id)\nmessage-id:1\ndestination:/queue/bad\n\nx\0"
            switch line {
            case .first: connection.send("MESSAGE\n\(long)")
            case .beforeSubscription: connection.send("MESSAGE\n\(long)\n\(rest)")
            case .afterDestination: connection.send("MESSAGE\ndestination:/queue/bad\n\(long)")
            case .broken: connection.send("MESSAGE\nno colon\n\(rest)")
            }
        }
        let next = try await server.accept(3)
        if good != nil {
            let id = try await next.expect("SUBSCRIBE", "id")
            next.send("MESSAGE\nsubscription:\(id)\nmessage-id:2\ndestination:/queue/good\n\nhello\0")
        }
        // Ended by `disconnect()` if it is not by the messages.
        let reading = Task { for try await _ in bad {} }
        if let good { #expect(try await good.texts(1) == ["hello"]) }
        try await client.connect()
        try await client.send("x", to: "/queue/other")
        // Nothing subscribes it again.
        #expect(try await next.expect("SEND", "destination") == "/queue/other")
        next.close()
        await client.disconnect()
        await expectError(.protocolError, containing: "/queue/bad") { try await reading.value }
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

    @Test func `a refused client that sent no credentials is told so`() async throws {
        let server = FakeServer()
        let client = server.client()
        async let refusing: Void = {
            let connection = try await server.connection(0)
            try await connection.expect("CONNECT")
            connection.send("ERROR\nmessage:Authentication failed\n\n\0")
        }()
        do throws(STOMPError) {
            try await client.connect()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .badCredentials)
            #expect(error.message.hasSuffix("The client sent neither user name nor password: set credentials."))
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
            refused.message
                == "The server refused a frame, probably this one: no reason given. Before you send it again, check the frame, the server's limits and this user's permissions."
        )
        // ERROR may name no receipt.
        #expect(
            refused.naming("SEND to '/queue/a'").message.contains("a frame, probably SEND to '/queue/a': no reason"))
    }

    @Test func `a header that cannot be written is named`() {
        let rows: [(STOMPHeaders, String)] = [(["a": "b", "note": "x\ny"], "'note'"), (["a:b": "c"], "'a:b'")]
        for (headers, name) in rows {
            var options = STOMPConnectOptions()
            options.headers = headers
            let configuration = STOMPEngineConfiguration(connect: options)
            let error = #expect(throws: STOMPUsageError.self) { try configuration.checkConnect() }
            #expect(error?.message.contains(name) == true, "\(String(describing: error))")
        }
    }

    @Test func `the description of a heart-beat is its name`() {
        #expect("\(STOMPEvent.heartBeatSent)" == "heartBeatSent")
    }

    @Test(arguments: [
        ("localhost:61613", "stomp://localhost:61613"), ("ssl://broker.example", "stomps://broker.example"),
        ("stomp+ssl://broker.example", "stomps://broker.example"),
        ("stomp+nio+ssl://broker.example:61614", "stomps://broker.example:61614"),
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
