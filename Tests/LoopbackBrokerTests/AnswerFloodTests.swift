import ClientTestSupport
import LoopbackBroker
import MessagingJudge
import TestSupport
import Testing
import Transport

/// Clients that send what has to be answered and read no answers.
@Suite(.turns) struct AnswerFloodTests {
    private static let limit = 10_000
    private static let capacity = 1000
    private static let bytesPerRead = 4096
    private static let bound = 2 * limit + 2 * bytesPerRead + capacity

    /// Floods a broker with one packet or frame, which it answers with `answer` bytes, and returns how many of them it has
    /// read.
    private func countRead(
        _ kind: Service.Kind, _ hello: [UInt8], _ packet: [UInt8], _ count: Int, answer: Int
    ) async throws -> Int {
        var options = LoopbackBrokerOptions()
        options.limits.maximumOutboxBytes = Self.limit
        options.mqttPort = .none
        options.stompPort = .none
        let broker = try await LoopbackBroker.judged(options, judgesPromises: false, mayBreak: [.pubrelWithoutPubrec])
        let (client, server) = MemoryPair.make()
        client.changeFaults {
            $0.capacity = .max
            $0.bytesPerRead = Self.bytesPerRead
        }
        server.changeFaults { $0.capacity = Self.capacity }
        broker.attach(server, as: Service(kind))
        var bytes = hello
        for _ in 0..<count { bytes += packet }
        #expect(bytes.withUnsafeBytes { client.write(from: $0) } == .bytes(bytes.count))
        // The broker has to read until its outbox is full, and goes no further in as many turns of its loop as it would
        // need to read everything.
        #expect(
            await eventually {
                (client.progress.acknowledged - hello.count) / packet.count * answer > Self.limit
            })
        try await turn(broker, bytes.count / Self.bytesPerRead + 1)
        let read = client.progress.acknowledged
        #expect(read < bytes.count)
        await broker.stop()
        return (read - hello.count) / packet.count
    }

    /// Lets a broker's loop turn at least so many times: it reads as often from another client.
    private func turn(_ broker: LoopbackBroker, _ count: Int) async throws {
        let (client, server) = MemoryPair.make()
        client.changeFaults { $0.capacity = .max }
        server.changeFaults { $0.capacity = .max }
        broker.attach(server, as: Service(.mqtt))
        var written = 0
        for packet in [MQTTBytes.connect("turn")] + Array(repeating: [0xC0, 0], count: count) {
            written += packet.count
            #expect(packet.withUnsafeBytes { client.write(from: $0) } == .bytes(packet.count))
            #expect(await eventually { client.progress.acknowledged == written })
        }
    }

    /// PINGREQ is answered by PINGRESP, and PUBREL of a message that does not exist by PUBCOMP.
    @Test(arguments: [[0xC0, 0], [0x62, 2, 0, 9]] as [[UInt8]])
    func `answers to an MQTT client that does not read are bounded by the outbox`(packet: [UInt8]) async throws {
        let read = try await countRead(.mqtt, MQTTBytes.connect("flood"), packet, 200_000, answer: packet.count)
        // Each answer is as long as what it answers.
        #expect(read * packet.count < Self.bound)
        #expect(read * packet.count > Self.limit)
    }

    @Test func `receipts for a STOMP client that does not read are bounded by the outbox`() async throws {
        let hello = Array("CONNECT\naccept-version:1.2\nhost:x\n\n\0".utf8)
        let frame = Array("SEND\ndestination:/topic/x\nreceipt:r\n\n\0".utf8)
        let receipt = "RECEIPT\nreceipt-id:r\n\n\0".utf8.count
        let read = try await countRead(.stomp, hello, frame, 20_000, answer: receipt)
        #expect(read * receipt < Self.bound)
        #expect(read * receipt > Self.limit)
    }

    @Test func `messages that a client takes slowly do not keep the broker from reading what it sends`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumOutboxBytes = Self.limit
        options.mqttPort = .none
        options.stompPort = .none
        let broker = try await LoopbackBroker.judged(options)
        let (client, server) = MemoryPair.make()
        client.changeFaults { $0.capacity = .max }
        server.changeFaults { $0.capacity = Self.capacity }
        broker.attach(server, as: Service(.mqtt))
        let message = [0x30, 0xB3, 0xEA, 0x01, 0, 1, UInt8(ascii: "t")] + [UInt8](repeating: 7, count: 30_000)
        let bytes =
            MQTTBytes.connect("slow") + [0x82, 6, 0, 1, 0, 1, UInt8(ascii: "t"), 0] + message + message + message
        #expect(bytes.withUnsafeBytes { client.write(from: $0) } == .bytes(bytes.count))
        // The answers and the first message. Then the second is being written, and the third is alone in the outbox.
        var left = 4 + 5 + message.count
        let isRead = await eventually {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while left > 0,
                case .bytes(let count) = buffer.withUnsafeMutableBytes({
                    client.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<min(left, $0.count)]))
                })
            {
                left -= count
            }
            return left == 0
        }
        #expect(isRead)
        try await turn(broker, 3)
        #expect(([0xC0, 0] as [UInt8]).withUnsafeBytes { client.write(from: $0) } == .bytes(2))
        #expect(await eventually { client.progress.acknowledged == client.progress.written })
        await broker.stop()
    }
}
