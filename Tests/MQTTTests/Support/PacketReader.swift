import MQTTCore
import Synchronization
import Transport

/// A server's end of a memory pair that is read and written by a test.
final class PacketReader: Sendable {
    let stream: MemoryStream
    private let decoder: Mutex<MQTTDecoder>

    init(_ stream: MemoryStream, version: MQTTVersion) {
        self.stream = stream
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
}
