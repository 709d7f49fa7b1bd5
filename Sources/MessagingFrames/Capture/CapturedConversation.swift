/// One connection of a capture file: the frames that were logged of it, as TCP would have carried them.
///
/// Bytes that a client exchanges inside TLS, WebSocket or a Unix socket are written as plain TCP to the protocol's
/// usual port, where dissectors look for them.
struct CapturedConversation {
    private var client: Segment.Endpoint
    private var server: Segment.Endpoint
    // Where the next byte of each side goes.
    private var clientNext: UInt32 = 1_000
    private var serverNext: UInt32 = 5_000
    private var identification: UInt16 = 0
    private var sawGoodbye = false
    private var lastTime: Int64 = 0

    // Addresses that are set aside for documentation (RFC 5737).
    private static let serverAddress: [UInt8] = [192, 0, 2, 1]
    private static let firstClientPort = 49_152

    init(number: Int, protocolName: String) {
        let ports = 65_536 - Self.firstClientPort
        // The next host is used when no ports are left.
        let host = UInt8(2 + number / ports % 250)
        client = Segment.Endpoint(
            address: [192, 0, 2, host], port: UInt16(Self.firstClientPort + number % ports))
        server = Segment.Endpoint(
            address: Self.serverAddress, port: protocolName.hasPrefix("STOMP") ? 61_613 : 1_883)
    }

    /// The three segments that open a connection.
    mutating func open(at time: Int64, in file: inout CaptureFile) {
        lastTime = time
        add(.sent, .synchronize, to: &file)
        add(.received, [.synchronize, .acknowledge], to: &file)
        add(.sent, .acknowledge, to: &file)
    }

    /// The segments of a frame; the first has a comment.
    ///
    /// A frame that was not kept whole becomes a comment on a segment without bytes: dissectors would read the next
    /// frame as the rest of half a frame.
    mutating func add(_ frame: LoggedFrame, remark: String = "", to file: inout CaptureFile) {
        lastTime = frame.time * 1_000
        sawGoodbye = sawGoodbye || frame.endsConnection
        var comment: String? = Self.comment(frame) + remark
        guard frame.isWhole else {
            comment? += "; left out, as only \(frame.bytes.count) of its \(frame.size) bytes were kept"
            return add(frame.direction, .acknowledge, comment: comment, to: &file)
        }
        for start in stride(from: 0, to: frame.bytes.count, by: Segment.largestPayload) {
            let end = min(start + Segment.largestPayload, frame.bytes.count)
            let isLast = end == frame.bytes.count
            add(
                frame.direction, isLast ? [.push, .acknowledge] : .acknowledge, frame.bytes[start..<end],
                comment: comment, to: &file)
            comment = nil
        }
    }

    /// The segments that close a connection whose end was seen.
    mutating func close(in file: inout CaptureFile) {
        guard sawGoodbye else { return }
        add(.sent, [.finish, .acknowledge], to: &file)
        add(.received, [.finish, .acknowledge], to: &file)
        add(.sent, .acknowledge, to: &file)
    }

    private mutating func add(
        _ direction: FrameDirection, _ flags: Segment.Flags, _ payload: ArraySlice<UInt8> = [],
        comment: String? = nil, to file: inout CaptureFile
    ) {
        let isSent = direction == .sent
        let segment = Segment(
            source: isSent ? client : server, target: isSent ? server : client,
            sequence: isSent ? clientNext : serverNext,
            acknowledgement: flags.contains(.acknowledge) ? (isSent ? serverNext : clientNext) : 0, flags: flags,
            identification: identification, payload: payload)
        identification &+= 1
        file.add(segment.packet, time: lastTime, direction: direction, comment: comment)
        // The first and the last segment count as one byte each (RFC 9293, section 3.4).
        let isCounted = flags.contains(.synchronize) || flags.contains(.finish)
        let length = UInt32(truncatingIfNeeded: payload.count) &+ (isCounted ? 1 : 0)
        if isSent { clientNext &+= length } else { serverNext &+= length }
    }

    private static func comment(_ frame: LoggedFrame) -> String {
        var words = [frame.type]
        if let destination = frame.destination { words.append(destination) }
        if let qos = frame.qos { words.append("QoS \(qos)") }
        return words.joined(separator: " ") + (frame.client.isEmpty ? "" : " (\(frame.client))")
    }
}
