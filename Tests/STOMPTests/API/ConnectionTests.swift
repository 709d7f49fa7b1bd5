import ClientTestSupport
import LoopbackBroker
import MessagingShell
import STOMP
import Synchronization
import TestSupport
import Testing
import Transport

@testable import STOMP

@Suite(.turns) struct ConnectionTests {
    @Test func subscribesAgainAfterALoss() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var events = client.events.makeAsyncIterator()
            let messages = try await client.subscribe(to: "/queue/q")
            var iterator = messages.makeAsyncIterator()
            for round in 0..<5 {
                await broker.dropAllConnections()
                while let event = await events.next() {
                    if case .resubscribed("/queue/q") = event { break }
                }
                try await client.sendAndConfirm("\(round)", to: "/queue/q")
                #expect(try await iterator.next()?.text == "\(round)")
            }
            #expect(client.counters.connections == 6)
            await client.disconnect()
        }
    }

    @Test func `a frame sent as soon as CONNECTED arrived comes after the subscriptions`() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        async let subscribing = client.subscribe(to: "/topic/own")
        let receipt = try await first.expect("SUBSCRIBE", "receipt")
        first.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        let messages = try await subscribing
        // Before the client itself has reacted to CONNECTED.
        let eager = EagerSender {
            (try? client.core.sender.trySend(
                [1], to: "/topic/own", headers: STOMPHeaders(), omitsContentLength: false, in: nil)) ?? false
        }
        _ = client.core.link.tap { eager }
        first.close()
        let second = try await server.accept(1)
        #expect(try await second.frame().hasPrefix("SUBSCRIBE\n"))
        #expect(try await second.frame().hasPrefix("SEND\n"))
        withExtendedLifetime(messages) {}
        second.close()
        await client.disconnect()
    }

    @Test func subscriptionNotYetAnsweredIsAskedForAgain() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        async let subscribing = client.subscribe(to: "/queue/q")
        let id = try await first.expect("SUBSCRIBE", "id")
        first.close()
        let second = try await server.accept(1)
        let frame = try await second.frame()
        #expect(frame.contains("\nid:\(id)\n"))
        let receipt = try #require(frame.split(separator: "\n").first { $0.hasPrefix("receipt:") }).dropFirst(8)
        // A message may come before the receipt does.
        second.send(
            "MESSAGE\nsubscription:\(id)\nmessage-id:1\ndestination:/queue/q\n\nearly\0RECEIPT\nreceipt-id:\(receipt)\n\n\0"
        )
        let messages = try await subscribing
        #expect(try await messages.texts(1) == ["early"])
        second.close()
        await client.disconnect()
    }

    @Test func subscriptionRefusedAfterALossThrows() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var events = client.events.makeAsyncIterator()
            let lost = try await client.subscribe(to: "/queue/lost")
            let kept = try await client.subscribe(to: "/queue/kept")
            broker.changeFaults { $0.refusedFilters = ["/queue/lost"] }
            await broker.dropAllConnections()
            await expectError(.refused) { for try await _ in lost {} }
            while let event = await events.next() {
                if case .subscriptionLost("/queue/lost", let error) = event {
                    #expect(error.serverError != nil)
                    break
                }
            }
            #expect(await eventually { client.counters.connections == 3 && client.state.isConnected })
            try await client.sendAndConfirm("x", to: "/queue/kept")
            #expect(try await kept.texts(1) == ["x"])
            await client.disconnect()
        }
    }

    @Test func errorThatNamesNoFrameCostsNoSubscriptionAtOnce() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        async let subscribing = client.subscribe(to: "/queue/q")
        try await first.confirm("SUBSCRIBE")
        let messages = try await subscribing
        first.close()
        // It may have been about a SEND that asked for no receipt.
        for number in 1...2 {
            let connection = try await server.accept(number)
            try await connection.expect("SUBSCRIBE")
            connection.send("ERROR\nmessage:something\n\n\0")
            if number == 1 { #expect(await eventually { connection.isEnded() }) }
        }
        await expectError(.refused) { for try await _ in messages {} }
        await client.disconnect()
    }

    @Test func errorEndsTheSessionThoughTheSocketStaysOpen() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        let sending = Task { try await client.sendAndConfirm("x", to: "/nonsense") }
        let receipt = try await first.expect("SEND")
        // As RabbitMQ does: no receipt-id, and a RECEIPT for what failed.
        first.send("ERROR\nmessage:not found\nversion:1.2\n\nno such thing\0RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        await expectError(.refused) { try await sending.value }
        #expect(!client.state.isConnected, "whoever hears of the error finds the state that goes with it")
        #expect(await eventually { first.isEnded() })
        try await server.accept(1)
        #expect(await eventually { client.state.isConnected })
        await client.disconnect()
    }

    @Test func disconnectWithoutAnAnswerEndsAllTheSame() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        try await withTimeout(.patience, "disconnecting without an answer") { await client.disconnect() }
        try await connection.expect("DISCONNECT")
        #expect(await eventually { connection.isEnded() })
        if case .disconnected(nil) = client.state {} else { Issue.record("\(client.state)") }
        // Nothing is left behind: the client may be used again.
        async let again: Void = client.connect()
        let second = try await server.accept(1)
        try await again
        async let ending: Void = client.disconnect()
        try await second.expect("DISCONNECT")
        second.close()
        await ending
    }

    @Test func disconnectFromAFrozenBrokerEndsAllTheSame() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q")
            await broker.freeze()
            let sending = Task { try await client.sendAndConfirm("x", to: "/queue/q") }
            #expect(await eventually { client.counters.messagesSent == 1 })
            try await withTimeout(.patience, "disconnecting from a frozen broker") { await client.disconnect() }
            await expectError(.connectionLost) { try await sending.value }
            for try await _ in messages {}
            await broker.thaw()
        }
    }

    @Test func silenceIsNoticed() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = STOMPClient(broker.urls.stomp ?? "", clock: clock)
        try await client.connect()
        await clock.advance(by: .seconds(3600))
        #expect(client.counters.connections == 1, "beats keep a quiet connection alive")
        var events = client.events.makeAsyncIterator()
        await broker.freeze()
        await clock.advance(by: .seconds(30))
        while let event = await events.next() {
            if case .connectionLost(let error) = event {
                #expect(error.message.contains("heart-beat"))
                break
            }
        }
        #expect(!client.state.isConnected)
        await broker.thaw()
        await clock.advance(by: .seconds(60))
        #expect(client.state.isConnected)
        try await client.sendAndConfirm("x", to: "/queue/q")
        await client.disconnect()
        await broker.stop()
    }

    @Test func `a server that takes a long message slowly and sends no heart-beats is noticed`() async throws {
        let server = FakeServer()
        let client = server.client {
            $0.outgoingHeartBeat = .zero
            $0.incomingHeartBeat = .milliseconds(100)
        }
        var events = client.events.makeAsyncIterator()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, headers: "heart-beat:100,0\n")
        try await connecting
        let sending = Task { try await client.sendAndConfirm([UInt8](repeating: 7, count: 4 << 20), to: "/queue/a") }
        // Bytes that arrive do not stand in for heart-beats.
        let reading = Task {
            while connection.read(atMost: 10_000) { try await Task.sleep(for: .milliseconds(10)) }
        }
        while let event = await events.next() {
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.message.contains("heart-beat"))
            break
        }
        for task in [sending, reading] {
            task.cancel()
            _ = await task.result
        }
        connection.close()
        await client.disconnect()
    }

    @Test func `long messages that leave slowly do not keep the server's heart-beats from being read`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let client = server.client(clock: clock) {
            $0.outgoingHeartBeat = .zero
            $0.incomingHeartBeat = .seconds(10)
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, headers: "heart-beat:10000,0\n")
        try await connecting
        // The first fills the connection, from which the server reads nothing, and the second the outbox.
        for _ in 0..<2 { try await client.send([UInt8](repeating: 7, count: 3 << 20), to: "/queue/a") }
        for _ in 0..<6 {
            connection.send("\n")
            await clock.advance(by: .seconds(10))
        }
        #expect(client.state.isConnected && client.counters.connections == 1)
        connection.close()
        await client.disconnect()
    }

    /// A client that reads nothing, because too many of its acknowledgements wait for the server, and that waits for the receipt of
    /// a frame which it has sent before.
    private func heldUp(
        _ server: FakeServer, _ clock: ManualClock, requestTimeout: Duration
    ) async throws -> (client: STOMPClient, connection: FakeConnection, receipt: String, sending: Task<Void, any Error>)
    {
        let client = server.client(clock: clock) {
            $0.outgoingHeartBeat = .zero
            $0.incomingHeartBeat = .seconds(10)
            $0.maximumOutboxBytes = 1_000
            $0.requestTimeout = requestTimeout
            $0.reconnect = .never
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, headers: "heart-beat:10000,0\n")
        try await connecting
        async let subscribing = client.subscribe(to: "/queue/a", acknowledgement: .clientIndividual)
        let lines = try await connection.frame().split(separator: "\n")
        let id = try #require(lines.first { $0.hasPrefix("id:") }).dropFirst(3)
        let receipt = try #require(lines.first { $0.hasPrefix("receipt:") }).dropFirst(8)
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        let messages = try await subscribing
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/b") }
        let awaited = try await connection.expect("SEND")
        // Longer than what is written with the frame counts as awaited.
        await clock.advance(by: .seconds(3))
        let long = String(repeating: "x", count: 50)
        for number in 0..<100 {
            connection.send(
                "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\ndestination:/queue/a\nack:\(long)\(number)\n\n\0")
        }
        let all = try await messages.first(100)
        // The first ones fill the connection, from which the server has read nothing, and the others the outbox.
        connection.client.changeFaults { $0.capacity = 500 }
        for message in all[..<20] { try message.acknowledge() }
        #expect(
            await eventually {
                let progress = connection.client.progress
                return progress.written - progress.acknowledged == 500
            })
        for message in all[20...] { try message.acknowledge() }
        #expect(client.backlog.outboxBytes > 2_000)
        return (client, connection, awaited, sending)
    }

    /// What a client acknowledges is not bounded by room in the outbox, so that nothing more is read while too much of it waits.
    @Test(arguments: [true, false])
    func `acknowledgements that leave slowly do not end the connection, and those that do not leave are named`(
        leaveSlowly: Bool
    ) async throws {
        let clock = try ManualClock()
        let (client, connection, receipt, sending) = try await heldUp(
            FakeServer(), clock, requestTimeout: .seconds(200))
        var events = client.events.makeAsyncIterator()
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        for _ in 0..<6 {
            connection.send("\n")
            if leaveSlowly { #expect(connection.read(atMost: 10)) }
            await clock.advance(by: .seconds(10))
        }
        #expect(client.state.isConnected == leaveSlowly)
        var stalls = 0
        while !leaveSlowly, let event = await events.next() {
            if case .sendingStalled = event { stalls += 1 }
            guard case .connectionLost(let error) = event else { continue }
            #expect(error.message.hasPrefix("The other end took none of the "))
            break
        }
        // Nobody waits for room, but nothing is read.
        #expect(stalls == (leaveSlowly ? 0 : 1))
        if leaveSlowly {
            #expect(await eventually { !connection.isEnded() && client.backlog.messagesInFlight == 0 })
            try await sending.value
        } else {
            await expectError(.connectionLost) { try await sending.value }
        }
        connection.close()
        await client.disconnect()
    }

    @Test
    func
        `a receipt that is not read because acknowledgements leave slowly is late for that reason, which the error says`()
        async throws
    {
        let clock = try ManualClock()
        let (client, connection, receipt, sending) = try await heldUp(FakeServer(), clock, requestTimeout: .seconds(20))
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        await clock.advance(by: .seconds(18))
        await expectError(.timedOut, containing: "maximumOutboxBytes") { try await sending.value }
        #expect(client.state.isConnected)
        connection.close()
        await client.disconnect()
    }

    @Test func `a long message that a receipt lets go does not keep heart-beats from being read`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let client = server.client(clock: clock) {
            $0.outgoingHeartBeat = .zero
            $0.incomingHeartBeat = .seconds(10)
            $0.acknowledgementTimeout = nil
            $0.maximumReceipts = 2
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, headers: "heart-beat:10000,0\n")
        try await connecting
        let size = 3 << 20
        // On the loop, so that the clock knows when it waits.
        let sending = Task(executorPreference: clock.loop) {
            let message = STOMPOutgoingMessage([UInt8](repeating: 7, count: size), to: "/queue/a")
            _ = await client.sendAndConfirm([message, message, message])
        }
        // The server reads the first message and the beginning of the second, which fills the link.
        let receipt = try await connection.receipt(ofFirstIn: size + 1_000)
        #expect(await eventually { client.backlog.messagesInFlight == 2 && client.backlog.outboxBytes == 0 })
        await clock.waitUntilQuiet()
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        #expect(await eventually { client.backlog.outboxBytes > size })
        for _ in 0..<6 {
            connection.send("\n")
            await clock.advance(by: .seconds(10))
        }
        #expect(client.state.isConnected && client.counters.connections == 1)
        connection.close()
        sending.cancel()
        await client.disconnect()
        await sending.value
    }

    @Test func refusedCredentialsAskForFreshOnesOnceAndThenStop() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "new")]
        try await withBroker(options) { broker in
            let asked = Atomic(0)
            let wrong = broker.client {
                $0.reconnect.firstConnectAttempts = nil
                $0.credentialsProvider = { request in
                    asked.add(1, ordering: .relaxed)
                    #expect(request.wereRefused == (asked.load(ordering: .relaxed) == 2))
                    return Credentials(userName: "ann", password: "old")
                }
            }
            await expectError(.badCredentials) { try await wrong.connect() }
            #expect(asked.load(ordering: .relaxed) == 2)
            if case .disconnected(let error?) = wrong.state {
                #expect(error.serverError?.message == "invalid user credentials")
            } else {
                Issue.record("\(wrong.state)")
            }
            try await Task.sleep(for: .milliseconds(100))
            #expect(broker.statistics.connections == 2)

            // At once: not even one failed attempt is allowed.
            let healed = broker.client {
                $0.credentialsProvider = { request in
                    Credentials(userName: "ann", password: request.wereRefused ? "new" : "old")
                }
            }
            try await healed.connect()
            #expect(broker.statistics.connections == 4)
            await healed.disconnect()
        }
    }

    @Test func `a gateway that refuses the WebSocket handshake gets other credentials at once`() async throws {
        try await ClientChecks.refusedHandshakes { port, provider, policy in
            var configuration = STOMPConfiguration()
            configuration.credentialsProvider = provider
            configuration.reconnect = policy
            return STOMPClient("ws://127.0.0.1:\(port)/ws", configuration: configuration)
        }
    }

    /// What finds a link that broke silently where the server sends no heart-beats.
    @Test(arguments: [(Duration.seconds(4), [1, 4, 2, 3]), (.milliseconds(300), [1, 1, 1, 3]), (.zero, [0])])
    func `TCP keep-alive follows the heart-beat that is asked for`(interval: Duration, options: [Int32]) async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.incomingHeartBeat = interval }
            let port = Int(broker.ports.stomp ?? 0)
            #expect(ServiceMarks.keepAlive(ofConnectionsTo: port) == [options])
            await client.disconnect()
        }
    }

    @Test func serverOfAVersionThatWasNotOfferedIsLeft() async throws {
        let server = FakeServer()
        let client = server.client { $0.versions = [.v12] }
        async let connecting: Void = client.connect()
        let connection = try await server.connection(0)
        try await connection.expect("CONNECT")
        connection.send("CONNECTED\nversion:1.1\n\n\0")
        do {
            try await connecting
            Issue.record("it connected")
        } catch {
            #expect((error as? STOMPError)?.code == .unsupportedVersion)
        }
    }

    @Test func confirmedMessagesSurviveCutsAnywhere() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumQueueMessages = 100_000
        try await withBroker(options) { broker in
            let next = Atomic(0)
            let client = STOMPClient(
                ["stomp://pair"], configuration: .impatient, loop: .shared,
                override: { () throws(TransportError) in
                    let (client, server) = MemoryPair.make()
                    let number = next.add(1, ordering: .relaxed).newValue
                    var random = SeededGenerator(seed: Campaign.seed &+ UInt64(number))
                    let upward = Int.random(in: 1...3000, using: &random)
                    let downward = Int.random(in: 1...1500, using: &random)
                    let chunk = Int.random(in: 1...50, using: &random)
                    client.changeFaults {
                        if number % 2 == 0 { $0.bytesUntilCut = upward }
                        $0.bytesPerRead = chunk
                    }
                    server.changeFaults {
                        if number % 2 == 1 { $0.bytesUntilCut = downward }
                        $0.bytesPerRead = chunk
                    }
                    broker.attach(server, as: Service(.stomp))
                    return OpenedStream(stream: client)
                })
            var confirmed: [String] = []
            let deadline = ContinuousClock.now + .seconds(2)
            _ = try? await client.connect()
            var number = 0
            // The loop lasts longer if the machine is so busy that too little has happened for the checks below.
            while number < 2000,
                ContinuousClock.now < deadline || confirmed.count <= 20 || next.load(ordering: .relaxed) <= 5
            {
                number += 1
                if !client.state.isConnected { _ = try? await client.connect() }
                do {
                    try await client.sendAndConfirm("\(number)", to: "/queue/cut")
                    confirmed.append("\(number)")
                } catch {
                    try await Task.sleep(for: .milliseconds(1))
                    let allowed: [STOMPError.Code?] = [.connectionLost, .notConnected, .refused, .disconnected]
                    #expect(allowed.contains((error as? STOMPError)?.code), "\(error)")
                }
            }
            #expect(confirmed.count > 20)
            #expect(next.load(ordering: .relaxed) > 5)
            await client.disconnect()
            let reader = try await broker.connected()
            try await reader.sendAndConfirm("end", to: "/queue/cut")
            var arrived: Set<String> = []
            for try await message in try await reader.subscribe(to: "/queue/cut") {
                if message.text == "end" { break }
                arrived.insert(message.text ?? "")
            }
            #expect(arrived.isSuperset(of: confirmed))
            await reader.disconnect()
        }
    }
}

/// Defects that users of other clients report, each shown to be absent.
@Suite(.turns) struct ReportedDefectTests {
    @Test func closeThatNeverEndsDoesNotBlockReconnecting() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        // The server takes no byte any more and never closes its end.
        first.client.changeFaults { $0.capacity = 0 }
        try await client.send("unsent", to: "/queue/a")
        first.send("ERROR\nmessage:enough\n\n\0")
        try await server.accept(1)
        #expect(await eventually { client.state.isConnected && client.counters.connections == 2 })
        await client.disconnect()
        async let again: Void = client.connect()
        try await server.accept(2)
        try await again
        await client.disconnect()
    }

    @Test func stateTellsTheTruthAtEachStep() async throws {
        let server = FakeServer()
        let client = server.client()
        var states = client.states.makeAsyncIterator()
        func next() async -> String { await states.next().map { "\($0)".prefix { $0.isLetter }.description } ?? "end" }
        #expect(await next() == "disconnected")
        async let connecting: Void = client.connect()
        #expect(await next() == "connecting")
        #expect(!client.state.isConnected)
        let first = try await server.accept(0)
        try await connecting
        #expect(await next() == "connected")
        #expect(client.state.isConnected)
        first.close()
        #expect(await next() == "waiting")
        #expect(!client.state.isConnected)
        #expect(await next() == "connecting")
        let second = try await server.accept(1)
        #expect(await next() == "connected")
        async let ending: Void = client.disconnect()
        #expect(await next() == "disconnecting")
        #expect(!client.state.isConnected)
        try await second.confirm("DISCONNECT")
        await ending
        #expect(await next() == "disconnected")
        #expect(!client.state.isConnected)
    }

    @Test func everyLossIsReportedOnce() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let losses = Atomic(0)
            let listening = Task { [events = client.events] in
                for await event in events {
                    if case .connectionLost = event { losses.add(1, ordering: .relaxed) }
                }
            }
            for round in 1...5 {
                await broker.dropAllConnections()
                #expect(await eventually { losses.load(ordering: .relaxed) == round })
                #expect(await eventually { client.counters.connections == round + 1 })
            }
            await client.disconnect()
            try await Task.sleep(for: .milliseconds(50))
            #expect(losses.load(ordering: .relaxed) == 5)
            listening.cancel()
        }
    }

    @Test func noAttemptIsMadeAfterTheClientWasStopped() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.reconnect.initialDelay = .seconds(50)
        configuration.reconnect.jitter = 0
        configuration.reconnect.spread = .zero
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        broker.changeFaults { $0.refusesConnections = true }
        await broker.dropAllConnections()
        await clock.advance(by: .seconds(49))
        if case .waiting = client.state {} else { Issue.record("\(client.state)") }
        await client.disconnect()
        await clock.advance(by: .seconds(3600))
        #expect(broker.statistics.connections == 2)
        if case .disconnected(nil) = client.state {} else { Issue.record("\(client.state)") }
        client.networkChanged()
        await clock.advance(by: .seconds(3600))
        #expect(broker.statistics.connections == 2)
        await broker.stop()
    }

    @Test func clientThatIsReleasedClosesItsConnection() async throws {
        try await withBroker { broker in
            var client: STOMPClient? = try await broker.connected()
            var messages: STOMPSubscription? = try await client?.subscribe(to: "/queue/q")
            #expect(broker.connectionCount == 1)
            client = nil
            #expect(messages != nil)
            messages = nil
            #expect(await eventually { broker.connectionCount == 0 })
        }
    }
}

/// Sends once, at the moment at which CONNECTED has been read and not yet acted on.
private final class EagerSender: LinkTap {
    private let send: @Sendable () -> Bool

    init(_ send: @escaping @Sendable () -> Bool) { self.send = send }

    func sent(_ bytes: RawSpan) {}

    func received(_ bytes: RawSpan) {
        let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        if text.hasPrefix("CONNECTED\n") { #expect(send()) }
    }
}
