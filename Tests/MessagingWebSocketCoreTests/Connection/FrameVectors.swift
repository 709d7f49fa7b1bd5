import TestSupport

@testable import MessagingWebSocketCore

/// The vectors of `FrameVectorTests`, each for both roles.
enum FrameVectors {
    static let all: [FrameVector] = all(at: .client) + all(at: .server)

    private static func all(at receiver: WebSocketRole) -> [FrameVector] {
        let groups = [good, utf8, malformed, outOfOrder, limits, closes]
        return groups.flatMap { group in group(receiver) }
    }

    private static func message(_ kind: WebSocketMessageKind, _ count: Int) -> WebSocketEvents.Message {
        WebSocketEvents.Message(kind: kind, byteCount: count)
    }

    static func good(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        let hello = text("Hello")
        var vectors: [FrameVector] = []
        for count in [0, 1, 7, 8, 9, 124, 125, 126, 127, 1000, 65535, 65536, 65537] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            vectors.append(
                FrameVector(
                    name: "binary of \(count)", receiver: receiver, bytes: frame(2, payload, from: sender),
                    plaintext: payload, messages: [message(.binary, count)]))
        }
        vectors += [
            FrameVector(
                name: "text", receiver: receiver, bytes: frame(1, hello, from: sender), plaintext: hello,
                messages: [message(.text, 5)]),
            FrameVector(
                name: "two fragments", receiver: receiver,
                bytes: frame(1, text("Hel"), from: sender, isFinal: false) + frame(0, text("lo"), from: sender),
                plaintext: hello, messages: [message(.text, 5)]),
            FrameVector(
                name: "five fragments, three of them empty", receiver: receiver,
                bytes: frame(2, [], from: sender, isFinal: false) + frame(0, [1, 2], from: sender, isFinal: false)
                    + frame(0, [], from: sender, isFinal: false) + frame(0, [3], from: sender, isFinal: false)
                    + frame(0, [], from: sender),
                plaintext: [1, 2, 3], messages: [message(.binary, 3)]),
            FrameVector(
                name: "ping and pong between fragments", receiver: receiver,
                bytes: frame(1, text("Hel"), from: sender, isFinal: false) + frame(9, [7, 8], from: sender)
                    + frame(10, [9], from: sender) + frame(0, text("lo"), from: sender),
                plaintext: hello, messages: [message(.text, 5)], pings: 1, pongs: 1, answers: [answer(10, [7, 8])]),
            FrameVector(
                name: "empty ping", receiver: receiver, bytes: frame(9, from: sender), pings: 1,
                answers: [answer(10, [])]),
            FrameVector(
                name: "ping of 125", receiver: receiver,
                bytes: frame(9, [UInt8](repeating: 3, count: 125), from: sender), pings: 1,
                answers: [answer(10, [UInt8](repeating: 3, count: 125))]),
            FrameVector(
                name: "three pings", receiver: receiver,
                bytes: frame(9, [1], from: sender) + frame(9, [2], from: sender) + frame(9, [3], from: sender),
                pings: 3,
                answers: [answer(10, [1]), answer(10, [2]), answer(10, [3])]),
            FrameVector(
                name: "pong nobody asked for", receiver: receiver, bytes: frame(10, hello, from: sender), pongs: 1),
            FrameVector(
                name: "three messages", receiver: receiver,
                bytes: frame(2, [1], from: sender) + frame(1, text("é"), from: sender) + frame(2, from: sender),
                plaintext: [1] + text("é"),
                messages: [message(.binary, 1), message(.text, 2), message(.binary, 0)]),
            FrameVector(
                name: "key of zeros", receiver: receiver,
                bytes: frame(2, hello, from: sender, key: [0, 0, 0, 0]), plaintext: hello,
                messages: [message(.binary, 5)]),
            FrameVector(name: "nothing", receiver: receiver, bytes: []),
            FrameVector(name: "half a header", receiver: receiver, bytes: [0x82]),
            FrameVector(
                name: "half a payload", receiver: receiver,
                bytes: Array(frame(2, hello, from: sender).dropLast(2)), plaintext: text("Hel")),
        ]
        return vectors
    }

    static func utf8(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        let kosme = [UInt8](hex: "ce ba e1 bd b9 cf 83 ce bc ce b5")
        func bad(_ name: String, _ bytes: [UInt8], _ plaintext: [UInt8]) -> FrameVector {
            FrameVector(name: name, receiver: receiver, bytes: bytes, plaintext: plaintext, violation: .invalidData)
        }
        var lax = WebSocketConfiguration()
        lax.validatesText = false
        let cuts = (0...kosme.count).map { cut in
            FrameVector(
                name: "text cut after \(cut) bytes", receiver: receiver,
                bytes: frame(1, Array(kosme[..<cut]), from: sender, isFinal: false)
                    + frame(0, Array(kosme[cut...]), from: sender),
                plaintext: kosme, messages: [message(.text, kosme.count)])
        }
        return cuts + [
            bad("lone continuation byte", frame(1, [0x41, 0x80], from: sender), [0x41]),
            bad("surrogate", frame(1, kosme + [0xED, 0xA0, 0x80], from: sender), kosme + [0xED]),
            bad("overlong slash", frame(1, [0xC0, 0xAF], from: sender), []),
            bad("above U+10FFFF", frame(1, [0xF4, 0x90, 0x80, 0x80], from: sender), [0xF4]),
            bad("character that does not end", frame(1, [0xE2, 0x82], from: sender), [0xE2, 0x82]),
            bad(
                "character that does not end with its last fragment",
                frame(1, [0xE2], from: sender, isFinal: false) + frame(0, [0x82], from: sender), [0xE2, 0x82]),
            bad(
                "bad byte in a later fragment, before its end",
                frame(1, text("ab"), from: sender, isFinal: false)
                    + frame(0, [0xF0, 0x9F, 0x41, 0x41], from: sender, isFinal: false), text("ab") + [0xF0, 0x9F]),
            bad(
                "character split over a ping that goes on wrongly",
                frame(1, [0xE2, 0x82], from: sender, isFinal: false) + frame(0, [0x41], from: sender), [0xE2, 0x82]),
            bad(
                "bad byte after much that is good",
                frame(1, text(String(repeating: "x", count: 300)) + [0xFF], from: sender),
                text(String(repeating: "x", count: 300))),
            FrameVector(
                name: "binary that is no UTF-8", receiver: receiver, bytes: frame(2, [0xFF, 0xC0], from: sender),
                plaintext: [0xFF, 0xC0], messages: [message(.binary, 2)]),
            FrameVector(
                name: "text that is no UTF-8, unchecked", receiver: receiver,
                bytes: frame(1, [0xFF, 0xC0], from: sender),
                configuration: lax, plaintext: [0xFF, 0xC0], messages: [message(.text, 2)]),
        ]
    }

    static func malformed(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        func bad(_ name: String, _ bytes: [UInt8]) -> FrameVector {
            FrameVector(name: name, receiver: receiver, bytes: bytes, violation: .protocolError)
        }
        let opcodes: [UInt8] = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]
        return opcodes.map { bad("reserved opcode \($0)", frame($0, from: sender)) }
            + [UInt8(1), 2, 4, 7].map { bad("reserved bits \($0)", frame(2, [1], from: sender, reserved: $0)) }
            + [UInt8(8), 9, 10].flatMap { opcode in
                [
                    bad("fragmented control \(opcode)", frame(opcode, [3, 232], from: sender, isFinal: false)),
                    bad(
                        "control \(opcode) of 126",
                        frame(opcode, [UInt8](repeating: 0, count: 126), from: sender)),
                    bad("control \(opcode) with wide length", frame(opcode, [1, 2], from: sender, form: .sixtyFour)),
                    bad("control \(opcode) with reserved bit", frame(opcode, from: sender, reserved: 4)),
                    bad(
                        "control \(opcode) masked the wrong way",
                        frame(opcode, [3, 232], from: sender, isMasked: sender == .server)),
                ]
            } + [
                bad("masked the wrong way", frame(2, [1, 2], from: sender, isMasked: sender == .server)),
                bad("empty, masked the wrong way", frame(1, from: sender, isMasked: sender == .server)),
                bad("length 5 in sixteen bits", frame(2, text("Hello"), from: sender, form: .sixteen)),
                bad("length 0 in sixteen bits", frame(2, from: sender, form: .sixteen)),
                bad("length 125 in sixteen bits", frame(2, from: sender, form: .sixteen, claims: 125)),
                bad("length 126 in 64 bits", frame(2, from: sender, form: .sixtyFour, claims: 126)),
                bad("length 65535 in 64 bits", frame(2, from: sender, form: .sixtyFour, claims: 65535)),
                bad("length 0 in 64 bits", frame(2, from: sender, form: .sixtyFour, claims: 0)),
                bad("length 2^63", frame(2, from: sender, claims: 1 << 63)),
                bad("length 2^64 - 1", frame(2, from: sender, claims: .max)),
                bad("reserved opcode that lacks the rest", [0x83]),
                bad("text of HTTP", text("GET / HTTP/1.1\r\n\r\n")),
            ]
    }

    static func outOfOrder(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        let begun = frame(2, [1], from: sender, isFinal: false)
        let isKnown = message(.binary, 1)
        var binaryOnly = WebSocketConfiguration()
        binaryOnly.acceptsText = false
        var textOnly = WebSocketConfiguration()
        textOnly.acceptsBinary = false
        return [
            FrameVector(
                name: "continuation of nothing", receiver: receiver, bytes: frame(0, [1], from: sender),
                violation: .protocolError),
            FrameVector(
                name: "unfinished continuation of nothing", receiver: receiver,
                bytes: frame(0, [1], from: sender, isFinal: false), violation: .protocolError),
            FrameVector(
                name: "continuation of a message that has ended", receiver: receiver,
                bytes: frame(2, [1], from: sender) + frame(0, [2], from: sender), plaintext: [1], messages: [isKnown],
                violation: .protocolError),
            FrameVector(
                name: "text inside a fragmented message", receiver: receiver,
                bytes: begun + frame(1, text("a"), from: sender), plaintext: [1], violation: .protocolError),
            FrameVector(
                name: "binary inside a fragmented message", receiver: receiver, bytes: begun + begun, plaintext: [1],
                violation: .protocolError),
            FrameVector(
                name: "text where binary is spoken", receiver: receiver, bytes: frame(1, text("a"), from: sender),
                configuration: binaryOnly, violation: .unsupportedData),
            FrameVector(
                name: "binary where text is spoken", receiver: receiver, bytes: frame(2, [1], from: sender),
                configuration: textOnly, violation: .unsupportedData),
            FrameVector(
                name: "answers a ping before it fails", receiver: receiver,
                bytes: frame(9, [5], from: sender) + frame(0, from: sender), pings: 1, violation: .protocolError,
                answers: [answer(10, [5])]),
        ]
    }

    static func limits(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        var small = WebSocketConfiguration()
        small.maximumFrameSize = 10
        small.maximumMessageSize = 15
        let ten = [UInt8](repeating: 1, count: 10)
        let five = [UInt8](repeating: 2, count: 5)
        return [
            FrameVector(
                name: "frame and message at their limits", receiver: receiver,
                bytes: frame(2, ten, from: sender, isFinal: false) + frame(0, five, from: sender), configuration: small,
                plaintext: ten + five, messages: [message(.binary, 15)]),
            FrameVector(
                name: "frame above its limit, by its header alone", receiver: receiver,
                bytes: frame(2, from: sender, claims: 11), configuration: small, violation: .messageTooBig),
            FrameVector(
                name: "message above its limit, by a header alone", receiver: receiver,
                bytes: frame(2, ten, from: sender, isFinal: false) + frame(0, from: sender, claims: 6),
                configuration: small, plaintext: ten, violation: .messageTooBig),
            FrameVector(
                name: "limits count each message anew", receiver: receiver,
                bytes: frame(2, ten, from: sender) + frame(2, ten, from: sender), configuration: small,
                plaintext: ten + ten, messages: [message(.binary, 10), message(.binary, 10)]),
            FrameVector(
                name: "control frames do not count", receiver: receiver,
                bytes: frame(2, ten, from: sender, isFinal: false) + frame(10, ten + ten, from: sender)
                    + frame(0, five, from: sender), configuration: small, plaintext: ten + five,
                messages: [message(.binary, 15)], pongs: 1),
            FrameVector(
                name: "largest length against the usual limits", receiver: receiver,
                bytes: frame(2, from: sender, claims: UInt64(Int64.max)), violation: .messageTooBig),
            FrameVector(
                name: "largest length in a byte stream", receiver: receiver,
                bytes: frame(2, five, from: sender, claims: UInt64(Int64.max)),
                configuration: .byteStream(acceptsText: false), plaintext: five),
            FrameVector(
                name: "byte stream of fragments", receiver: receiver,
                bytes: frame(2, five, from: sender, isFinal: false) + frame(0, ten, from: sender)
                    + frame(2, five, from: sender), configuration: .byteStream(acceptsText: false),
                plaintext: five + ten + five),
        ]
    }

    static func closes(at receiver: WebSocketRole) -> [FrameVector] {
        let sender = receiver.peer
        let allowed: [UInt16] = [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
        ]
        let forbidden: [UInt16] = [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535]
        return allowed.map { code in
            FrameVector(
                name: "close \(code)", receiver: receiver, bytes: frame(8, closing(code, "bye"), from: sender),
                closed: WebSocketCloseCode(rawValue: code), answers: [answer(8, closing(code))])
        }
            + forbidden.map { code in
                FrameVector(
                    name: "close \(code)", receiver: receiver, bytes: frame(8, closing(code), from: sender),
                    violation: .protocolError)
            } + [
                FrameVector(
                    name: "close without a code", receiver: receiver, bytes: frame(8, from: sender), closed: .noStatus,
                    answers: [answer(8, [])]),
                FrameVector(
                    name: "close with half a code", receiver: receiver, bytes: frame(8, [3], from: sender),
                    violation: .protocolError),
                FrameVector(
                    name: "close with the longest reason", receiver: receiver,
                    bytes: frame(8, closing(1000, String(repeating: "r", count: 123)), from: sender), closed: .normal,
                    answers: [answer(8, closing(1000))]),
                FrameVector(
                    name: "close with a reason that is no UTF-8", receiver: receiver,
                    bytes: frame(8, closing(1000) + [0xC3], from: sender), violation: .invalidData),
                FrameVector(
                    name: "close between fragments", receiver: receiver,
                    bytes: frame(2, [1], from: sender, isFinal: false) + frame(8, closing(1001), from: sender),
                    plaintext: [1], closed: .goingAway, answers: [answer(8, closing(1001))]),
                FrameVector(
                    name: "whatever comes after a close", receiver: receiver,
                    bytes: frame(8, closing(1000), from: sender) + frame(9, from: sender) + [0xFF, 0xFF],
                    closed: .normal, answers: [answer(8, closing(1000))]),
            ]
    }
}
