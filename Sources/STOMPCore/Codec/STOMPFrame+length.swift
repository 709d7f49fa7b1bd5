extension STOMPFrame {
    /// The bytes of the first frame or heart-beat in what somebody has written; all of them where no frame ends.
    package static func lengthOfFirst(in bytes: RawSpan) -> Int {
        var scanner = FrameScanner()
        let limits = STOMPLimits(
            maximumLineBytes: .max, maximumHeaders: .max, maximumHeaderBytes: .max, maximumBodyBytes: .max
        ).clamped
        let beats = scanner.lineEnds(in: bytes, from: 0)
        guard beats.bytes == 0 else { return beats.bytes }
        // Without a version nothing is unescaped, and whoever wrote it kept the limits.
        guard (try? scanner.scan(bytes, from: 0, version: nil, limits: limits)) == true else {
            return bytes.byteCount
        }
        return scanner.frameEnd
    }
}
