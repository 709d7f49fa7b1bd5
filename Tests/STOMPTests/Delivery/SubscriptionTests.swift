import LoopbackBroker
import Synchronization
import TestSupport
import Testing

@testable import STOMP

@Suite(.turns) struct SubscriptionTests {
    @Test func slowReceiverLosesTheOldestAndIsTold() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/topic/slow", buffer: BufferPolicy(messages: 10))
            for number in 0..<100 { try await client.send("\(number)", to: "/topic/slow") }
            // Once all are in the buffer: what is counted as received may be on its way to a reader that waits.
            #expect(await eventually { messages.droppedCount == 90 })
            var texts: [String] = []
            var gaps = 0
            for try await message in messages {
                texts.append(message.text ?? "")
                gaps += message.droppedBefore
                if texts.last == "99" { break }
            }
            #expect(texts == (90..<100).map { "\($0)" })
            #expect(gaps == 90)
            #expect(messages.droppedCount == 90)
            await client.disconnect()
        }
    }

    @Test func `more subscriptions than receipts may be awaited continue after a reconnect, and end in order`()
        async throws
    {
        try await withBroker { broker in
            let client = try await broker.connected { $0.maximumReceipts = 2 }
            var subscriptions: [STOMPSubscription] = []
            for number in 0..<5 { subscriptions.append(try await client.subscribe(to: "/topic/\(number)")) }
            await broker.dropAllConnections()
            #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
            for (number, subscription) in subscriptions.enumerated() {
                try await client.send("\(number)", to: "/topic/\(number)")
                for try await message in subscription {
                    #expect(message.text == "\(number)")
                    break
                }
            }
            await withTaskGroup { group in
                for subscription in subscriptions {
                    group.addTask { await #expect(throws: Never.self) { try await subscription.unsubscribe() } }
                }
            }
            await client.disconnect()
        }
    }

    @Test func `headers that are empty, repeated, escaped or missing are read as they were sent`() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connected: Void = client.connect()
        let connection = try await server.accept(0)
        try await connected
        async let subscribing = client.subscribe(to: "/topic/a")
        let lines = try await connection.frame().split(separator: "\n")
        func header(_ name: String) -> Substring { lines.first { $0.hasPrefix(name) }?.dropFirst(name.count) ?? "" }
        let frames = [
            "destination:/topic/\\cä\nmessage-id:\ncontent-type:a long enough type\ncontent-type:b\n\n1\0",
            "content-type:\ndestination:/topic/b\nmessage-id:T_sub-0@@session-1@@2\n\n2\0",
            "message-id:3\nmessage-id:4\ndestination:/topic/c\n\n3\0",
            "message-id:5\ndestination:/topic/c\\\\c\ncontent-type:x\n\n3\0",
            "message-id:6\ndestination:/topic/c\\c\ncontent-type:x\n\n3\0",
            "message-id:7\ndestination:/topic/c\ncontent-type:xy\n\n3\0",
        ]
        connection.send("RECEIPT\nreceipt-id:\(header("receipt:"))\n\n\0")
        connection.send(frames.map { "MESSAGE\nsubscription:\(header("id:"))\n\($0)" }.joined())
        var read: [[String?]] = []
        for try await message in try await subscribing {
            read.append([message.destination, message.messageID, message.contentType])
            if read.count == 6 { break }
        }
        #expect(
            read == [
                ["/topic/:ä", "", "a long enough type"], ["/topic/b", "T_sub-0@@session-1@@2", ""],
                ["/topic/c", "3", nil], ["/topic/c\\c", "5", "x"], ["/topic/c:", "6", "x"], ["/topic/c", "7", "xy"],
            ])
        await client.disconnect()
    }

    @Test func slowReceiverThatPausesReadingLosesNothing() async throws {
        var options = LoopbackBrokerOptions()
        // So long that a busy machine is not taken for a silent server: only the server sends heart-beats.
        options.heartBeat = (30_000, 0)
        try await withBroker(options) { broker in
            let client = try await broker.connected {
                $0.outgoingHeartBeat = .zero
                $0.incomingHeartBeat = .seconds(30)
            }
            let sender = try await broker.connected()
            let policy = BufferPolicy(messages: 10, overflow: .pauseReading)
            let messages = try await client.subscribe(to: "/queue/paused", buffer: policy)
            #expect(client.core.link.perform { $0.engine.nextDeadline } < .max)
            for number in 0..<5000 { try await sender.send("\(number)", to: "/queue/paused") }
            // While we do not read, the server's silence is ours: nothing is due.
            #expect(await eventually { client.core.link.perform { $0.engine.nextDeadline } == .max })
            #expect(try await messages.texts(5000) == (0..<5000).map { "\($0)" })
            #expect(messages.droppedCount == 0)
            await client.disconnect()
            await sender.disconnect()
        }
    }

    @Test func `reading pauses when all subscriptions together have too much unread, and nothing is lost`() async throws
    {
        try await withBroker { broker in
            let client = try await broker.connected { $0.maximumUnreadBytes = 10_000 }
            let sender = try await broker.connected()
            let one = try await client.subscribe(to: "/queue/one")
            let two = try await client.subscribe(to: "/queue/two")
            let body = String(repeating: "x", count: 20_000)
            for number in 0..<1_000 { try await sender.send(body, to: number % 2 == 0 ? "/queue/one" : "/queue/two") }
            var last = -1
            while last != client.counters.messagesReceived {
                last = client.counters.messagesReceived
                try await Task.sleep(for: .milliseconds(30))
            }
            // What one read may bring beside the bound, and the rest of a frame that was begun.
            #expect(last * body.utf8.count < 10_000 + (128 << 10) + 20_000)
            async let others = two.texts(500).count
            #expect(try await one.texts(500).count == 500)
            #expect(try await others == 500)
            await client.disconnect()
            await sender.disconnect()
        }
    }

    @Test func fullBufferThatIsReleasedHoldsNobodyUp() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let policy = BufferPolicy(messages: 10, overflow: .pauseReading)
            var slow: STOMPSubscription? = try await client.subscribe(to: "/topic/slow", buffer: policy)
            var iterator = slow?.makeAsyncIterator()
            for number in 0..<100 { try await client.send("\(number)", to: "/topic/slow") }
            #expect(await eventually { client.counters.messagesReceived >= 10 })
            #expect(try await iterator?.next()?.text == "0")
            iterator = nil
            try await client.send("heard", to: "/queue/other")
            slow = nil
            #expect(try await client.subscribe(to: "/queue/other").texts(1) == ["heard"])
            await client.disconnect()
        }
    }

    @Test func acknowledgedMessagesAreNeverDropped() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(
                to: "/queue/kept", acknowledgement: .clientIndividual, buffer: BufferPolicy(messages: 10))
            for number in 0..<200 { try await client.send("\(number)", to: "/queue/kept") }
            var texts: [String] = []
            for try await message in messages {
                texts.append(message.text ?? "")
                try message.acknowledge()
                if texts.count == 200 { break }
            }
            #expect(texts == (0..<200).map { "\($0)" })
            await client.disconnect()
        }
    }

    @Test func `of two subscriptions to one topic each gets every message`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var first = try await client.subscribe(to: "/topic/t").makeAsyncIterator()
            var second = try await client.subscribe(to: "/topic/t").makeAsyncIterator()
            try await client.send("x", to: "/topic/t")
            #expect(try await first.next()?.text == "x")
            #expect(try await second.next()?.text == "x")
            await client.disconnect()
            #expect(try await first.next() == nil)
            #expect(try await second.next() == nil)
        }
    }

    @Test(arguments: [STOMPAckMode.auto, .clientIndividual])
    func `a receiver that is replaced while it works leaves its messages to the next`(mode: STOMPAckMode) async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/jobs", acknowledgement: mode)
            var old: STOMPSubscription.Iterator? = messages.makeAsyncIterator()
            try await client.sendAndConfirm((0..<3).map { STOMPOutgoingMessage("\($0)", to: "/queue/jobs") }).check()
            #expect(await eventually { client.counters.messagesReceived == 3 })
            let begun = try #require(try await old?.next())
            let done = Mutex<[String?]>([])
            let new = Task {
                for try await message in messages {
                    if mode != .auto { try message.acknowledge() }
                    done.withLock { $0.append(message.text) }
                }
            }
            // Once it is there, it gets what comes.
            #expect(
                try await eventually {
                    try await client.sendAndConfirm("new", to: "/queue/jobs")
                    return done.withLock { !$0.isEmpty }
                })
            old = nil
            if mode != .auto { try begun.acknowledge() }
            #expect(await eventually { done.withLock { $0.contains("1") && $0.contains("2") } })
            await client.disconnect()
            try await new.value
            #expect(done.withLock { $0.filter { $0 == "1" || $0 == "2" } == ["1", "2"] })
        }
    }

    @Test(arguments: [STOMPAckMode.auto, .clientIndividual])
    func `a receiver that begins after the end of its subscription gets what another one leaves`(
        mode: STOMPAckMode
    ) async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/jobs", acknowledgement: mode)
            var first: STOMPSubscription.Iterator? = messages.makeAsyncIterator()
            try await client.sendAndConfirm((0..<3).map { STOMPOutgoingMessage("\($0)", to: "/queue/jobs") }).check()
            #expect(await eventually { client.counters.messagesReceived == 3 })
            #expect(try await first?.next()?.text == "0")
            await client.disconnect()
            var other = messages.makeAsyncIterator()
            first = nil
            for text in ["1", "2", nil] { #expect(try await other.next()?.text == text) }
        }
    }

    @Test func loopMayBeLeftAndEnteredAgain() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/again")
            try await client.sendAndConfirm((0..<20).map { STOMPOutgoingMessage("\($0)", to: "/queue/again") }).check()
            #expect(await eventually { client.counters.messagesReceived == 20 })
            for round in 0..<4 {
                #expect(try await messages.texts(5) == (0..<5).map { "\(round * 5 + $0)" })
            }
            await client.disconnect()
        }
    }

    @Test func releasingTheSequenceUnsubscribes() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var events = client.events.makeAsyncIterator()
            var messages: STOMPSubscription? = try await client.subscribe(to: "/topic/released")
            try await client.sendAndConfirm("1", to: "/topic/released")
            #expect(broker.statistics.messagesOut == 1)
            #expect(messages != nil)
            messages = nil
            while let event = await events.next() {
                if case .unsubscribed("/topic/released") = event { break }
            }
            try await client.sendAndConfirm("2", to: "/topic/released")
            #expect(broker.statistics.messagesOut == 1)
            await client.disconnect()
        }
    }

    @Test func unsubscribingEndsTheSequenceAndWaitsForTheReceipt() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/topic/t")
            try await client.sendAndConfirm("1", to: "/topic/t")
            try await messages.unsubscribe()
            try await client.sendAndConfirm("2", to: "/topic/t")
            #expect(try await messages.texts(2) == ["1"])
            try await messages.unsubscribe()
            await client.disconnect()
        }
    }

    /// Before it waits or while it does.
    @Test(arguments: [true, false])
    func cancelledUnsubscribingSendsAndDoesNotWait(beforehand: Bool) async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        async let subscribing = client.subscribe(to: "/topic/t")
        try await connection.confirm("SUBSCRIBE")
        let messages = try await subscribing
        let unsubscribing = Task {
            if beforehand { withUnsafeCurrentTask { $0?.cancel() } }
            try await messages.unsubscribe()
        }
        let receipt = try await connection.expect("UNSUBSCRIBE")
        unsubscribing.cancel()
        await expectError(.cancelled) { try await unsubscribing.value }
        #expect(try await messages.first(1).isEmpty)
        // A receipt that nobody waits for any more does no harm.
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        async let sending: Void = client.sendAndConfirm("x", to: "/queue/q")
        try await connection.confirm("SEND")
        try await sending
        #expect(client.counters.connections == 1)
        connection.close()
        await client.disconnect()
    }

    @Test func refusalIsToldInTheBrokersWords() async throws {
        var options = LoopbackBrokerOptions()
        options.faults.refusedFilters = ["/topic/secret"]
        try await withBroker(options) { broker in
            let client = try await broker.connected()
            let other = try await client.subscribe(to: "/queue/other")
            do {
                _ = try await client.subscribe(to: "/topic/secret")
                Issue.record("it was not refused")
            } catch let error as STOMPError {
                #expect(error.code == .refused)
                #expect(error.message.contains("not allowed to subscribe to '/topic/secret'"))
                #expect(error.serverError != nil)
            }
            // ERROR has ended the connection; the others come back with the next.
            #expect(await eventually { client.counters.connections == 2 })
            try await client.sendAndConfirm("x", to: "/queue/other")
            #expect(try await other.texts(1) == ["x"])
            await client.disconnect()
        }
    }

    @Test func cancellingASubscriptionThatWaitsEndsTheWait() async throws {
        try await withBroker { broker in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            let client = try await broker.connected()
            let subscribing = Task { try await client.subscribe(to: "/queue/q") }
            try await Task.sleep(for: .milliseconds(50))
            subscribing.cancel()
            await expectError(.cancelled) { _ = try await subscribing.value }
            broker.changeFaults { $0.withholdsAcknowledgements = false }
            // The broker was told: nobody else consumes the queue.
            try await client.sendAndConfirm("x", to: "/queue/q")
            #expect(try await client.subscribe(to: "/queue/q").texts(1) == ["x"])
            await client.disconnect()
        }
    }

    @Test func cancellingTheIterationThrows() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q")
            let reading = Task { for try await _ in messages {} }
            try await Task.sleep(for: .milliseconds(20))
            reading.cancel()
            await expectError(.cancelled) { try await reading.value }
            await client.disconnect()
        }
    }

    @Test(arguments: [STOMPVersion.v10, .v11, .v12])
    func durableSubscriptionStaysUntilItIsUnsubscribed(version: STOMPVersion) async throws {
        try await withBroker { broker in
            let options = STOMPSubscribeOptions(durableName: "kept")
            let client = try await broker.connected {
                $0.clientID = "durable"
                $0.versions = [version]
            }
            var messages: STOMPSubscription? = try await client.subscribe(to: "/topic/d", options: options)
            #expect(messages != nil)
            await client.disconnect()
            let sender = try await broker.connected()
            try await sender.sendAndConfirm("while away", to: "/topic/d")
            // Without a connection the broker cannot be asked to delete it.
            await expectError(.notConnected) { try await messages?.unsubscribe() }
            messages = nil
            try await client.connect()
            messages = try await client.subscribe(to: "/topic/d", options: options)
            #expect(try await messages?.texts(1) == ["while away"])
            try await messages?.unsubscribe()
            try await sender.sendAndConfirm("never", to: "/topic/d")
            // The same by the client, for a subscription that an earlier process left.
            messages = try await client.subscribe(to: "/topic/d", options: options)
            messages = nil
            await client.disconnect()
            try await sender.sendAndConfirm("never either", to: "/topic/d")
            try await client.connect()
            try await client.unsubscribe(from: "/topic/d", durableName: "kept")
            messages = try await client.subscribe(to: "/topic/d", options: options)
            try await sender.sendAndConfirm("anew", to: "/topic/d")
            #expect(try await messages?.texts(1) == ["anew"])
            await client.disconnect()
            await sender.disconnect()
        }
    }

    /// RabbitMQ deletes the queue that UNSUBSCRIBE names.
    @Test func `what named the queue of a durable subscription is repeated to delete it`() async throws {
        let server = FakeServer()
        let (client, connection) = try await server.connected(server: "RabbitMQ/3.10.8")
        let kept = STOMPDestination.text("/topic/d", queue: .rabbitMQ(headers: ["x-queue-name": "mine"]))
        async let subscribing = client.subscribe(to: kept, options: STOMPSubscribeOptions(durableName: "kept"))
        try await connection.confirm("SUBSCRIBE")
        let messages = try await subscribing
        let leaving = Task { try await messages.subscription.unsubscribe() }
        let frame = try await connection.frame()
        #expect(frame.hasPrefix("UNSUBSCRIBE\n") && frame.contains("\nx-queue-name:mine\n"))
        #expect(frame.contains("\nid:kept\n") && frame.contains("\ndurable:true\n"))
        let receipt = frame.split(separator: "\n").first { $0.hasPrefix("receipt:") }?.dropFirst(8) ?? ""
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        try await leaving.value
        // The same for one that an earlier process left.
        let deleting = Task {
            try await client.unsubscribe(from: "/topic/d", durableName: "kept", headers: ["x-queue-name": "mine"])
        }
        for command in ["SUBSCRIBE", "UNSUBSCRIBE"] {
            let frame = try await connection.frame()
            #expect(frame.hasPrefix(command + "\n") && frame.contains("\nx-queue-name:mine\n"))
            let receipt = frame.split(separator: "\n").first { $0.hasPrefix("receipt:") }?.dropFirst(8) ?? ""
            connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        }
        try await deleting.value
        connection.close()
        await client.disconnect()
    }

    @Test func `a durable subscription that RabbitMQ cannot delete is not reported as deleted`() async throws {
        let server = FakeServer()
        let (client, connection) = try await server.connected(server: "RabbitMQ/3.10.8")
        let destination = "/exchange/amq.topic/d"
        // Nothing is subscribed only to be deleted.
        await expectError(.unsupportedByBroker, containing: destination) {
            try await client.unsubscribe(from: destination, durableName: "kept")
        }
        async let subscribing = client.subscribe(
            to: destination, options: STOMPSubscribeOptions(durableName: "kept"))
        try await connection.confirm("SUBSCRIBE")
        let messages = try await subscribing
        let leaving = Task { try await messages.unsubscribe() }
        try await connection.confirm("UNSUBSCRIBE")
        await expectError(.unsupportedByBroker, containing: destination) { try await leaving.value }
        await expectError(.unsupportedByBroker, containing: destination) { try await messages.unsubscribe() }
        #expect(client.state.isConnected)
        connection.close()
        await client.disconnect()
    }

    /// A client of RabbitMQ with a durable subscription.
    private func durable(
        _ server: FakeServer
    ) async throws -> (client: STOMPClient, connection: FakeConnection, messages: STOMPSubscription) {
        let (client, connection) = try await server.connected(server: "RabbitMQ/3.10.8") {
            ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
        }
        async let subscribing = client.subscribe(to: "/topic/d", options: STOMPSubscribeOptions(durableName: "kept"))
        try await connection.confirm("SUBSCRIBE")
        return (client, connection, try await subscribing)
    }

    @Test func `a durable subscription whose UNSUBSCRIBE was lost is not reported as ended`() async throws {
        let server = FakeServer()
        let (client, connection, messages) = try await durable(server)
        let leaving = Task { try await messages.unsubscribe() }
        try await connection.expect("UNSUBSCRIBE")
        connection.close()
        await expectError(.connectionLost, containing: "unsubscribe(from:durableName:headers:)") {
            try await leaving.value
        }
        await expectError(.connectionLost, containing: "may remain at the broker") { try await messages.unsubscribe() }
        let next = try await server.accept(1, server: "RabbitMQ/3.10.8")
        #expect(await eventually { client.state.isConnected })
        await expectError(.connectionLost, containing: "may remain at the broker") { try await messages.unsubscribe() }
        // As the error advises.
        let deleting = Task { try await client.unsubscribe(from: "/topic/d", durableName: "kept") }
        try await next.confirm("SUBSCRIBE")
        try await next.confirm("UNSUBSCRIBE")
        try await deleting.value
        next.close()
        await client.disconnect()
    }

    /// The connection does not end before its last bytes have left.
    @Test(arguments: [false, true])
    func `a subscription ends at once while its connection ends`(byServer: Bool) async throws {
        let (client, connection) = try await FakeServer().connected()
        async let subscribing = client.subscribe(to: "/queue/q")
        try await connection.confirm("SUBSCRIBE")
        let messages = try await subscribing
        connection.client.changeFaults { $0.capacity = 10 }
        try await client.send("x", to: "/queue/a")
        let leaving = byServer ? nil : Task { await client.disconnect() }
        if byServer { connection.send("ERROR\nmessage:bye\n\n\0") }
        #expect(await eventually { !client.state.isConnected })
        try await messages.unsubscribe()
        connection.close()
        await leaving?.value
        await client.disconnect()
    }

    @Test func `calls that unsubscribe meanwhile wait for the same receipt`() async throws {
        let server = FakeServer()
        let (client, connection, messages) = try await durable(server)
        let cancelled = Task { try await messages.unsubscribe() }
        let receipt = try await connection.expect("UNSUBSCRIBE")
        cancelled.cancel()
        await expectError(.cancelled) { try await cancelled.value }
        let isDone = Atomic(false)
        let second = Task {
            try await messages.unsubscribe()
            isDone.store(true, ordering: .relaxed)
        }
        try await Task.sleep(for: .milliseconds(20))
        let wasDone = isDone.load(ordering: .relaxed)
        #expect(!wasDone)
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        try await second.value
        connection.close()
        await client.disconnect()
        try await messages.unsubscribe()
    }

    @Test func `a durable subscription that the broker refuses to make again remains there`() async throws {
        let server = FakeServer()
        let (client, first, messages) = try await durable(server)
        first.close()
        let second = try await server.accept(1, server: "RabbitMQ/3.10.8")
        let receipt = try await second.expect("SUBSCRIBE")
        second.send("ERROR\nreceipt-id:\(receipt)\nmessage:access refused\n\n\0")
        second.close()
        await expectError(.refused) { for try await _ in messages {} }
        _ = try await server.connection(2)
        await expectError(.notConnected, containing: "remains at the broker") { try await messages.unsubscribe() }
        try await server.accept(2, server: "RabbitMQ/3.10.8")
        #expect(await eventually { client.state.isConnected })
        await expectError(.invalidRequest, containing: "remains at the broker") { try await messages.unsubscribe() }
        await client.disconnect()
    }

    @Test func whatABrokerCannotDoIsToldBeforeItIsAsked() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, server: "RabbitMQ/3.10.8")
        try await connecting
        await expectError(.unsupportedByBroker) {
            _ = try await client.subscribe(to: "/topic/t", options: STOMPSubscribeOptions(selector: "a = 1"))
        }
        await expectError(.unsupportedByBroker) {
            _ = try await client.subscribe(to: "/topic/t", options: STOMPSubscribeOptions(prefetch: 1))
        }
        await expectError(.invalidRequest) {
            _ = try await client.subscribe(
                to: "/t", acknowledgement: .client, options: STOMPSubscribeOptions(prefetch: 0))
        }
        try await client.send("first frame", to: "/queue/q")
        #expect(try await connection.expect("SEND", "destination") == "/queue/q")
        connection.close()
        await client.disconnect()
    }
}
