import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite(.turns) struct UnansweredMessagesTests {
    enum Leaving: CaseIterable { case releases, unsubscribes }

    @Test(arguments: Leaving.allCases, [STOMPAckMode.client, .clientIndividual])
    func `the number of messages that a worker leaves unanswered is reported, and another worker gets them`(
        leaving: Leaving, mode: STOMPAckMode
    ) async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let other = try await broker.connected()
            var messages: STOMPSubscription? = try await client.subscribe(to: "/queue/q", acknowledgement: mode)
            for number in 0..<5 { try await other.send("\(number)", to: "/queue/q") }
            #expect(await eventually { client.counters.messagesReceived == 5 })
            #expect(client.backlog.unacknowledgedMessages == 5)
            // Takes two, answers one of them; three wait in the buffer.
            let taken = try await messages?.first(2) ?? []
            try taken[0].acknowledge()
            #expect(client.backlog.unacknowledgedMessages == 4)
            let events = client.events
            if leaving == .unsubscribes { try await messages?.unsubscribe() }
            messages = nil
            try await withTimeout(.patience, "the report") {
                for await event in events {
                    guard case .messagesLeftUnanswered("/queue/q", let count) = event else { continue }
                    #expect(count == 4)
                    break
                }
            }
            // The broker answers after what was sent before.
            try await client.sendAndConfirm("5", to: "/queue/other")
            #expect(try await other.subscribe(to: "/queue/q").texts(4) == ["1", "2", "3", "4"])
            await expectError(.invalidRequest, containing: "ended") { try taken[1].acknowledge() }
            #expect(client.backlog.unacknowledgedMessages == 0)
            #expect(client.state.isConnected, "the late answer was not sent")
            await client.disconnect()
            await other.disconnect()
        }
    }

    @Test func `a subscription that leaves nothing, or acknowledges by itself, is not reported`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var events = client.events.makeAsyncIterator()
            for mode in [STOMPAckMode.auto, .client, .clientIndividual] {
                try await client.send("x", to: "/queue/q")
                let messages = try await client.subscribe(to: "/queue/q", acknowledgement: mode)
                let message = try #require(try await messages.first(1).first)
                if mode != .auto { try message.acknowledge() }
                try await messages.unsubscribe()
            }
            await client.disconnect()
            while let event = await events.next() {
                if case .messagesLeftUnanswered = event { Issue.record("\(event)") }
                if case .stateChanged(.disconnected) = event { break }
            }
        }
    }
}
