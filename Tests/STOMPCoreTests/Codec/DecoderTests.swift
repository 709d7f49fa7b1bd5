import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct DecoderTests {
    @Test func countsLineEndsBetweenFrames() throws {
        var decoder = STOMPDecoder()
        decoder.push(Array("\n\r\n\nBEGIN\ntransaction:1\n\n\0\n".utf8))
        #expect(try decoder.next()?.command == .begin)
        #expect(try decoder.next() == nil)
        #expect(decoder.lineEnds == 4)
        #expect(decoder.bufferedBytes == 0)
    }

    @Test func throwsTheSameViolationAgainAndTakesNothingMore() throws {
        var decoder = STOMPDecoder()
        decoder.push(Array("SEND\nx\n\n\0".utf8))
        #expect(throws: STOMPProtocolError.self) { try decoder.next() }
        decoder.push(Array("SEND\n\n\0".utf8))
        #expect(throws: STOMPProtocolError.self) { try decoder.next() }
        #expect(decoder.bufferedBytes == 0)
    }

    @Test func holdsNoMoreThanTheLimitsAllow() throws {
        var limits = STOMPLimits()
        limits.maximumLineBytes = 100
        limits.maximumHeaderBytes = 1_000
        limits.maximumBodyBytes = 1_000
        for start in ["", "SEND\na", "SEND\na:", "SEND\na:b\n\n", "SEND\ncontent-length:1000\n\n", "BEGIN\n\n"] {
            for filler in ["x", "\u{1}", "x:y\n", "\r"] {
                var decoder = STOMPDecoder(limits: limits)
                decoder.push(Array(start.utf8))
                let piece = Array(filler.utf8)
                do throws(STOMPProtocolError) {
                    for _ in 0..<10_000 {
                        decoder.push(piece)
                        while try decoder.next() != nil {}
                        #expect(decoder.bufferedBytes <= 2_010)
                    }
                    Issue.record("\(start.debugDescription) and \(filler.debugDescription) without end were taken")
                } catch {
                    #expect(
                        [.limitExceeded, .unexpectedBody, .malformedCommand, .missingTerminator].contains(error.code))
                }
            }
        }
    }

    /// Scanning the tail anew at each read would look at 4 MB × 4,000 reads = 8 G bytes: minutes.
    // Waiting for a turn among whole campaigns counts too.
    @Test(.timeLimit(.minutes(30)), arguments: [true, false])
    func looksAtEachByteOfALargeBodyOnce(hasLength: Bool) throws {
        let body = [UInt8](repeating: 0x61, count: 4_000_000)
        var bytes = Array((hasLength ? "SEND\ncontent-length:4000000\n\n" : "SEND\n\n").utf8)
        bytes += body
        bytes.append(0)
        var decoder = STOMPDecoder()
        var start = 0
        while start < bytes.count {
            #expect(try decoder.next() == nil)
            let end = min(start + 1_000, bytes.count)
            decoder.push(Array(bytes[start..<end]))
            start = end
        }
        #expect(try decoder.next()?.body == body)
    }

    @Test func everyPrefixOfAFrameGivesNothingAndNoViolation() throws {
        let bytes = Array("MESSAGE\r\nsubscription:1\r\na\\c:\\\\\r\ncontent-length:3\r\n\r\na\0b\0".utf8)
        for end in 0..<bytes.count {
            var decoder = STOMPDecoder()
            decoder.push(Array(bytes[..<end]))
            #expect(try decoder.next() == nil)
        }
    }

    @Test func readsHeadersLazilyFromTheirLines() {
        let block = Array("a:1\na\\cb:x\\ny\r\na:2\n".utf8)
        let reader = STOMPHeaderReader(version: .v12)
        #expect(reader.value(of: "a", in: block.span.bytes) == "1")
        #expect(reader.value(of: "a:b", in: block.span.bytes) == "x\ny")
        #expect(reader.value(of: "b", in: block.span.bytes) == nil)
        #expect(reader.rawValue(of: "a:b", in: block.span.bytes) == 9..<13)
        #expect(reader.headers(in: block.span.bytes) == ["a": "1", "a:b": "x\ny", "a": "2"])
    }

    @Test(arguments: [STOMPVersion.v10, .v11, .v12])
    func `a header found by its name is the first of all headers with that name`(version: STOMPVersion) {
        var random = SeededGenerator(seed: Campaign.seed)
        let reader = STOMPHeaderReader(version: version)
        let names = ["a", "ab", "a:b", "b\\", "ü", "ab\n", "content-type"]
        let (heads, values) = (
            ["a", "ab", " a", "a ", "a\\cb", "b\\\\", "ü", "ab\\n", "content-type"], ["", "1", "x\\cy", " v ", "ö"]
        )
        for _ in 0..<300 {
            let lines = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                "\(heads.randomElement(using: &random) ?? ""):\(values.randomElement(using: &random) ?? "")"
                    + (Bool.random(using: &random) ? "\n" : "\r\n")
            }
            let block = Array(lines.joined().utf8)
            let headers = reader.headers(in: block.span.bytes)
            for name in names {
                #expect(reader.value(of: name, in: block.span.bytes) == headers[name], "\(name) in \(lines)")
            }
        }
    }

    @Test func readerRepairsWhatNobodyChecked() {
        let reader = STOMPHeaderReader(version: .v12)
        let block: [UInt8] = [0x61, 0x3A, 0xFF, 0x5C, 0x74, 0x5C, 0x0A, 0x62]
        #expect(reader.headers(in: block.span.bytes) == ["a": "\u{FFFD}\\t\\", "b": ""])
        #expect(reader.string(in: block.span.bytes, 5..<900) == "\\\nb")
    }
}
