import STOMP
import TestSupport
import Testing
import Transport

/// What the client makes of its wishes for a broker that calls itself ActiveMQ Artemis, as its documentation has them.
@Suite(.turns) struct ArtemisTests {
    private static let server = "ActiveMQ-Artemis/2.31.2 ActiveMQ Artemis Messaging Engine"

    /// Runs `body` with a client that is connected to such a broker.
    private func withArtemis(
        clientID: String? = nil, heartBeat: Duration? = nil, headers: String = "", clock: ManualClock? = nil,
        _ body: (STOMPClient, FakeConnection) async throws -> Void
    ) async throws {
        let fake = FakeServer()
        let client = fake.client(clock: clock) {
            $0.clientID = clientID
            if let heartBeat { ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (heartBeat, heartBeat) }
        }
        async let connecting: Void = client.connect()
        let connection = try await fake.accept(0, server: Self.server, headers: headers)
        try await connecting
        try await body(client, connection)
        connection.close()
        await client.disconnect()
    }

    /// Subscribes and returns the frame that the broker read, confirmed.
    private func subscribe(
        _ client: STOMPClient, _ connection: FakeConnection, _ options: STOMPSubscribeOptions
    ) async throws -> [Substring] {
        async let subscribing = client.subscribe(to: "/queue/orders", options: options)
        let lines = try await connection.frame().split(separator: "\n")
        connection.send("RECEIPT\nreceipt-id:\(lines.value("receipt"))\n\n\0")
        _ = try await subscribing
        return lines
    }

    @Test func itsProfileIsChosenBeforeThatOfActiveMQ() async throws {
        let server = FakeServer()
        let client = server.client()
        var events = client.events.makeAsyncIterator()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, server: Self.server)
        try await connecting
        while let event = await events.next() {
            guard case .connected(let connected) = event else { continue }
            #expect(connected.profile == .artemis)
            break
        }
        connection.close()
        await client.disconnect()
    }

    @Test func wishesBecomeItsHeaders() async throws {
        try await withArtemis(clientID: "shop") { client, connection in
            let lines = try await subscribe(
                client, connection,
                STOMPSubscribeOptions(
                    selector: "a = 1", durableName: "kept", prefetch: 10,
                    headers: ["destination-type": "MULTICAST", "subscription-type": "MULTICAST"]))
            #expect(lines.value("durable-subscription-name") == "kept")
            #expect(lines.value("selector") == "a = 1")
            // Bytes, a kilobyte for each message.
            #expect(lines.value("consumer-window-size") == "10240")
            #expect(lines.value("destination-type") == "MULTICAST")
            #expect(lines.value("subscription-type") == "MULTICAST")
            #expect(!lines.contains { $0.hasPrefix("activemq.") || $0.hasPrefix("prefetch-count:") })
        }
    }

    @Test func durableSubscriptionNeedsAClientID() async throws {
        try await withArtemis { client, _ in
            await expectError(.invalidRequest) {
                _ = try await client.subscribe(to: "/t", options: STOMPSubscribeOptions(durableName: "kept"))
            }
        }
    }

    @Test func durableSubscriptionIsDeletedWithTheNameThatMadeIt() async throws {
        try await withArtemis(clientID: "shop") { client, connection in
            async let subscribing = client.subscribe(to: "/t", options: STOMPSubscribeOptions(durableName: "kept"))
            try await connection.confirm("SUBSCRIBE")
            let messages = try await subscribing
            async let unsubscribing: Void = messages.unsubscribe()
            let lines = try await connection.frame().split(separator: "\n")
            #expect(lines.first == "UNSUBSCRIBE")
            #expect(lines.value("durable-subscription-name") == "kept")
            connection.send("RECEIPT\nreceipt-id:\(lines.value("receipt"))\n\n\0")
            try await unsubscribing
        }
    }

    @Test func textIsWhatComesWithoutALength() async throws {
        try await withArtemis { client, connection in
            var options = STOMPSendOptions()
            options.omitsContentLength = true
            try await client.send("text", to: "/queue/orders", options: options)
            #expect(try await connection.expect("SEND", "content-length") == "")
            try await client.send("bytes", to: "/queue/orders")
            #expect(try await connection.expect("SEND", "content-length") == "5")
        }
    }

    /// Its delimiter and its wildcards are configured, so that its word is taken for what belongs to a subscription.
    @Test func messagesOfAnyDestinationBelongToTheSubscriptionTheyName() async throws {
        try await withArtemis { client, connection in
            async let subscribing = client.subscribe(to: "/topic/a/+/c")
            let lines = try await connection.frame().split(separator: "\n")
            #expect(lines.value("destination") == "/topic/a/+/c")
            connection.send("RECEIPT\nreceipt-id:\(lines.value("receipt"))\n\n\0")
            connection.send(
                "MESSAGE\nsubscription:\(lines.value("id"))\nmessage-id:1\ndestination:a.b.c\n\nwild\0")
            let message = try #require(try await subscribing.first(1).first)
            #expect(message.destination == "a.b.c")
            #expect(message.text == "wild")
        }
    }

    /// It handles NACK as ACK, so that the message would be lost.
    @Test func rejectionIsRefused() async throws {
        try await withArtemis { client, connection in
            async let subscribing = client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
            let lines = try await connection.frame().split(separator: "\n")
            connection.send("RECEIPT\nreceipt-id:\(lines.value("receipt"))\n\n\0")
            connection.send(
                "MESSAGE\nsubscription:\(lines.value("id"))\nmessage-id:1\nack:1\ndestination:/queue/q\n\nx\0")
            let message = try #require(try await subscribing.first(1).first)
            for requeue in [nil, true, false] {
                await expectError(.unsupportedByBroker) { try message.reject(requeue: requeue) }
            }
            try message.acknowledge()
            #expect(try await connection.expect("ACK", "id") == "1")
        }
    }

    @Test func requestsSayThatItsTemporaryQueuesAreUnknown() async throws {
        try await withArtemis { client, _ in
            await expectError(.unsupportedByBroker) { _ = try await client.request("x", to: "/queue/orders") }
        }
    }

    /// It answers with half a second at the least, whatever was asked for, and drops whoever is silent for twice that.
    @Test func beatsComeWellWithinWhatItTolerates() async throws {
        let clock = try ManualClock()
        try await withArtemis(heartBeat: .milliseconds(100), headers: "heart-beat:500,500\n", clock: clock) {
            client, connection in
            let start = clock.now
            while !connection.hasHeartBeats(), start.duration(to: clock.now) < .milliseconds(500) {
                await clock.advance(by: .milliseconds(50))
            }
            #expect(connection.hasHeartBeats())
            // Of the longer of both wishes, which goes.
            #expect(start.duration(to: clock.now) > .milliseconds(200))
            // Nor is the broker given up for a silence that it is entitled to.
            #expect(client.state.isConnected)
        }
    }

    @Test func refusedCredentialsAreRecognised() async throws {
        let server = FakeServer()
        let client = server.client {
            $0.credentials = Credentials(userName: "ann", password: "wrong")
            $0.reconnect.firstConnectAttempts = nil
        }
        let connecting = Task { try await client.connect() }
        let connection = try await server.connection(0)
        try await connection.expect("CONNECT")
        connection.send(
            "ERROR\nmessage:Security Error occurred\\c User name [ann] or password is invalid\nserver:\(Self.server)\n\n\0"
        )
        connection.close()
        await expectError(.badCredentials) { try await connecting.value }
    }
}

extension [Substring] {
    /// The value of a header.
    func value(_ name: String) -> String {
        first { $0.hasPrefix(name + ":") }.map { String($0.dropFirst(name.count + 1)) } ?? ""
    }
}
