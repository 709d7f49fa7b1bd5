import Messaging
import STOMPCore
import Transport

/// Finds the frames in what a connection exchanges for logs, and decodes each when its log is read.
enum STOMPKeptFrames {
    /// Adds whole frames, or the line ends that are heart-beats. Frames of a handshake, which may have a passcode, are
    /// decoded and masked at once, and so are frames that are too large to be kept whole.
    static func split(
        _ bytes: RawSpan, version: STOMPVersion, _ direction: FrameDirection, _ limits: FrameLimits,
        into cuts: inout FrameCuts
    ) {
        var boundaries = STOMPFrameBoundaries()
        cuts.begin(at: 0, decoder: RecordDecoder(STOMPFrameRecord.self, version: version))
        var start = 0
        while let command = boundaries.next(in: bytes) {
            let end = boundaries.end
            if command.isHandshake || end - start > limits.whole {
                let wishes = FrameWishes(logLimit: limits.kept)
                cuts.add(STOMPFrameRecord.read(bytes.extracting(start..<end), version: version, direction, wishes))
                cuts.begin(at: end, decoder: RecordDecoder(STOMPFrameRecord.self, version: version))
            } else {
                cuts.add(endingAt: end)
            }
            start = end
        }
        // Line ends next to frames only separate them.
        if start == 0, boundaries.hasLineEnds { cuts.add(endingAt: bytes.byteCount) }
    }
}
