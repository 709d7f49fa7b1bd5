import ClientTestSupport
import LoopbackBroker
import MessagingWire
import STOMP
import STOMPCore
import Synchronization
import TestSupport
import Testing
import Transport

@Suite(.turns) struct SendTests {
    @Test func `an outbox without room for a byte takes one message at a time`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.maximumOutboxBytes = 0 }
            let messages = try await client.subscribe(to: "/topic/t")
            try await client.send("a", to: "/topic/t")
            try await client.sendAndConfirm("b", to: "/topic/t")
            try await client.send([STOMPOutgoingMessage("c", to: "/topic/t")])
            var texts: [String?] = []
            for try await message in messages {
                texts.append(message.text)
                if texts.count == 3 { break }
            }
            #expect(texts == ["a", "b", "c"])
            await client.disconnect()
        }
    }

    /// The next event about a server that takes nothing, or takes bytes again.
    private func next(_ events: inout Updates<STOMPEvent>.AsyncIterator) async -> STOMPEvent? {
        while let event = await events.next() {
            switch event {
            case .sendingStalled, .sendingResumed: return event
            default: continue
            }
        }
        return nil
    }

    @Test func `a server that takes nothing while a sender waits for room is reported, and so is the end of that`()
        async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        (configuration.outgoingHeartBeat, configuration.incomingHeartBeat) = (.zero, .zero)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await ClientChecks.standstill(
            of: client, clock: clock, freeze: { await broker.freeze() }, thaw: { await broker.thaw() },
            standstill: { event in
                switch event {
                case .sendingStalled: .began
                case .sendingResumed(let time): .ended(after: time.inNanoseconds)
                default: nil
                }
            }, send: { try await client.send($0, to: "/topic/a") })
        await broker.stop()
    }

    @Test func `a frame that waits for room in the outbox learns that the client reads nothing`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.requestTimeout = .seconds(10)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        let messages = try await client.subscribe(
            to: "/topic/a", buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        for number in 0..<3 {
            try await client.send("\(number)", to: "/topic/a")
            await clock.waitUntilQuiet()
        }
        let error = try await ClientChecks.fullOutbox(broker, clock, requestTimeout: .seconds(10)) {
            try await client.send($0, to: "/topic/b")
        }
        #expect((error as? STOMPError)?.code == .timedOut && "\(error as Any)".contains("the buffer of '/topic/a'"))
        #expect(try await messages.first(3).count == 3)
        await client.disconnect()
        await broker.stop()
    }

    /// There is room for one message at a time, and more are waiting.
    @Test func `room for a part of what waits ends a standstill, and the next one is reported again`() async throws {
        let clock = try ManualClock()
        let (client, connection) = try await FakeServer().connected(clock: clock) {
            ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
            $0.maximumOutboxBytes = 1_000
        }
        connection.client.changeFaults { $0.capacity = 500 }
        var events = client.events.makeAsyncIterator()
        let sending = Task(executorPreference: clock.loop) {
            for _ in 0..<10 { try await client.send([UInt8](repeating: 7, count: 1_000), to: "/queue/a") }
        }
        await clock.advance(by: .seconds(7))
        guard case .sendingStalled = await next(&events) else {
            Issue.record("the standstill was not reported")
            return
        }
        // Longer than a message with its headers, and shorter than two.
        for _ in 0..<3 {
            #expect(connection.read(atMost: 500))
            await clock.waitUntilQuiet()
        }
        guard case .sendingResumed(after: .seconds(7)) = await next(&events) else {
            Issue.record("the end of the standstill was not reported")
            return
        }
        // Some bytes may have moved after the watch began.
        await clock.advance(by: .seconds(11))
        guard case .sendingStalled = await next(&events) else {
            Issue.record("the second standstill was not reported")
            return
        }
        connection.close()
        await #expect(throws: STOMPError.self) { try await sending.value }
        await client.disconnect()
    }

    @Test func eachTaskKeepsItsOrder() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/order")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for number in 0..<100 { try await client.send("\(task) \(number)", to: "/queue/order") }
                    }
                }
                try await group.waitForAll()
            }
            var next = [Int](repeating: 0, count: 8)
            for text in try await messages.texts(800) {
                let parts = text.split(separator: " ").compactMap { Int($0) }
                #expect(parts[1] == next[parts[0]])
                next[parts[0]] += 1
            }
            #expect(next == [Int](repeating: 100, count: 8))
            #expect(client.counters.messagesSent == 800)
            #expect(client.counters.messagesReceived == 800)
            await client.disconnect()
        }
    }

    @Test func manyReceiptsAreAwaitedAtOnce() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<500 {
                    group.addTask { try await client.sendAndConfirm("\(number)", to: "/queue/many") }
                }
                try await group.waitForAll()
            }
            #expect(broker.statistics.messagesIn == 500)
            await client.disconnect()
        }
    }

    @Test func cancellingEndsTheWaitAndNothingElse() async throws {
        try await withBroker { broker in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            let client = try await broker.connected()
            let sending = Task { try await client.sendAndConfirm("sent all the same", to: "/queue/cancelled") }
            #expect(await eventually { broker.statistics.messagesIn == 1 })
            sending.cancel()
            await expectError(.cancelled) { try await sending.value }
            let early = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await client.sendAndConfirm("not even sent", to: "/queue/cancelled")
            }
            await expectError(.cancelled) { try await early.value }
            broker.changeFaults { $0.withholdsAcknowledgements = false }
            #expect(client.state.isConnected)
            try await client.sendAndConfirm("goes on", to: "/queue/cancelled")
            let texts = try await client.subscribe(to: "/queue/cancelled").texts(2)
            #expect(texts == ["sent all the same", "goes on"])
            await client.disconnect()
        }
    }

    @Test func receiptThatDoesNotComeTimesOut() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        broker.changeFaults { $0.withholdsAcknowledgements = true }
        var configuration = STOMPConfiguration()
        configuration.requestTimeout = .seconds(20)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        let arrivals = broker.arrivals()
        let isOver = Atomic(false)
        let sending = Task {
            defer { isOver.store(true, ordering: .releasing) }
            try await client.sendAndConfirm("x", to: "/queue/late")
        }
        _ = await arrivals.first { $0.packet == .stomp(.send) }
        await clock.advance(by: .seconds(19))
        let isEarly = isOver.load(ordering: .acquiring)
        #expect(!isEarly)
        await clock.advance(by: .seconds(1))
        await expectError(.timedOut) { try await sending.value }
        #expect(client.state.isConnected)
        await client.disconnect()
        await broker.stop()
    }

    @Test func outboxThatIsFullSuspendsTheSender() async throws {
        try await withBroker { broker in
            let client = try await broker.connected {
                $0.maximumOutboxBytes = 64 * 1024
                // The frozen broker's silence does not end the connection.
                ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
            }
            await broker.freeze()
            let body = [UInt8](repeating: 7, count: 32 * 1024)
            let sent = Task {
                for _ in 0..<1000 { try await client.send(body, to: "/topic/full") }
            }
            // The system's buffers take some of it, and less than all.
            var before = -1
            while client.counters.messagesSent != before || client.backlog.outboxBytes < 64 * 1024 {
                before = client.counters.messagesSent
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(before < 1000)
            await broker.thaw()
            try await sent.value
            #expect(await eventually { broker.statistics.messagesIn == 1000 })
            await client.disconnect()
        }
    }

    @Test func `a call for a receipt that waits for room ends when it is cancelled`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected {
                $0.maximumOutboxBytes = 64 * 1024
                ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
            }
            await broker.freeze()
            // More than the buffers of the system take at once.
            for _ in 0..<2 {
                try await client.send([UInt8](repeating: 7, count: 16 << 20), to: "/topic/full")
                if client.backlog.outboxBytes >= 64 * 1024 { break }
            }
            let code = Mutex<STOMPError.Code?>(nil)
            let call = Task {
                do throws(STOMPError) {
                    try await client.sendAndConfirm("x", to: "/topic/full")
                } catch {
                    code.withLock { $0 = error.code }
                }
            }
            try await Task.sleep(for: .milliseconds(50))
            call.cancel()
            #expect(await eventually { code.withLock { $0 } == .cancelled })
            await broker.thaw()
            await call.value
            await client.disconnect()
        }
    }

    @Test func manyMessagesGoWithOneCallAndOneWait() async throws {
        try await withBroker { broker in
            let client = try await broker.connected {
                $0.maximumReceipts = 100
                $0.maximumOutboxBytes = 4096
            }
            let messages = try await client.subscribe(to: "/queue/batch")
            let batch = (0..<500).map { STOMPOutgoingMessage("\($0)", to: "/queue/batch") }
            try await client.send(batch)
            #expect(try await messages.texts(500) == (0..<500).map { "\($0)" })
            let results = await client.sendAndConfirm(batch)
            try results.check()
            #expect(results.count == 500)
            #expect(broker.statistics.messagesIn == 1000)
            await client.disconnect()
        }
    }

    @Test func receiptIsAwaitedLaterAndByMany() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        let first = try await client.sendForReceipt(STOMPOutgoingMessage([1], to: "/queue/a"))
        let second = try await client.sendForReceipt(STOMPOutgoingMessage([2], to: "/queue/a"))
        let ids = [try await connection.expect("SEND"), try await connection.expect("SEND")]
        connection.send("RECEIPT\nreceipt-id:\(ids[1])\n\n\0")
        try await second.confirmed()
        try await second.confirmed()
        // A receipt that has arrived counts for a cancelled task, too.
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await second.confirmed()
        }
        try await late.value
        let waits = (0..<3).map { _ in Task { try await first.confirmed() } }
        let cancelled = Task { try await first.confirmed() }
        cancelled.cancel()
        await expectError(.cancelled) { try await cancelled.value }
        connection.send("RECEIPT\nreceipt-id:\(ids[0])\n\n\0")
        for wait in waits { try await wait.value }
        connection.close()
        await client.disconnect()
    }

    private func codes(_ results: STOMPClient.SendResults) -> [STOMPError.Code?] {
        results.map { result in if case .failure(let error) = result { error.code } else { nil } }
    }

    @Test func `if the broker refuses a message of an array, those that it confirmed before succeed`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var batch = (0..<10).map { STOMPOutgoingMessage("\($0)", to: "/queue/batch") }
            batch[4].destination = "/topic/a.*"
            let results = await client.sendAndConfirm(batch)
            let codes = codes(results)
            #expect(codes[..<4] == [nil, nil, nil, nil])
            #expect(codes[4] == .refused)
            // ERROR has ended the connection.
            #expect(codes[5...].allSatisfy { $0 == .connectionLost })
            await expectError(.refused) { try results.check() }
            #expect(await eventually { client.state.isConnected })
            await client.disconnect()
        }
    }

    @Test func `a message of an array that the client refuses does not hold up those after it`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var batch = (0..<5).map { STOMPOutgoingMessage("\($0)", to: "/queue/batch") }
            batch[1].options.priority = 10
            batch[3].destination = ""
            let results = await client.sendAndConfirm(batch)
            #expect(codes(results) == [nil, .invalidRequest, nil, .invalidRequest, nil])
            #expect(broker.statistics.messagesIn == 3)
            await client.disconnect()
            let unsent = await client.sendAndConfirm(batch)
            #expect(codes(unsent) == [.notConnected, .invalidRequest, .notConnected, .notConnected, .notConnected])
        }
    }

    @Test func `a cancelled wait for an array keeps the receipts that have arrived`() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        let sending = Task {
            await client.sendAndConfirm((0..<4).map { STOMPOutgoingMessage("\($0)", to: "/queue/a") })
        }
        var ids: [String] = []
        for _ in 0..<4 { ids.append(try await connection.expect("SEND")) }
        // Out of order, as RabbitMQ confirms; the answer to the fifth frame shows that both have been processed.
        connection.send("RECEIPT\nreceipt-id:\(ids[2])\n\n\0RECEIPT\nreceipt-id:\(ids[0])\n\n\0")
        async let confirming: Void = client.sendAndConfirm("5", to: "/queue/a")
        try await connection.confirm("SEND")
        try await confirming
        sending.cancel()
        #expect(codes(await sending.value) == [nil, .cancelled, nil, .cancelled])
        connection.close()
        await client.disconnect()
    }
}

/// Mistakes that are told before anything is sent.
@Suite(.turns) struct MistakeTests {
    @Test func nothingIsSentOfWhatCannotBe() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let wrong: [(String, STOMPSendOptions)] = [
                ("", STOMPSendOptions()),
                ("/queue/q", STOMPSendOptions(priority: 10)), ("/queue/q", STOMPSendOptions(priority: -1)),
                ("/queue/q", STOMPSendOptions(expiresAfter: .zero)),
                ("/queue/q", STOMPSendOptions(headers: ["destination": "/queue/other"])),
                ("/queue/q", STOMPSendOptions(headers: ["content-length": "3"])),
                ("/queue/q", STOMPSendOptions(headers: ["transaction": "tx"])),
                ("/queue/q", STOMPSendOptions(headers: ["message-id": "1"])),
                ("/queue/q", STOMPSendOptions(headers: ["receipt": "mine"])),
                ("/queue/q", STOMPSendOptions(headers: ["": "no name"])),
            ]
            for (destination, options) in wrong {
                await expectError(.invalidRequest) { try await client.send("x", to: destination, options: options) }
                await expectError(.invalidRequest) {
                    try await client.send([STOMPOutgoingMessage("x", to: destination, options: options)])
                }
            }
            var past = STOMPSendOptions()
            past.expiresAt = 1_000
            await expectError(.invalidRequest) { try await client.send("x", to: "/queue/q", options: past) }
            await expectError(.invalidRequest) { _ = try await client.subscribe(to: "") }
            await expectError(.invalidRequest) {
                _ = try await client.subscribe(to: "/queue/q", options: STOMPSubscribeOptions(headers: ["id": "1"]))
            }
            await expectError(.invalidRequest) {
                _ = try await client.subscribe(to: "/topic/t", options: STOMPSubscribeOptions(durableName: "d"))
            }
            #expect(client.state.isConnected)
            #expect(client.counters.messagesSent == 0)
            try await client.sendAndConfirm("right", to: "/queue/q")
            #expect(broker.statistics.messagesIn == 1)
            await client.disconnect()
        }
    }

    @Test func lineEndsCannotSmuggleHeadersIn() async throws {
        try await withBroker { broker in
            // 1.0 has no escapes, so a line end would begin a header of the sender's choice.
            let old = try await broker.connected { $0.versions = [.v10] }
            await expectError(.invalidRequest) {
                try await old.send("x", to: "/queue/q\nreceipt:injected")
            }
            await expectError(.invalidRequest) {
                try await old.send("x", to: "/queue/q", options: STOMPSendOptions(headers: ["a": "b\n\n\0SEND"]))
            }
            #expect(old.counters.messagesSent == 0)
            await old.disconnect()
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q\nreceipt:injected")
            let value = "b\n\nSEND\ndestination:/queue/other\n\n\0"
            let options = STOMPSendOptions(headers: ["a": value, "n\n:": "v"])
            try await client.sendAndConfirm("x", to: "/queue/q\nreceipt:injected", options: options)
            let message = try #require(try await messages.first(1).first)
            #expect(message.header("a") == value)
            #expect(message.header("n\n:") == "v")
            #expect(broker.statistics.messagesIn == 1)
            await client.disconnect()
        }
    }

    @Test func `connect reports an invalid configuration before it asks for credentials`() async throws {
        let server = FakeServer()
        let provided = Atomic(0)
        await expectError(.invalidRequest) { try await server.client { $0.versions = [] }.connect() }
        await expectError(.invalidRequest) {
            try await server.client { $0.connectHeaders = ["passcode": "x"] }.connect()
        }
        await expectError(.invalidRequest) {
            try await server.client { $0.credentials = Credentials(userName: "a\nb") }.connect()
        }
        await expectError(.invalidRequest) {
            try await server.client { $0.outgoingHeartBeat = .seconds(-1) }.connect()
        }
        let client = server.client { configuration in
            configuration.versions = []
            configuration.credentialsProvider = { _ in
                provided.add(1, ordering: .relaxed)
                return nil
            }
        }
        await expectError(.invalidRequest) { try await client.connect() }
        #expect(provided.load(ordering: .relaxed) == 0)
        #expect(server.count == 0)
        await expectError(.badURL) { try await STOMPClient("stomp//nowhere").connect() }
    }

    @Test func `a client is released although its receipts are kept`() async throws {
        try await withBroker { broker in
            let kept: (received: STOMPReceipt, unanswered: STOMPReceipt)
            do {
                let client = try await broker.connected()
                let message = STOMPOutgoingMessage("x", to: "/topic/t")
                let received = try await client.sendForReceipt(message)
                try await received.confirmed()
                broker.inject(.drop, .sent, .stomp(.receipt))
                kept = (received, try await client.sendForReceipt(message))
            }
            #expect(await eventually { broker.connectionCount == 0 })
            try await kept.received.confirmed()
            await expectError(.connectionLost) { try await kept.unanswered.confirmed() }
        }
    }

    @Test func passcodesAreNotShown() async throws {
        var configuration = STOMPConfiguration()
        configuration.credentials = Credentials(userName: "ann", password: "hush")
        var options = STOMPConnectOptions()
        options.passcode = "hush"
        let headers: STOMPHeaders = ["login": "ann", "passcode": "hush"]
        var texts = ["\(configuration)", "\(options)", "\(headers)", "\(STOMPFrame(.connect, headers: headers))"]
        await #expect { try await STOMPClient("stomp://ann:hush@[::1").connect() } throws: { error in
            texts.append("\(error)")
            return true
        }
        for text in texts { #expect(!text.contains("hush"), "\(text)") }
    }
}
