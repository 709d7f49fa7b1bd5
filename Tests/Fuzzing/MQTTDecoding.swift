import MQTTCore

/// The decoder of packets: the same packets for every splitting, and each of them can be encoded again and is read
/// equal then.
enum MQTTDecoding {
    private static let maximumPacketSize = 1 << 15

    private struct Run: Equatable {
        var packets: [MQTTPacket] = []
        var violation: MQTTProtocolError?
        var waiting = 0

        init(_ pieces: [[UInt8]], _ version: MQTTVersion, _ sender: MQTTRole?) {
            var decoder = MQTTDecoder(version: version, maximumPacketSize: maximumPacketSize, from: sender)
            do throws(MQTTProtocolError) {
                for piece in pieces {
                    decoder.push(piece)
                    while let packet = try decoder.next() { packets.append(packet) }
                    require(decoder.bufferedCount <= maximumPacketSize, "the decoder holds more than a packet")
                }
            } catch {
                violation = error
            }
            waiting = decoder.bufferedCount
        }
    }

    static func check(_ input: FuzzInput) {
        var input = input
        var version = input.choice(MQTTVersion.allCases)
        let sender = input.choice([MQTTRole.client, .server, nil])
        let pattern = input.byte()
        let whole = Run([Array(input.bytes)], version, sender)
        let split = Run(input.pieces(pattern), version, sender)
        require(whole == split, "\(whole) became \(split) in pieces of \(pattern)")
        // From a server some packets are accepted that nobody may send.
        let strict = sender == .server ? Run([Array(input.bytes)], version, nil) : whole
        for packet in strict.packets {
            if case .connect(let connect) = packet { version = connect.version }
            var again: [UInt8] = []
            do {
                try packet.encode(into: &again, version: version)
            } catch {
                fatalError("\(packet) was read, but \(error)")
            }
            let second = Run([again], version, sender == .server ? nil : sender)
            require(second.packets == [packet] && second.waiting == 0, "\(packet) became \(second)")
        }
    }
}
