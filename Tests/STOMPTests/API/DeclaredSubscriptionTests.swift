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
        let broker = try await LoopbackBroker.start(clock: clock)
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

    @Test func `a mistake in a declared subscription is thrown by its sequence`() async throws {
        let client = STOMPClient("stomp://127.0.0.1:1")
        let orders = client.subscription(to: "")
        await #expect { for try await _ in orders {} } throws: { ($0 as? STOMPError)?.code == .invalidRequest }
    }
}
