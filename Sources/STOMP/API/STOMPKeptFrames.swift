import Messaging
import STOMPCore
import Transport

/// Cuts what a connection exchanges into frames for logs, and decodes each when its log is read.
enum STOMPKeptFrames {
    /// Whole frames, or the line ends that are heart-beats. Those of a handshake, which may have a passcode, are decoded
    /// and masked at once, as are those that are too large to be kept whole.
    static func split(
        _ bytes: RawSpan, version: STOMPVersion, _ direction: FrameDirection, limit: Int
    ) -> [KeptFrame] {
        var kept = KeptFrames(direction)
        var decoder = STOMPDecoder(version: version, limits: .none)
        decoder.push(bytes)
        var start = 0
        while let command = try? decoder.skip() {
            let end = bytes.byteCount - decoder.bufferedBytes
            if command.isHandshake || end - start > limit {
                let frame = bytes.extracting(start..<end)
                kept.add(
                    STOMPFrameRecord.read(frame, version: version, direction, FrameWishes(logLimit: limit)))
            } else {
                kept.add(start..<end, of: bytes, decoder: Decoder(version: version))
            }
            start = end
        }
        // Line ends beside frames only keep them apart.
        if start == 0, decoder.lineEnds > 0 {
            kept.add(0..<bytes.byteCount, of: bytes, decoder: Decoder(version: version))
        }
        return kept.frames
    }

    private struct Decoder: FrameDecoder {
        let version: STOMPVersion

        func decode(_ frame: KeptFrame.Undecoded) -> LoggedFrame {
            var decoded: LoggedFrame?
            // UInt8 has no padding, so all bytes are initialised.
            let bytes = unsafe frame.bytes.span.bytes
            STOMPFrameRecord.forEachFrame(in: bytes, version: version) { whole, range in
                let record = STOMPFrameRecord(
                    whole, size: range.count, frame.direction, time: frame.time, showsSecrets: false)
                decoded = record.logged(
                    whole, version, instant: frame.instant,
                    bytes: STOMPFrameRecord.masked(whole, bytes, range, limit: range.count))
            }
            return decoded ?? frame.invalid("STOMP \(version)")
        }
    }
}
