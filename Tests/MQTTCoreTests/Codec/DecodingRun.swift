import MQTTCore
import TestSupport

/// What a decoder makes of some bytes: the packets, and the violation that ended it, if one did.
struct DecodingRun: Equatable {
    var packets: [MQTTPacket] = []
    var violation: MQTTProtocolError?
    /// Bytes that still wait for the rest of their packet; none after a violation.
    var waiting = 0

    /// Feeds the bytes piece by piece, asking for packets after each.
    init(_ pieces: [ArraySlice<UInt8>], version: MQTTVersion, maximumPacketSize: Int) {
        var decoder = MQTTDecoder(version: version, maximumPacketSize: maximumPacketSize)
        do throws(MQTTProtocolError) {
            for piece in pieces {
                decoder.push(Array(piece))
                while let packet = try decoder.next() { packets.append(packet) }
            }
        } catch {
            violation = error
        }
        waiting = decoder.bufferedCount
    }

    init(whole bytes: [UInt8], version: MQTTVersion, maximumPacketSize: Int = 1 << 20) {
        self.init([bytes[...]], version: version, maximumPacketSize: maximumPacketSize)
    }

    init(byteByByte bytes: [UInt8], version: MQTTVersion, maximumPacketSize: Int = 1 << 20) {
        self.init(bytes.indices.map { bytes[$0...$0] }, version: version, maximumPacketSize: maximumPacketSize)
    }

    init(
        split bytes: [UInt8], using random: inout SeededGenerator, version: MQTTVersion,
        maximumPacketSize: Int = 1 << 20
    ) {
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...9, using: &random))
            pieces.append(bytes[start..<end])
            start = end
        }
        self.init(pieces, version: version, maximumPacketSize: maximumPacketSize)
    }
}
