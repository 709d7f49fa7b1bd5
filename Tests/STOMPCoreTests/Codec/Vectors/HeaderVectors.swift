import STOMPCore

extension Vector {
    static let headers: [Vector] = [
        Vector(
            "Repeated Header Entries: all are visible, the first wins", "SEND\nfoo:World\nfoo:Hello\n\n\0",
            frame(.send, ["foo": "World", "foo": "Hello"])),
        Vector(
            "Repeated Header Entries: the first content-length counts",
            "SEND\ncontent-length:2\ncontent-length:9\n\nab\0",
            frame(.send, ["content-length": "2", "content-length": "9"], "ab")),
        Vector("Overview: order is kept", "SEND\nb:2\na:1\nc:3\n\n\0", frame(.send, ["b": "2", "a": "1", "c": "3"])),
        Vector(
            "Overview: names are case-sensitive", "SEND\nFoo:1\nfoo:2\n\n\0", frame(.send, ["Foo": "1", "foo": "2"])),
        Vector(
            "Overview: Content-Length is no content-length", "SEND\nContent-Length:9\n\nab\0",
            frame(.send, ["Content-Length": "9"], "ab")),
        Vector("Augmented BNF: an empty value", "SEND\nfoo:\n\n\0", frame(.send, ["foo": ""])),
        Vector("Augmented BNF: an empty value in 1.1", .v11, "SEND\nfoo:\n\n\0", frame(.send, ["foo": ""])),
        Vector("Augmented BNF: an empty name", "SEND\n:foo\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: only a colon", "SEND\n:\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: no colon", "SEND\nfoo\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: no colon after good headers", "SEND\na:b\nfoo\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: a blank line with a blank", "SEND\na:b\n \n\0", fails: .malformedHeader),
        Vector("Augmented BNF: split at the first colon", "SEND\na:b:c\n\n\0", frame(.send, ["a": "b:c"])),
        Vector("Augmented BNF: colons only in the value", "SEND\na:::\n\n\0", frame(.send, ["a": "::"])),
        Vector(
            "Augmented BNF: a URL as value", "SEND\nreply:stomp://h:61613/q\n\n\0",
            frame(.send, ["reply": "stomp://h:61613/q"])),
        Vector("Augmented BNF: blanks before the value are kept", "SEND\na: b\n\n\0", frame(.send, ["a": " b"])),
        Vector("Augmented BNF: blanks after the value are kept", "SEND\na:b \n\n\0", frame(.send, ["a": "b "])),
        Vector("Augmented BNF: blanks in the name are kept", "SEND\n a :b\n\n\0", frame(.send, [" a ": "b"])),
        Vector("1.1 Overview: blanks are kept", .v11, "SEND\na: b \n\n\0", frame(.send, ["a": " b "])),
        Vector("Augmented BNF: tabs are kept", "SEND\na:\tb\t\n\n\0", frame(.send, ["a": "\tb\t"])),
        Vector("Augmented BNF: a value of blanks", "SEND\na:   \n\n\0", frame(.send, ["a": "   "])),
        Vector("1.0: peers may pad", .v10, "MESSAGE\nsession: x\n\n\0", frame(.message, ["session": "x"])),
        Vector(
            "1.0: peers may pad the name too", .v10, "MESSAGE\nsession : x \n\n\0", frame(.message, ["session": "x"])),
        Vector("1.0: a name of blanks", .v10, "MESSAGE\n :x\n\n\0", fails: .malformedHeader),
        Vector("1.0: a name of blanks in a handshake", "CONNECTED\n :x\n\n\0", fails: .malformedHeader),
        Vector(
            "1.0: content-length with blanks around it counts", .v10, "MESSAGE\n content-length : 2 \n\n\0\0\0",
            frame(.message, ["content-length": "2"], "\0\0")),
        Vector("1.0: blanks inside stay", .v10, "MESSAGE\na: x y \n\n\0", frame(.message, ["a": "x y"])),
        Vector("1.0: an empty value", .v10, "MESSAGE\na:\n\n\0", frame(.message, ["a": ""])),
        Vector("Overview: UTF-8 values", "SEND\na:grüße\n\n\0", frame(.send, ["a": "grüße"])),
        Vector("Overview: UTF-8 names", "SEND\nø:1\n\n\0", frame(.send, ["ø": "1"])),
        Vector("Overview: four bytes a character", "SEND\na:🏎️\n\n\0", frame(.send, ["a": "🏎️"])),
        Vector(
            "Overview: composed and decomposed names differ", "SEND\ne\u{301}:1\n\u{E9}:2\n\n\0",
            frame(.send, ["e\u{301}": "1", "\u{E9}": "2"])),
        Vector("Overview: a combining mark after the colon", "SEND\na:\u{301}b\n\n\0", frame(.send, ["a": "\u{301}b"])),
        Vector(
            "Overview: a combining mark at the start of a line", "SEND\na:b\n\u{301}c:d\n\n\0",
            frame(.send, ["a": "b", "\u{301}c": "d"])),
        Vector("Augmented BNF: NUL in a value", "SEND\na:b\0c\n\n\0", frame(.send, ["a": "b\0c"])),
        Vector(
            "Augmented BNF: control characters in a value", "SEND\na:\u{1}\u{7F}\n\n\0",
            frame(.send, ["a": "\u{1}\u{7F}"])),
        Vector("Overview: a stray continuation byte", "", fails: .invalidUTF8).bytes(bad([0x80])),
        Vector("Overview: Latin-1", "", fails: .invalidUTF8).bytes(bad([0xE9])),
        Vector("Overview: an overlong slash", "", fails: .invalidUTF8).bytes(bad([0xC0, 0xAF])),
        Vector("Overview: an overlong three-byte form", "", fails: .invalidUTF8).bytes(bad([0xE0, 0x80, 0xAF])),
        Vector("Overview: a surrogate", "", fails: .invalidUTF8).bytes(bad([0xED, 0xA0, 0x80])),
        Vector("Overview: beyond U+10FFFF", "", fails: .invalidUTF8).bytes(bad([0xF4, 0x90, 0x80, 0x80])),
        Vector("Overview: a cut sequence", "", fails: .invalidUTF8).bytes(bad([0xE2, 0x82])),
        Vector("Overview: byte FF", "", fails: .invalidUTF8).bytes(bad([0xFF])),
        Vector("Overview: the last scalar", "SEND\na:\u{10FFFF}\n\n\0", frame(.send, ["a": "\u{10FFFF}"])),
    ]

    private static func bad(_ bytes: [UInt8]) -> [UInt8] { Array("SEND\na:".utf8) + bytes + Array("\n\n\0".utf8) }
}
