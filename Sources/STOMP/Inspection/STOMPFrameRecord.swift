public import Messaging
public import STOMPCore
import Transport

/// A frame that went over the connection, made for looking at; see ``STOMPClient/inspect(showingSecrets:)``.
public struct STOMPFrameRecord: Sendable {
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// Nil for a heart-beat. Of long headers and bodies only the first 256 bytes, and secrets masked unless they were
    /// asked for.
    public let frame: STOMPFrame?
    /// The size of the frame's body in bytes.
    public let bodyCount: Int

    init(_ frame: STOMPFrame?, _ direction: FrameDirection, showsSecrets: Bool) {
        self.direction = direction
        time = WallClock.milliseconds
        bodyCount = frame?.body.count ?? 0
        self.frame = frame?.trimmed(showsSecrets: showsSecrets)
    }

    /// Reads whole frames, or the line ends that are heart-beats.
    static func records(
        _ bytes: RawSpan, version: STOMPVersion, _ direction: FrameDirection, showsSecrets: Bool
    ) -> [STOMPFrameRecord] {
        let most = Int.max
        let limits = STOMPLimits(lineLength: most, headerCount: most, headerBytes: most, bodyBytes: most)
        var decoder = STOMPDecoder(version: version, limits: limits)
        decoder.push(bytes)
        var records: [STOMPFrameRecord] = []
        // What is no frame ends the connection, which says so itself.
        while let frame = try? decoder.next() {
            records.append(STOMPFrameRecord(frame, direction, showsSecrets: showsSecrets))
        }
        // Line ends beside frames only keep them apart.
        if records.isEmpty, decoder.lineEnds > 0 {
            records.append(STOMPFrameRecord(nil, direction, showsSecrets: showsSecrets))
        }
        return records
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

extension STOMPHeaders.Field {
    /// `passcode` is the specification's; the others are what brokers and proxies take instead.
    fileprivate var isSecret: Bool {
        ["passcode", "password", "authorization", "token"].contains(name.lowercased())
    }
}
