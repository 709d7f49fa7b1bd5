import ClientTestSupport
import LoopbackBroker
import STOMP
import STOMPCore
import TestSupport
import Testing
import Transport

/// Whether a client with changed limits takes a MESSAGE with a header of 200 bytes, ten further headers, and a body.
private func takesMessage(_ change: (inout STOMPLimits) -> Void) async throws -> Bool {
    let server = FakeServer()
    let client = server.client { change(&$0.limits) }
    async let connecting: Void = client.connect()
    let connection = try await server.accept(0)
    try await connecting
    async let subscribing = client.subscribe(to: "/queue/a")
    let lines = try await connection.frame().split(separator: "\n")
    func value(_ name: String) -> Substring {
        lines.first { $0.hasPrefix(name + ":") }?.dropFirst(name.utf8.count + 1) ?? ""
    }
    connection.send("RECEIPT\nreceipt-id:\(value("receipt"))\n\n\0")
    _ = try await subscribing
    let further = (0..<10).map { "h\($0):\($0)\n" }.joined()
    let long = String(repeating: "x", count: 200)
    connection.send(
        "MESSAGE\nsubscription:\(value("id"))\nmessage-id:1\ndestination:/queue/a\nlong:\(long)\n\(further)\n\(long)\0")
    #expect(await eventually { client.counters.messagesReceived == 1 || connection.isEnded() })
    let isTaken = client.counters.messagesReceived == 1
    connection.close()
    await client.disconnect()
    return isTaken
}

extension OptionTableTests {
    @Test(arguments: [Duration.seconds(-1), .zero])
    func `a timeout that is not positive is an error that names it`(time: Duration) async throws {
        let changes: [(String, (inout STOMPConfiguration, Duration) -> Void)] = [
            ("connectTimeout", { $0.connectTimeout = $1 }),
            ("requestTimeout", { $0.requestTimeout = $1 }),
            ("acknowledgementTimeout", { $0.acknowledgementTimeout = $1 }),
        ]
        for (name, change) in changes {
            var configuration = STOMPConfiguration()
            configuration.reconnect = .never
            change(&configuration, time)
            // No server is needed to find it.
            let client = STOMPClient("stomp://127.0.0.1:1", configuration: configuration)
            let error = await #expect(throws: STOMPError.self) { try await client.connect() }
            #expect(error?.code == .invalidRequest && error?.message.contains("\(name) is \(time)") == true)
        }
    }

    /// Options of what is awaited and held.
    static let boundRows: [OptionRow] = [
        OptionRow("messageHook", shownBy: MessageHookTests.`every way to send passes the hook once, with its outcome`),
        OptionRow("limits") {
            try await verify(takesMessage { _ in })
            try await verify(
                !takesMessage {
                    $0 = STOMPLimits(
                        maximumLineBytes: 50, maximumHeaders: 5, maximumHeaderBytes: 50, maximumBodyBytes: 5)
                })
        },
        OptionRow("limits.maximumLineBytes") { try await verify(!takesMessage { $0.maximumLineBytes = 100 }) },
        OptionRow("limits.maximumHeaders") { try await verify(!takesMessage { $0.maximumHeaders = 8 }) },
        OptionRow("limits.maximumHeaderBytes") { try await verify(!takesMessage { $0.maximumHeaderBytes = 220 }) },
        OptionRow("limits.maximumBodyBytes") { try await verify(!takesMessage { $0.maximumBodyBytes = 100 }) },
        OptionRow("maximumReceipts") {
            let server = FakeServer()
            let client = server.client { $0.maximumReceipts = 1 }
            async let connecting: Void = client.connect()
            let connection = try await server.accept(0)
            try await connecting
            let first = Task { try await client.sendAndConfirm("1", to: "/queue/a") }
            let receipt = try await connection.expect("SEND")
            await expectError(.queueFull) { try await client.sendAndConfirm("2", to: "/queue/a") }
            connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
            try await first.value
            connection.close()
            await client.disconnect()
        },
        OptionRow("requestTimeout", shownBy: SendTests.receiptThatDoesNotComeTimesOut),
        OptionRow("acknowledgementTimeout") {
            let clock = try ManualClock()
            let broker = try await LoopbackBroker.judged(clock: clock)
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var configuration = STOMPConfiguration()
            configuration.acknowledgementTimeout = .seconds(50)
            let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
            try await client.connect()
            let arrivals = broker.arrivals()
            let sending = Task { try await client.sendAndConfirm("x", to: "/queue/a") }
            _ = await arrivals.first { $0.packet == .stomp(.send) }
            await clock.advance(by: .seconds(49))
            #expect(client.state.isConnected)
            await clock.advance(by: .seconds(1))
            #expect(!client.state.isConnected)
            _ = await sending.result
            await client.disconnect()
            await broker.stop()
        },
        OptionRow("profile") {
            let server = FakeServer()
            let client = server.client { $0.profile = .artemis }
            var events = client.events.makeAsyncIterator()
            async let connecting: Void = client.connect()
            let connection = try await server.accept(0)
            try await connecting
            while let event = await events.next() {
                guard case .connected(let connected) = event else { continue }
                #expect(connected.profile == .artemis)
                break
            }
            connection.close()
            await client.disconnect()
        },
        OptionRow("maximumOutboxBytes", shownBy: SendTests.outboxThatIsFullSuspendsTheSender),
        OptionRow(
            "maximumUnreadBytes",
            shownBy: SubscriptionTests
                .`reading pauses when all subscriptions together have too much unread, and nothing is lost`),
    ]
}
