public import Messaging
public import STOMPCore
import Transport

/// A frame that went over the connection, made for looking at; see ``STOMPClient/inspect(showingSecrets:)``.
public struct STOMPFrameRecord: Sendable {
    /// Whether the client sent or received the frame.
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// Nil for a heart-beat. Of long headers and bodies only the first 256 bytes, and secrets masked unless they were
    /// asked for.
    public let frame: STOMPFrame?
    /// The size of the frame's body in bytes.
    public let bodyCount: Int
    /// The size of the whole frame in bytes, with the line ends that stand before it.
    public let size: Int

    init(_ frame: STOMPFrame?, size: Int, _ direction: FrameDirection, showsSecrets: Bool) {
        self.direction = direction
        self.size = size
        time = WallClock.milliseconds
        bodyCount = frame?.body.count ?? 0
        self.frame = frame?.trimmed(showsSecrets: showsSecrets)
    }

    /// Reads whole frames, with their secrets, and where they stand; nil stands for a heart-beat.
    static func forEachFrame(
        in bytes: RawSpan, version: STOMPVersion, _ body: (_ frame: STOMPFrame?, _ range: Range<Int>) -> Void
    ) {
        let most = Int.max
        let limits = STOMPLimits(
            maximumLineBytes: most, maximumHeaders: most, maximumHeaderBytes: most, maximumBodyBytes: most)
        var decoder = STOMPDecoder(version: version, limits: limits)
        decoder.push(bytes)
        var start = 0
        // Bytes that are not a valid frame end the connection; the engine reports the violation.
        while let frame = try? decoder.next() {
            let end = bytes.byteCount - decoder.bufferedBytes
            body(frame, start..<end)
            start = end
        }
        // Line ends beside frames only keep them apart.
        if start == 0, decoder.lineEnds > 0 { body(nil, 0..<bytes.byteCount) }
    }
}

extension STOMPFrame {
    fileprivate func trimmed(showsSecrets: Bool) -> STOMPFrame {
        var trimmed = self
        let limit = FrameText.previewLimit
        if body.count > limit { trimmed.body = Array(body.prefix(limit)) }
        for (index, field) in headers.fields.enumerated() {
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
