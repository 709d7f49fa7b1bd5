import Wire

extension STOMPEngine {
    /// The number of SEND frames without a receipt and outside transactions in a part of ``output`` that begins with a
    /// frame, those that end at `offset` or before it left out.
    public func countUnconfirmedSends(in frames: RawSpan, endingAfter offset: Int) -> Int {
        var count = 0
        var start = 0
        var scanner = FrameScanner()
        // Our own frames: no limit was exceeded when they were written.
        let limits = STOMPLimits(
            maximumLineBytes: .max, maximumHeaders: .max, maximumHeaderBytes: .max, maximumBodyBytes: .max
        ).clamped
        while true {
            start += scanner.lineEnds(in: frames, from: start).bytes
            guard (try? scanner.scan(frames, from: start, version: version, limits: limits)) == true else {
                return count
            }
            start += scanner.frameEnd
            if scanner.command == .send, !scanner.receipt.isSet, !scanner.transaction.isSet, start > offset {
                count += 1
            }
            scanner.reset()
        }
    }
}
