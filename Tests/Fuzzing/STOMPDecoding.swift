import STOMPCore

/// The decoder of frames: the same frames for every splitting, and each of them can be encoded again and is read equal
/// then.
enum STOMPDecoding {
    private static let limits = STOMPLimits(
        maximumLineBytes: 512, maximumHeaders: 16, maximumHeaderBytes: 1_024, maximumBodyBytes: 2_048)

    private struct Run: Equatable {
        var frames: [STOMPFrame] = []
        /// Which of several mistakes is noticed first depends on how much has arrived.
        var isViolated = false
        var waiting = 0
        var lineEnds = 0

        init(_ pieces: [[UInt8]], _ version: STOMPVersion) {
            var decoder = STOMPDecoder(version: version, limits: limits)
            do throws(STOMPProtocolError) {
                for piece in pieces {
                    decoder.push(piece)
                    while let frame = try decoder.next() { frames.append(frame) }
                    require(decoder.bufferedBytes <= 4_096, "the decoder holds more than its limits allow")
                }
                lineEnds = decoder.lineEnds
            } catch {
                isViolated = true
            }
            waiting = decoder.bufferedBytes
        }
    }

    static func check(_ input: FuzzInput) {
        var input = input
        let version = input.choice(STOMPVersion.allCases)
        let pattern = input.byte()
        let whole = Run([Array(input.bytes)], version)
        let split = Run(input.pieces(pattern), version)
        require(whole == split, "\(whole) became \(split) in pieces of \(pattern)")
        for frame in whole.frames { checkAgain(frame, version) }
    }

    private static func checkAgain(_ frame: STOMPFrame, _ version: STOMPVersion) {
        var again: [UInt8] = []
        do throws(STOMPUsageError) {
            try STOMPEncoder(version: version).encode(frame, into: &again)
        } catch {
            // Before 1.2 a value may end with a CR that came before CRLF, which cannot be written again.
            let endsInCR = frame.headers.contains { $0.value.utf8.last == 0x0D }
            return require(version != .v12 && endsInCR, "\(frame) was read, but \(error)")
        }
        var decoder = STOMPDecoder(version: version)
        decoder.push(again)
        var read = try? decoder.next()
        if frame.headers["content-length"] == nil { read?.headers["content-length"] = nil }
        require(read == frame && decoder.bufferedBytes == 0, "\(frame) became \(String(describing: read))")
    }
}
