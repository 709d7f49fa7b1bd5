import STOMP
import TestSupport
import Testing

/// The STOMP client against real brokers.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPClientTests {
    @Test(arguments: STOMPBroker.usable, [STOMPVersion.v10, .v11, .v12])
    func `delivers what it sends, in order`(broker: STOMPBroker, version: STOMPVersion) async throws {
        let client = try await broker.client { $0.versions = [version] }
        try await client.connect()
        let queue = "/queue/order-\(version)"
        let messages = try await client.subscribe(to: queue)
        for number in 0..<100 { try await client.send("message \(number)", to: queue) }
        let received = try await messages.first(100).map { $0.text }
        #expect(received == (0..<100).map { "message \($0)" })
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func `keeps every byte of names, values and bodies`(broker: STOMPBroker) async throws {
        let client = try await broker.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/bytes")
        let value = " a:b\\c\nd\r é 🛰 "
        let body = [UInt8](0...255) + [0, 0, 10, 13]
        try await client.sendAndConfirm(
            body, to: "/queue/bytes",
            options: STOMPSendOptions(contentType: "application/octet-stream", headers: ["x:y \\z": value]))
        let message = try #require(try await messages.first(1).first)
        #expect(message.bytes == body)
        #expect(message.header("x:y \\z") == value)
        #expect(message.contentType == "application/octet-stream")
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func `confirms a thousand messages at once`(broker: STOMPBroker) async throws {
        let client = try await broker.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/confirmed")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<1000 {
                group.addTask { try await client.sendAndConfirm("\(number)", to: "/queue/confirmed") }
            }
            try await group.waitForAll()
        }
        let received = Set(try await messages.first(1000).compactMap { $0.text })
        #expect(received.count == 1000)
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func `hands messages out again that were not acknowledged`(broker: STOMPBroker) async throws {
        let sender = try await broker.client()
        try await sender.connect()
        for number in 0..<3 { try await sender.sendAndConfirm("\(number)", to: "/queue/acknowledged") }
        let first = try await broker.client()
        try await first.connect()
        let subscription = try await first.subscribe(to: "/queue/acknowledged", acknowledgement: .clientIndividual)
        let messages = try await subscription.first(3)
        try messages[1].acknowledge()
        await first.disconnect()
        let second = try await broker.client()
        try await second.connect()
        let rest = try await second.subscribe(to: "/queue/acknowledged").first(2)
        #expect(Set(rest.compactMap { $0.text }) == ["0", "2"])
        await second.disconnect()
        await sender.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func `transactions count all together or not at all`(broker: STOMPBroker) async throws {
        let client = try await broker.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/transactions")
        struct Changed: Error {}
        await #expect(throws: Changed.self) {
            try await client.withTransaction { transaction in
                try await client.send("aborted", to: "/queue/transactions", in: transaction)
                throw Changed()
            }
        }
        try await client.withTransaction { transaction in
            for number in 0..<3 { try await client.send("\(number)", to: "/queue/transactions", in: transaction) }
        }
        let received = try await messages.first(3).compactMap { $0.text }
        #expect(received == ["0", "1", "2"])
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func `tells the broker's own words when it refuses, and connects again`() async throws {
        let client = try await STOMPBroker.rabbitMQ.client()
        try await client.connect()
        await #expect {
            try await client.subscribe(to: "/nonsense/x/y")
        } throws: { error in
            guard let error = error as? STOMPError else { return false }
            return error.code == .refused && error.serverError != nil
        }
        #expect(await eventually { client.state.isConnected })
        try await client.sendAndConfirm("still here", to: "/queue/after-refusal")
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func `says that the passcode is wrong, and does not try again`() async throws {
        let client = try await STOMPBroker.rabbitMQ.client {
            $0.credentials = Credentials(userName: "guest", password: "wrong")
            $0.reconnect.firstConnectAttempts = nil
        }
        await #expect { try await client.connect() } throws: { ($0 as? STOMPError)?.code == .badCredentials }
    }
}
