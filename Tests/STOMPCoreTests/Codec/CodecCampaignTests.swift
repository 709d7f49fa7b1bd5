import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct CodecCampaignTests {
    private static let alphabet: [String] = [
        "a", "b", "x", ":", "\\", "\n", "\r", " ", "\t", "é", "\u{301}", "🏎", "n", "c", "r", "/", "\0",
        "content-length",
    ]

    private static func text(_ generator: inout SeededGenerator, atLeast least: Int) -> String {
        let parts = Int.random(in: least...6, using: &generator)
        return (0..<parts).map { _ in alphabet.randomElement(using: &generator)! }.joined()
    }

    /// A frame that the version can carry, as far as the generator can tell.
    static func frame(_ generator: inout SeededGenerator, _ version: STOMPVersion) -> STOMPFrame {
        let command = [STOMPCommand.send, .message, .error, .receipt, .ack, .subscribe].randomElement(
            using: &generator)!
        var headers: STOMPHeaders = [:]
        for _ in 0..<Int.random(in: 0...5, using: &generator) {
            let name = text(&generator, atLeast: 1)
            let value = text(&generator, atLeast: 0)
            if trimmed(name) != "content-length" { headers.add(name, value) }
        }
        var body: [UInt8] = []
        if command.mayHaveBody, Bool.random(using: &generator) {
            body = generator.bytes(Int.random(in: 0...40, using: &generator))
        }
        return STOMPFrame(command, headers: headers, body: body)
    }

    /// What a decoder must make of an encoded frame.
    static func expected(_ frame: STOMPFrame, _ version: STOMPVersion) -> STOMPFrame {
        var frame = frame
        if version == .v10 {
            for index in frame.headers.fields.indices {
                frame.headers.fields[index].name = trimmed(frame.headers.fields[index].name)
                frame.headers.fields[index].value = trimmed(frame.headers.fields[index].value)
            }
        }
        if !frame.body.isEmpty { frame.headers.add("content-length", "\(frame.body.count)") }
        return frame
    }

    private static func trimmed(_ text: String) -> String {
        var bytes = Array(text.utf8)[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func whatIsEncodedIsDecodedEqualInEveryVersionAndSplit() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        var refused = 0
        let rounds = Campaign.rounds(1_000_000)
        for round in 0..<rounds {
            let version = STOMPVersion.allCases.randomElement(using: &generator)!
            let frame = Self.frame(&generator, version)
            var bytes: [UInt8] = []
            do throws(STOMPUsageError) {
                try STOMPEncoder(version: version).encode(frame, into: &bytes)
            } catch {
                #expect(version != .v12 && error.code == .unencodableHeader, "seed \(Campaign.seed), round \(round)")
                refused += 1
                continue
            }
            var decoder = STOMPDecoder(version: version)
            var decoded: STOMPFrame?
            for piece in VectorTests.pieces(bytes, using: &generator) {
                decoder.push(Array(piece))
                if let frame = try decoder.next() { decoded = frame }
            }
            guard decoded == Self.expected(frame, version), decoder.bufferedBytes == 0 else {
                Issue.record("seed \(Campaign.seed), round \(round): \(frame) became \(String(describing: decoded))")
                return
            }
        }
        #expect(refused < rounds * 2 / 3)
    }

    /// Random damage must give frames or a violation, never a trap, and never hold more than the limits.
    @Test func damagedFramesAreRefusedOrReadButNeverTrap() throws {
        var generator = SeededGenerator(seed: Campaign.seed ^ 1)
        var limits = STOMPLimits()
        limits.maximumBodyBytes = 500
        limits.maximumLineBytes = 200
        limits.maximumHeaderBytes = 400
        limits.maximumHeaders = 10
        var outcomes = (frames: 0, violations: 0, unfinished: 0)
        var bytes: [UInt8] = []
        for _ in 0..<Campaign.rounds(10_000_000) {
            let version = STOMPVersion.allCases.randomElement(using: &generator)!
            if bytes.isEmpty || Int.random(in: 0..<16, using: &generator) == 0 {
                bytes.removeAll(keepingCapacity: true)
                try? STOMPEncoder(version: .v12).encode(Self.frame(&generator, version), into: &bytes)
            }
            Self.damage(&bytes, &generator)
            var decoder = STOMPDecoder(version: version, limits: limits)
            decoder.push(bytes)
            do throws(STOMPProtocolError) {
                var count = 0
                while let frame = try decoder.next() {
                    count += 1
                    guard Self.canBeEncodedAgain(frame, version) else {
                        Issue.record("seed \(Campaign.seed): \(frame) of \(bytes) in \(version)")
                        return
                    }
                }
                if count > 0 { outcomes.frames += 1 } else { outcomes.unfinished += 1 }
                #expect(decoder.bufferedBytes <= 1_000)
            } catch {
                outcomes.violations += 1
            }
            if bytes.count > 2_000 { bytes.removeAll(keepingCapacity: true) }
        }
        #expect(outcomes.frames > 0 && outcomes.violations > 0 && outcomes.unfinished > 0)
    }

    /// Whether the frame can be written and is read again as it was.
    private static func canBeEncodedAgain(_ frame: STOMPFrame, _ version: STOMPVersion) -> Bool {
        var bytes: [UInt8] = []
        do throws(STOMPUsageError) {
            try STOMPEncoder(version: version).encode(frame, into: &bytes)
        } catch {
            // Before 1.2 a value may end with a CR that came before CRLF, which cannot be written again.
            return version != .v12 && frame.headers.contains { $0.value.utf8.last == 0x0D }
        }
        var decoder = STOMPDecoder(version: version)
        decoder.push(bytes)
        guard var again = try? decoder.next() else { return false }
        if frame.headers["content-length"] == nil { again.headers["content-length"] = nil }
        return again == frame
    }

    static func damage(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        let interesting: [UInt8] = [0, 10, 13, 58, 92, 45, 57, 0x80, 0xFF, 0x63]
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0...bytes.count, using: &generator)
            let byte = interesting.randomElement(using: &generator)!
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: bytes.insert(byte, at: place)
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2 where place < bytes.count: bytes.removeLast(bytes.count - place)
            case 3 where place < bytes.count: bytes.append(contentsOf: bytes[place...])
            default: if place < bytes.count { bytes[place] = byte }
            }
        }
    }
}
