public import Messaging
public import STOMPCore
import Transport
import Wire

/// A frame that was sent or received, for display; see ``STOMPClient/inspect(showingSecrets:)``.
public struct STOMPFrameRecord: FrameRecord {
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

    package init(
        _ frame: STOMPFrame?, size: Int, _ direction: FrameDirection, time: Int64 = WallClock.milliseconds,
        showsSecrets: Bool
    ) {
        self.direction = direction
        self.size = size
        self.time = time
        bodyCount = frame?.body.count ?? 0
        self.frame = frame.map { Self.trimmed($0, showsSecrets: showsSecrets) }
    }

    /// What the frame means for a message.
    var messageEvent: MessageEvent? {
        guard let frame else { return nil }
        switch (frame.command, direction) {
        case (.send, .sent):
            return MessageEvent(
                .sent, time: time, destination: frame.headers["destination"], identifier: frame.headers["receipt"],
                payloadCount: bodyCount)
        case (.receipt, .received):
            return MessageEvent(.acknowledged, time: time, identifier: frame.headers["receipt-id"])
        case (.message, .received):
            return MessageEvent(
                .received, time: time, destination: frame.headers["destination"],
                identifier: frame.headers["message-id"], payloadCount: bodyCount)
        default: return nil
        }
    }

    /// Decodes whole frames, with their secrets, and the range of each; nil is a heart-beat.
    package static func forEachFrame(
        in bytes: RawSpan, version: STOMPVersion, _ body: (_ frame: STOMPFrame?, _ range: Range<Int>) -> Void
    ) {
        var decoder = STOMPDecoder(version: version, limits: .unbounded)
        decoder.push(bytes)
        var start = 0
        // Bytes that are not a valid frame end the connection; the engine reports the violation.
        while let frame = try? decoder.next() {
            let end = bytes.byteCount - decoder.bufferedBytes
            body(frame, start..<end)
            start = end
        }
        // Line ends next to frames only separate them.
        if start == 0, decoder.lineEnds > 0 { body(nil, 0..<bytes.byteCount) }
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
