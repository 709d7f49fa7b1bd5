import MQTTCore
import MessagingJudge
import MessagingWire
import STOMPCore

/// The packets of MQTT and frames of STOMP in one direction of a connection, one line each.
///
/// Bytes of a WebSocket are taken out of its frames; what is neither protocol is shown as it is.
struct TracedPackets {
    private enum Format {
        case unknown, mqtt, stomp, raw
    }

    private let isUp: Bool
    private var format = Format.unknown
    private var isWebSocket = false
    /// Whether the handshake of the WebSocket is over, so that frames follow.
    private var isUpgraded = false
    /// Of the handshake or of a frame that is not complete.
    private var frames: [UInt8] = []
    private var mqtt: MQTTDecoder
    private var stomp = STOMPDecoder(version: .v11)

    init(isUp: Bool) {
        self.isUp = isUp
        mqtt = MQTTDecoder(version: .v3_1_1, maximumPacketSize: MQTTPacket.largestSize, from: isUp ? .client : .server)
    }

    /// CONNECT of the other direction says which version follows.
    mutating func use(_ version: MQTTVersion) {
        guard !isUp else { return }
        mqtt = MQTTDecoder(version: version, maximumPacketSize: MQTTPacket.largestSize, from: .server)
    }

    /// Takes the next bytes.
    ///
    /// - Parameter version: called with that of a CONNECT.
    /// - Returns: a line for each packet that these bytes complete.
    mutating func add(_ bytes: [UInt8], version: (MQTTVersion) -> Void) -> [String] {
        var bytes = bytes
        if format == .unknown, !isWebSocket, let first = bytes.first {
            // GET and HTTP begin the handshake of a WebSocket.
            isWebSocket = first == UInt8(ascii: "G") || first == UInt8(ascii: "H")
            if !isWebSocket { format = Self.format(of: first) }
        }
        if isWebSocket {
            bytes = unframed(bytes)
            if format == .unknown, let first = bytes.first { format = Self.format(of: first) }
        }
        var lines: [String] = []
        do throws(any Error) {
            switch format {
            case .unknown: break
            case .raw: return [Self.shown(bytes)]
            case .mqtt:
                mqtt.push(bytes)
                while let packet = try mqtt.next() {
                    if case .connect(let connect) = packet { version(connect.version) }
                    lines.append(MQTTPacketLine.text(packet))
                }
            case .stomp:
                stomp.push(bytes)
                while let frame = try stomp.next() { lines.append(Self.text(of: frame)) }
            }
        } catch {
            format = .raw
            return lines + ["\(Self.shown(bytes)), which cannot be decoded: \(error)"]
        }
        return lines
    }

    /// Frames of STOMP begin with a capital letter, and no first packet of MQTT does.
    private static func format(of first: UInt8) -> Format { first >= 0x41 && first <= 0x5A ? .stomp : .mqtt }

    /// What frames of a WebSocket hold that are complete.
    private mutating func unframed(_ bytes: [UInt8]) -> [UInt8] {
        frames += bytes
        if !isUpgraded {
            let end = Array("\r\n\r\n".utf8)
            guard let last = frames.indices.first(where: { frames[$0...].starts(with: end) }) else { return [] }
            frames.removeFirst(last + end.count)
            isUpgraded = true
        }
        var whole: [UInt8] = []
        while frames.count >= 2 {
            var (start, count) = (2, Int(frames[1] & 0x7F))
            if count == 126 {
                guard frames.count >= 4 else { break }
                (start, count) = (4, Int(frames[2]) << 8 | Int(frames[3]))
            }
            let isMasked = frames[1] & 0x80 != 0
            let payload = start + (isMasked ? 4 : 0)
            // Longer ones are not written in worlds.
            guard count < 127 << 9, frames.count >= payload + count else { break }
            // Data, not ping, pong or close.
            if frames[0] & 0x0F <= 2 {
                for index in 0..<count {
                    let mask = isMasked ? frames[start + index % 4] : 0
                    whole.append(frames[payload + index] ^ mask)
                }
            }
            frames.removeFirst(payload + count)
        }
        return whole
    }

    private static func text(of frame: STOMPFrame) -> String {
        let headers = frame.headers.fields.prefix(8).map { field in
            "\(field.name):\(field.isSecret ? "•••" : OneLine.text(field.value, limit: 60))"
        }
        let body = frame.body.isEmpty ? "" : " " + OneLine.payload(frame.body[...])
        return "\(frame.command) \(headers.joined(separator: " "))\(body)"
    }

    static func shown(_ bytes: [UInt8]) -> String {
        let shown = bytes.prefix(48).map { byte -> String in
            switch byte {
            case 0x20...0x7E: return String(UnicodeScalar(byte))
            default: return "\\" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return "\(bytes.count) bytes: \(shown.joined())\(bytes.count > 48 ? "…" : "")"
    }
}
