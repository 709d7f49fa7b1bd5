import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite("Client: descriptions", .turns)
struct DescriptionTests {
    @Test func `messages, subscriptions, states and events are one line without secrets`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "s3cret")]
        try await withBroker(options) { broker in
            let client = broker.client { $0.credentials = Credentials(userName: "ann", password: "s3cret") }
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            let messages = try await client.subscribe(to: "/queue/a")
            #expect("\(messages)" == "STOMPSubscription(/queue/a, auto)")
            try await client.send("line\nfeed", to: "/queue/a")
            try await client.send([UInt8](repeating: 0xFE, count: 100), to: "/queue/a")
            let received = try await messages.first(2).map(\.description)
            #expect(received[0].hasPrefix("STOMPMessage(/queue/a, id ") && received[0].contains("line\\"))
            #expect(received[1].hasSuffix("fe fe… (100 bytes))"))
            await client.disconnect()
            var lines: [String] = received
            while let event = await events.next() {
                lines.append("\(event)")
                if case .stateChanged(.disconnected) = event { break }
            }
            #expect(lines.contains("subscribed(destination: /queue/a)"))
            #expect(lines.contains("stateChanged(connected)"))
            for line in lines { #expect(!line.contains("s3cret") && !line.contains("\n"), "\(line)") }
        }
    }

    @Test func `what is sent shows where, and states can be compared`() {
        #expect("\(STOMPOutgoingMessage("text", to: "/queue/a"))" == #"STOMPOutgoingMessage(/queue/a, "text")"#)
        #expect("\(STOMPDestination.text("/queue/a"))" == "STOMPDestination<String>(/queue/a)")
        let error = STOMPError(.refused, "Refused.")
        #expect(STOMPConnectionState.connected == .connected)
        #expect(STOMPConnectionState.disconnected(error) != .disconnected(nil))
        #expect("\(STOMPConnectionState.disconnected(error))" == "disconnected: Refused.")
    }

    @Test func `the kind of a failure of the network is the code of the error`() async throws {
        let closed = try BadServer.start(.closed)
        await expectError(.connectionRefused) {
            try await STOMPClient("stomp://127.0.0.1:\(closed.port)").connect()
        }
        await expectError(.badURL) { try await STOMPClient("stomp//nowhere").connect() }
        _ = closed
    }
}
