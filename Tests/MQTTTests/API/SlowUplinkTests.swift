import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell

/// Messages of QoS 1 that wait for a slow link, and a server whose packets are there to be read meanwhile.
@Suite("Client: slow uplinks", .turns)
struct SlowUplinkTests {
    /// A connected client, whose link takes so many bytes before the server reads them.
    private func connected(
        capacity: Int, clock: ManualClock? = nil, _ change: (inout MQTTConfiguration) -> Void
    ) async throws -> (client: MQTTClient, wire: MemoryStream, server: PacketReader) {
        let (near, far) = MemoryPair.make()
        near.changeFaults { $0.capacity = capacity }
        let isFirst = Atomic(true)
        var configuration = MQTTConfiguration(clientID: "slow")
        configuration.version = .v3_1_1
        change(&configuration)
        let client = MQTTClient(
            ["mqtt://slow"], configuration: configuration, loop: clock?.loop ?? .shared,
            override: { () throws(TransportError) in
                guard isFirst.exchange(false, ordering: .relaxed) else {
                    throw TransportError(.connectionRefused, "no second connection")
                }
                return OpenedStream(stream: near)
            }, clock: clock)
        let server = PacketReader(far, version: .v3_1_1)
        try await server.accept(client)
        return (client, near, server)
    }

    /// A client with a subscription, six messages of 600 KB in flight, and a server that reads none of them.
    private func saturated() async throws -> (
        client: MQTTClient, clock: ManualClock, server: PacketReader, messages: MQTTSubscription,
        publishing: Task<Void, Never>
    ) {
        let clock = try ManualClock()
        let (client, _, server) = try await connected(capacity: 10_000, clock: clock) {
            $0.keepAlive = .seconds(10)
            $0.pingTimeout = .seconds(5)
            $0.acknowledgementTimeout = nil
        }
        async let subscribing = client.subscribe(to: "a")
        var id: UInt16?
        #expect(
            await eventually {
                for case .subscribe(let packet) in server.read() { id = packet.packetID }
                return id != nil
            })
        let granted = try #require(id)
        server.write([0x90, 3, UInt8(granted >> 8), UInt8(granted & 0xFF), 0])
        let messages = try await subscribing
        let publishing = Task {
            await withTaskGroup { group in
                // The first fills the link; the others wait in the outbox.
                for number in 1...6 {
                    group.addTask {
                        let payload = [UInt8](repeating: 7, count: 600_000)
                        _ = try? await client.publish(payload, to: "t", qos: .atLeastOnce)
                    }
                    let isWritten = await eventually {
                        let backlog = client.backlog
                        return backlog.messagesInFlight == number && (number > 1 || backlog.outboxBytes == 0)
                    }
                    #expect(isWritten, "message \(number)")
                }
            }
        }
        #expect(await eventually { client.backlog.messagesInFlight == 6 })
        await clock.waitUntilQuiet()
        #expect(client.backlog.outboxBytes >= 5 * 600_000)
        return (client, clock, server, messages, publishing)
    }

    @Test func `messages that leave slowly do not keep PINGRESP from being read`() async throws {
        let (client, clock, server, messages, publishing) = try await saturated()
        for _ in 0..<6 {
            server.write([0xD0, 0])
            await clock.advance(by: .seconds(10))
        }
        #expect(client.state.isConnected && client.counters.connections == 1)
        server.stream.close()
        publishing.cancel()
        await client.disconnect()
        await publishing.value
        withExtendedLifetime(messages) {}
    }

    @Test func `messages that leave slowly do not keep others from arriving`() async throws {
        let (client, _, server, messages, publishing) = try await saturated()
        let hasArrived = Atomic(false)
        let reading = Task {
            for try await message in messages {
                #expect(message.topic == "a" && message.bytes == Array("x".utf8))
                hasArrived.store(true, ordering: .relaxed)
            }
        }
        server.write([0x30, 4, 0, 1, UInt8(ascii: "a"), UInt8(ascii: "x")])
        #expect(await eventually { hasArrived.load(ordering: .relaxed) })
        server.stream.close()
        publishing.cancel()
        reading.cancel()
        await client.disconnect()
        await publishing.value
        _ = await reading.result
    }

    /// Nothing is read while too many of them wait.
    @Test(arguments: [0, 10])
    func `answers that leave slowly do not end the connection, whose PUBACK and PINGRESP are not read`(
        keepAlive: Int64
    ) async throws {
        let clock = try ManualClock()
        let (client, near, server) = try await connected(capacity: 500, clock: clock) {
            $0.keepAlive = .seconds(keepAlive)
            $0.pingTimeout = .seconds(5)
            $0.maximumOutboxBytes = 1_000
        }
        let publishing = Task { try await client.publish("x", to: "t", qos: .atLeastOnce) }
        var id: UInt16?
        #expect(
            await eventually {
                for case .publish(let packet) in server.read() { id = packet.packetID }
                return id != nil
            })
        let published = try #require(id)
        await clock.advance(by: .seconds(keepAlive == 0 ? 3 : keepAlive))
        #expect(await eventually { server.read().contains { $0.type == .pingreq } || keepAlive == 0 })
        // PUBREL of messages that do not exist, each of which is answered with four bytes.
        for _ in 0..<300 { server.write([0x62, 2, 0, 9]) }
        // The first answers fill the link, from which the server reads nothing, and the others the outbox.
        #expect(await eventually { near.progress.written - near.progress.acknowledged == 500 })
        for _ in 0..<1_700 { server.write([0x62, 2, 0, 9]) }
        #expect(await eventually { client.backlog.outboxBytes > 2_000 })
        server.write([0x40, 2, UInt8(published >> 8), UInt8(published & 0xFF), 0xD0, 0])
        for _ in 0..<40 {
            var buffer = [UInt8](repeating: 0, count: 8)
            _ = buffer.withUnsafeMutableBytes { server.stream.read(into: $0) }
            await clock.advance(by: .seconds(2))
        }
        #expect(client.state.isConnected && client.counters.connections == 1)
        near.changeFaults { $0.capacity = .max }
        #expect(
            await eventually {
                _ = server.read()
                return client.backlog.messagesInFlight == 0
            })
        #expect(try await publishing.value == .success)
        await client.disconnect()
    }

    @Test func `a server that acknowledges what it has not read does not fill the outbox`() async throws {
        let limit = 10_000
        let (client, near, server) = try await connected(capacity: 500) {
            $0.maximumOutboxBytes = limit
            $0.maximumInFlight = 5
        }
        server.stream.changeFaults { $0.bytesPerRead = 4 }
        let count = 100
        let publishing = Task {
            await withTaskGroup { group in
                for _ in 0..<count {
                    group.addTask {
                        let payload = [UInt8](repeating: 7, count: 1_000)
                        return (try? await client.publish(payload, to: "t", qos: .atLeastOnce)) != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }
        #expect(await eventually { client.backlog.messagesInFlight + client.backlog.queuedMessages == count })
        // Each read has the acknowledgement of one message, in whose place the next one is written. So few messages in flight
        // share the identifiers from 1 to 63.
        for number in 0..<count { server.write([0x40, 2, 0, UInt8(1 + number % 63)]) }
        #expect(await eventually { client.backlog.outboxBytes >= 2 * limit })
        var last = -1
        while last != server.stream.progress.acknowledged {
            last = server.stream.progress.acknowledged
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(client.backlog.outboxBytes < 2 * limit + 5 * 1_100)
        // It continues as soon as the server reads.
        near.changeFaults { $0.capacity = .max }
        #expect(await publishing.value == count)
        await client.disconnect()
    }
}
