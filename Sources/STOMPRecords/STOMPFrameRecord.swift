public import MessagingFrames
import MessagingWire
public import STOMPCore
import Transport

/// A frame that was sent or received, for display; see ``STOMPClient/inspect(showingSecrets:)``.
public struct STOMPFrameRecord: Sendable {
    /// Whether the client sent or received the frame.
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The frame, with the first 256 bytes of long headers and bodies, and with secrets masked unless the caller asked for
    /// them; nil for a heart-beat.
    public let frame: STOMPFrame?
    /// The size of the frame's body in bytes.
    public let bodyCount: Int
    /// The size of the whole frame in bytes, with the line ends before it.
    public let size: Int

    let version: STOMPVersion

    package init(_ frame: STOMPFrame?, of raw: RawFrame, version: STOMPVersion, showsSecrets: Bool) {
        direction = raw.moment.direction
        time = raw.moment.time
        size = raw.size
        self.version = version
        // The NUL behind the body is the last byte of a frame.
        bodyCount = frame.map { $0.body.count + max(0, raw.missingCount - 1) } ?? 0
        self.frame = frame.map { Self.trimmed($0, showsSecrets: showsSecrets) }
    }

    /// The frame with what a record keeps of it.
    private static func trimmed(_ frame: STOMPFrame, showsSecrets: Bool) -> STOMPFrame {
        var trimmed = frame
        let limit = FrameText.previewLimit
        if frame.body.count > limit { trimmed.body = Array(frame.body.prefix(limit)) }
        for (index, field) in frame.headers.fields.enumerated() {
            if !showsSecrets, field.isSecret {
                trimmed.headers.fields[index].value = FrameText.mask
            } else if field.value.utf8.count > limit {
                trimmed.headers.fields[index].value =
                    String(decoding: field.value.utf8.prefix(limit), as: UTF8.self) + "…"
            }
        }
        return trimmed
    }
}

extension STOMPFrameRecord: CustomStringConvertible {
    /// The frame in one line, without its direction: `SEND destination:/topic/a "on" (2 bytes)`.
    public var description: String {
        guard let frame else { return "heart-beat" }
        var words = [frame.commandName] + frame.headers.map { "\($0.name):\($0.value)" }
        if bodyCount > 0 { words += [FrameText.preview(frame.body, of: bodyCount), "(\(OneLine.bytes(bodyCount)))"] }
        return words.joined(separator: " ")
    }
}

extension STOMPFrameRecord: FrameContent {
    package var protocolName: String { "STOMP \(version)" }
    package var typeName: String { frame?.commandName ?? "heart-beat" }
    package var destination: String? { frame?.headers["destination"] }
    package var payloadCount: Int { bodyCount }
    package var opensConnection: Bool { frame?.command == .connect || frame?.command == .stomp }
    package var endsConnection: Bool { frame?.command == .disconnect || frame?.command == .error }
    package var carriesMessage: Bool { frame?.command == .send || frame?.command == .message }

    /// A receipt answers the frame that asked for it, ACK and NACK the message with their identifier (STOMP 1.2 "ACK").
    package var exchange: FrameExchange {
        guard let frame else { return FrameExchange() }
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

    package var messageEvent: MessageEvent? {
        switch (frame?.command, direction) {
        case (.send, .sent):
            MessageEvent(
                .sent, time: time, destination: destination, identifier: frame?.headers["receipt"],
                payloadCount: bodyCount)
        case (.receipt, .received):
            MessageEvent(.acknowledged, time: time, identifier: frame?.headers["receipt-id"])
        case (.message, .received):
            MessageEvent(
                .received, time: time, destination: destination, identifier: frame?.headers["message-id"],
                payloadCount: bodyCount)
        default: nil
        }
    }

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
