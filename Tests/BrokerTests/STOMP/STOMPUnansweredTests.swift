import STOMP
import TestSupport
import Testing

/// Who gets the messages of a worker that left with unanswered ones while its connection stays open; the table in the
/// article about acknowledgements.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPUnansweredTests {
    @Test(arguments: STOMPBroker.usable)
    func `ActiveMQ gives unanswered messages to the next worker at once, RabbitMQ when the connection ends`(
        broker: STOMPBroker
    ) async throws {
        let queue = "/queue/unanswered-left"
        let client = try await broker.connected()
        let other = try await broker.connected()
        var messages: STOMPSubscription? = try await client.subscribe(
            to: queue, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 3))
        for number in 0..<3 { try await other.sendAndConfirm("\(number)", to: queue) }
        let taken = try await messages?.first(3) ?? []
        try taken[0].acknowledge()
        let events = client.events
        messages = nil
        try await withTimeout(.patience, "the report") {
            for await event in events {
                guard case .messagesLeftUnanswered(_, let count) = event else { continue }
                #expect(count == 2)
                break
            }
        }
        await expectError(.invalidRequest) { try taken[1].acknowledge() }
        // Answered after UNSUBSCRIBE was processed.
        try await client.sendAndConfirm("settled", to: "/queue/unanswered-other")
        let next = try await other.subscribe(to: queue, acknowledgement: .clientIndividual)
        if broker == .rabbitMQ {
            // A message that is sent later passes those that are kept.
            try await other.sendAndConfirm("later", to: queue)
            let later = try #require(try await next.first(1).first)
            #expect(later.text == "later")
            try later.acknowledge()
        }
        if broker == .activeMQ { #expect(try await next.texts(2) == ["1", "2"]) }
        #expect(client.state.isConnected)
        await client.disconnect()
        if broker == .rabbitMQ { #expect(try await next.texts(2) == ["1", "2"]) }
        await other.disconnect()
        let cleaner = try await broker.connected()
        _ = try await cleaner.subscribe(to: queue).first(2)
        _ = try await cleaner.subscribe(to: "/queue/unanswered-other").first(1)
        await cleaner.disconnect()
    }
}
