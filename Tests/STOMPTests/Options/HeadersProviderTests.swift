import STOMP
import Synchronization
import TestSupport
import Testing

@Suite(.turns) struct HeadersProviderTests {
    /// RabbitMQ's streams: the first message that a subscription gets is the one that its SUBSCRIBE asks for.
    @Test func `a stream continues after a reconnect where the application is`() async throws {
        let server = FakeServer()
        let (client, first) = try await server.connected(server: "RabbitMQ/3.13.7")
        let next = Atomic(0)
        var options = STOMPSubscribeOptions(prefetch: 100, headers: ["x-stream-offset": "first"])
        options.headersProvider = {
            // It is called without any lock of the client.
            _ = client.backlog
            let offset = next.load(ordering: .acquiring)
            return offset == 0 ? [:] : ["x-stream-offset": "offset=\(offset)"]
        }
        let messages = client.subscription(
            to: "/amq/queue/log", acknowledgement: .clientIndividual, options: options)
        let lines = try await first.frame().split(separator: "\n")
        #expect(lines.filter { $0.hasPrefix("x-stream-offset:") } == ["x-stream-offset:first"])
        let id = try #require(lines.first { $0.hasPrefix("id:") }).dropFirst(3)
        for offset in 0..<10 {
            first.send(
                "MESSAGE\nsubscription:\(id)\nmessage-id:\(offset)\nack:\(offset)\ndestination:/amq/queue/log\nx-stream-offset:\(offset)\n\nx\0"
            )
        }
        for try await message in messages {
            let offset = try #require(message.headers["x-stream-offset"].flatMap { Int($0) })
            next.store(offset + 1, ordering: .releasing)
            if offset == 9 { break }
        }
        first.close()
        let second = try await server.accept(1, server: "RabbitMQ/3.13.7")
        let again = try await second.frame().split(separator: "\n")
        #expect(again.first == "SUBSCRIBE")
        #expect(again.filter { $0.hasPrefix("x-stream-offset:") } == ["x-stream-offset:offset=10"])
        #expect(again.contains("prefetch-count:100"))
        second.close()
        await client.disconnect()
        withExtendedLifetime(messages) {}
    }

    @Test func `headers that are the client's own end the subscription, and nothing else`() async throws {
        let server = FakeServer()
        let (client, connection) = try await server.connected()
        var options = STOMPSubscribeOptions()
        options.headersProvider = { ["id": "mine"] }
        await expectError(.invalidRequest, containing: "\"id\"") { [options] in
            _ = try await client.subscribe(to: "/queue/a", options: options)
        }
        try await client.send("x", to: "/queue/b")
        #expect(try await connection.expect("SEND", "destination") == "/queue/b")
        connection.close()
        await client.disconnect()
    }

    @Test func `options with the same provider are equal`() {
        var options = STOMPSubscribeOptions()
        options.headersProvider = { [:] }
        let copy = options
        #expect(copy == options)
        #expect(STOMPSubscribeOptions() != options)
        options.headersProvider = nil
        #expect(STOMPSubscribeOptions() == options)
    }
}
