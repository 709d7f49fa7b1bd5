import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

@Suite("Client: declared subscriptions", .turns)
struct DeclaredSubscriptionTests {
    @Test func `a declared subscription is subscribed by every connection, and its first grant is reported`()
        async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.clientID = "worker"
        let client = try STOMPClient(broker.stompURL, configuration: configuration, clock: clock)
        var events = client.events.makeAsyncIterator()
        let orders = client.subscription(to: "/queue/orders", acknowledgement: .clientIndividual)
        let texts = client.subscription(to: "/queue/texts", as: String.self)
        try await client.connect()
        for number in 0..<2 {
            await broker.send("\(number)", to: "/queue/orders")
            await broker.send("text \(number)", to: "/queue/texts")
            for try await order in orders {
                #expect(order.text == "\(number)")
                try order.acknowledge()
                break
            }
            for try await text in texts {
                #expect(try text.value == "text \(number)")
                break
            }
            await clock.advance(by: .seconds(1))
            await broker.dropConnection(of: "worker")
            await clock.advance(by: .seconds(60))
        }
        var reports: [String] = []
        while reports.count < 4, let event = await events.next() {
            switch event {
            case .subscribed(let destination): reports.append(destination)
            case .resubscribed(let destination): reports.append("again " + destination)
            default: break
            }
        }
        #expect(reports == ["/queue/orders", "/queue/texts", "again /queue/orders", "again /queue/texts"])
        await client.disconnect()
        for try await order in orders { Issue.record("\(order) after the end") }
        await broker.stop()
    }

    @Test func `a declared subscription that RabbitMQ cannot acknowledge apart is not subscribed, and throws`()
        async throws
    {
        let server = FakeServer()
        let client = server.client()
        let first = client.subscription(to: "/queue/a", acknowledgement: .client)
        let second = client.subscription(to: "/queue/b", acknowledgement: .client)
        var events = client.events.makeAsyncIterator()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, server: "RabbitMQ/3.10.8")
        let receipt = try await connection.expect("SUBSCRIBE")
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        try await connecting
        await expectError(.unsupportedByBroker, containing: "clientIndividual") { for try await _ in second {} }
        while let event = await events.next() {
            if case .subscriptionLost("/queue/b", let error) = event {
                #expect(error.code == .unsupportedByBroker)
                break
            }
        }
        await expectError(.unsupportedByBroker, containing: "clientIndividual") {
            _ = try await client.subscribe(to: "/queue/c", acknowledgement: .clientIndividual)
        }
        #expect(client.state.isConnected && first.destination == "/queue/a")
        connection.close()
        await client.disconnect()
    }

    @Test func `a mistake in a declared subscription is thrown by its sequence`() async throws {
        let client = STOMPClient("stomp://127.0.0.1:1")
        let orders = client.subscription(to: "")
        await #expect { for try await _ in orders {} } throws: { ($0 as? STOMPError)?.code == .invalidRequest }
    }
}
