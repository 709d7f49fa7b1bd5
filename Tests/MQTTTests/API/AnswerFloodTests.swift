import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT
@testable import MessagingShell

/// Servers that send what has to be answered, and make the answers wait.
@Suite("Client: floods of packets that are answered", .turns)
struct AnswerFloodTests {
    private static let bytesPerRead = 4096

    private func connect(
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> (client: MQTTClient, near: MemoryStream, server: PacketReader) {
        let (near, far) = MemoryPair.make()
        far.changeFaults {
            $0.capacity = .max
            $0.bytesPerRead = Self.bytesPerRead
        }
        var configuration = MQTTConfiguration(clientID: "flooded")
        configuration.version = .v3_1_1
        change(&configuration)
        let client = MQTTClient(["mqtt://flood"], configuration: configuration, loop: .shared) {
            () throws(TransportError) in OpenedStream(stream: near)
        }
        let server = PacketReader(far, version: .v3_1_1)
        try await server.accept(client)
        return (client, near, server)
    }

    private func flood(_ packet: [UInt8], _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(packet.count * count)
        for _ in 0..<count { bytes += packet }
        return bytes
    }

    @Test func `reading pauses while answers wait for a session store that does not answer`() async throws {
        let store = GatedStore()
        let (client, near, server) = try await connect {
            $0.sessionStore = store
            $0.requestTimeout = .seconds(1)
        }
        near.changeFaults { $0.capacity = .max }
        server.write([0x34, 5, 0, 1, UInt8(ascii: "t"), 0, 1])
        #expect(await eventually { server.read().contains { $0.type == .pubrec } })
        store.appends.store(false, ordering: .releasing)
        // The first answer waits for the store, and the others for the first.
        server.write([0x62, 2, 0, 1])
        let count = 100_000
        let before = server.stream.progress.written
        server.write(flood([0x62, 2, 0, 2], count))
        #expect(await eventually { client.core.link.perform { $0.wantsReadingPaused } })
        let most = MQTTEngine.maximumHeldPackets * 4 + 2 * Self.bytesPerRead
        try await server.stream.settle()
        #expect(server.stream.progress.acknowledged - before < most)
        #expect(most < count * 4)
        // SUBSCRIBE would wait for the store.
        let error = await #expect(throws: MQTTError.self) { _ = try await client.unsubscribe(from: "unread") }
        #expect(error?.code == .timedOut && error?.message.contains("session store") == true, "\(error as Any)")
        // Every one of them is answered when the store does.
        store.appends.store(true, ordering: .releasing)
        var answers = 0
        #expect(
            await eventually {
                answers += server.read().count { $0.type == .pubcomp }
                return answers >= count + 1
            })
        #expect(answers == count + 1)
        await client.disconnect()
    }

    /// PUBREL and PUBREC of messages that do not exist.
    @Test(arguments: [[0x62, 2, 0, 9], [0x50, 2, 0, 9]] as [[UInt8]])
    func `answers to a server that does not read are bounded by the outbox`(packet: [UInt8]) async throws {
        let limit = 10_000
        let (client, near, server) = try await connect { $0.maximumOutboxBytes = limit }
        near.changeFaults { $0.capacity = 1000 }
        let count = 200_000
        server.write(flood(packet, count))
        try await server.stream.settle()
        let bound = 2 * limit + 2 * Self.bytesPerRead
        #expect(client.core.link.perform { $0.output.count } < bound)
        #expect(server.stream.progress.acknowledged < bound + 10_000)
        #expect(bound + 10_000 < count * packet.count)
        // It continues as soon as the server reads.
        near.changeFaults { $0.capacity = .max }
        var answers = 0
        #expect(
            await eventually {
                answers += server.read().count
                return answers >= count
            })
        await client.disconnect()
    }
}
