import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// A server's end of a memory pair that is read and written by a test.
final class PacketReader: Sendable {
    let stream: MemoryStream
    private let version: MQTTVersion
    private let decoder: Mutex<MQTTDecoder>

    init(_ stream: MemoryStream, version: MQTTVersion) {
        self.stream = stream
        self.version = version
        decoder = Mutex(MQTTDecoder(version: version))
    }

    /// The packets that have arrived since the last time.
    func read() -> [MQTTPacket] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var packets: [MQTTPacket] = []
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            decoder.withLock { decoder in
                decoder.push(Array(buffer[..<count]))
                while let packet = try? decoder.next() { packets.append(packet) }
            }
        }
        return packets
    }

    func write(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { stream.write(from: $0) }
    }

    /// Connects a client, whose CONNECT is accepted without a session.
    func accept(_ client: MQTTClient) async throws {
        async let connected: Void = client.connect()
        #expect(await eventually { self.read().contains { $0.type == .connect } })
        write(version.hasProperties ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0])
        try await connected
    }
}
