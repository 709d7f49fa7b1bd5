import Messaging
import STOMPCore
import Transport
import Wire

extension STOMPFrameRecord {
    /// - Parameter whole: the frame with its secrets.
    package func logged(
        _ whole: STOMPFrame?, _ version: STOMPVersion, topic: String?, instant: Int64, bytes: [UInt8]
    ) -> LoggedFrame {
        LoggedFrame(
            direction, time: time, protocolName: "STOMP \(version)", type: whole?.commandName ?? "heart-beat",
            size: size, destination: frame?.headers["destination"], qos: nil, payloadCount: bodyCount, bytes: bytes,
            opensConnection: whole?.command == .connect || whole?.command == .stomp,
            endsConnection: whole?.command == .disconnect || whole?.command == .error,
            carriesMessage: whole?.command == .send || whole?.command == .message,
            exchange: whole.map(Self.exchange) ?? FrameExchange(), instant: instant, content: self)
    }

    /// A receipt answers the frame that asked for it, ACK and NACK the message with their identifier (STOMP 1.2 "ACK").
    private static func exchange(_ frame: STOMPFrame) -> FrameExchange {
        var exchange = FrameExchange(asks: frame.headers["receipt"].map { "receipt \($0)" })
        switch frame.command {
        case .connect, .stomp: exchange.asks = "CONNECT"
        case .connected: exchange.answers = "CONNECT"
        case .receipt: exchange.answers = frame.headers["receipt-id"].map { "receipt \($0)" }
        case .message: exchange.asks = frame.headers["ack"].map { "message \($0)" }
        case .ack, .nack: exchange.answers = frame.headers["id"].map { "message \($0)" }
        default: break
        }
        return exchange
    }

    package static func invalid(_ frame: RawFrame, _ version: STOMPVersion) -> LoggedFrame {
        frame.invalid("STOMP \(version)")
    }

    package static func masked(
        _ frame: STOMPFrame?, _ bytes: RawSpan, _ range: Range<Int>, limit: Int
    ) -> [UInt8] {
        let hasSecrets = frame?.headers.fields.contains(where: \.isSecret) ?? false
        return FrameBytes.copy(bytes, range, limit: limit, masking: hasSecrets ? { maskHeaders(&$0) } : nil)
    }

    /// Masks the values of secret headers where they stand.
    private static func maskHeaders(_ bytes: inout [UInt8]) {
        let (lineFeed, carriageReturn, colon) = (UInt8(0x0A), UInt8(0x0D), UInt8(ascii: ":"))
        // Line ends before the frame, then the command.
        var start = bytes.firstIndex { $0 != lineFeed && $0 != carriageReturn } ?? bytes.count
        var isCommand = true
        while let feed = bytes[start...].firstIndex(of: lineFeed) {
            let end = feed > start && bytes[feed - 1] == carriageReturn ? feed - 1 : feed
            // The empty line, and behind it the body.
            if end == start { return }
            if !isCommand, let separator = bytes[start..<end].firstIndex(of: colon) {
                let name = String(decoding: bytes[start..<separator], as: UTF8.self)
                if STOMPHeaders.Field(name, "").isSecret {
                    FrameBytes.mask(&bytes, (separator + 1)..<end)
                }
            }
            isCommand = false
            start = feed + 1
        }
    }
}

extension STOMPFrameRecord: FrameContent {
    package var note: String {
        guard let frame else { return "" }
        // The destination is shown beside it.
        var words = frame.headers.filter { $0.name != "destination" }.map { "\($0.name):\($0.value)" }
        if let payloadPreview { words.insert(payloadPreview, at: 0) }
        return words.joined(separator: " ")
    }

    package var payloadPreview: String? {
        guard let frame, bodyCount > 0 else { return nil }
        return FrameText.preview(frame.body, of: bodyCount)
    }

    package var fields: [LoggedFrame.Field] {
        guard let frame else { return [] }
        let headers = frame.headers.map { LoggedFrame.Field($0.name, $0.value) }
        return bodyCount > 0 ? headers + [.init("body", OneLine.bytes(bodyCount))] : headers
    }
}
