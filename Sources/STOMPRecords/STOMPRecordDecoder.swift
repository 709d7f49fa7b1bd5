package import MessagingFrames
import MessagingWire
package import STOMPCore
import Transport

/// Finds the frames in what a connection exchanges, for its inspector, and decodes them when they are read.
package struct STOMPRecordDecoder: FrameDecoder {
    package let version: STOMPVersion

    package func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent {
        // UInt8 has no padding, so all bytes are initialised.
        switch STOMPFrame.first(in: unsafe frame.bytes.span.bytes, version: version) {
        case .frame(let found):
            STOMPFrameRecord(found, of: frame, version: version, showsSecrets: showsSecrets)
        case .lineEnds: STOMPFrameRecord(nil, of: frame, version: version, showsSecrets: showsSecrets)
        case .invalid: InvalidFrame(frame, "STOMP \(version)")
        }
    }

    /// Adds whole frames with the places of their secrets, or the line ends that are heart-beats.
    package static func cut(_ bytes: RawSpan, version: STOMPVersion, into cuts: inout FrameCuts) {
        let decoder = STOMPRecordDecoder(version: version)
        var boundaries = STOMPFrameBoundaries()
        cuts.begin(at: 0, decoder: decoder)
        var start = 0
        while let command = boundaries.next(in: bytes) {
            let end = boundaries.end
            let opensConnection = command == .connect || command == .stomp
            if opensConnection || !boundaries.secrets.isEmpty {
                let lineEnds = boundaries.start - start
                let secrets = boundaries.secrets.map { $0.lowerBound + lineEnds..<$0.upperBound + lineEnds }
                cuts.add(start..<end, decoder: decoder, opensConnection: opensConnection, hiding: secrets)
                cuts.begin(at: end, decoder: decoder)
            } else {
                cuts.add(endingAt: end)
            }
            start = end
        }
        // Line ends next to frames only separate them.
        if start == 0, boundaries.hasLineEnds { cuts.add(endingAt: bytes.byteCount) }
    }
}
