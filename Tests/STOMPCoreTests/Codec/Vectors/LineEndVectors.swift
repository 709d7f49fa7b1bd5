import STOMPCore

extension Vector {
    static let lineEnds: [Vector] = [
        Vector("Augmented BNF: CRLF everywhere", "SEND\r\na:b\r\n\r\nx\0", frame(.send, ["a": "b"], "x")),
        Vector("Augmented BNF: CRLF in 1.1 is accepted", .v11, "SEND\r\na:b\r\n\r\nx\0", frame(.send, ["a": "b"], "x")),
        Vector(
            "Augmented BNF: CRLF in 1.0, as telnet sends it", .v10, "SEND\r\na:b\r\n\r\nx\0",
            frame(.send, ["a": "b"], "x")),
        Vector("Augmented BNF: mixed line ends", "SEND\na:b\r\nc:d\n\r\nx\0", frame(.send, ["a": "b", "c": "d"], "x")),
        Vector("Augmented BNF: no CR inside a value", "SEND\na:b\rc\r\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: no CR inside a name", "SEND\na\rb:c\n\n\0", fails: .malformedHeader),
        Vector("Augmented BNF: one CR before LF", "SEND\na:b\r\r\n\n\0", fails: .malformedHeader),
        Vector(
            "Augmented BNF: letters that look like CR and backslash to a quick search", "SEND\nLM]:\u{C}L]M\n\n\0",
            frame(.send, ["LM]": "\u{C}L]M"])),
        Vector("1.1: CR inside a value stays", .v11, "SEND\na:b\rc\r\n\n\0", frame(.send, ["a": "b\rc"])),
        Vector("1.1: only one CR goes", .v11, "SEND\na:b\r\r\n\n\0", frame(.send, ["a": "b\r"])),
        Vector("1.0: CR inside a value stays", .v10, "SEND\na:b\rc\r\n\n\0", frame(.send, ["a": "b\rc"])),
        Vector("Augmented BNF: a value that is only CR", "SEND\na:\r\n\n\0", frame(.send, ["a": ""])),
        Vector("Augmented BNF: CR in the command", "SE\rND\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: two CRs after the command", "SEND\r\r\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: a lone CR between frames", "\rSEND\n\n\0", fails: .malformedCommand),
        Vector(
            "Augmented BNF: a lone NUL between frames", "SEND\n\n\0\0", after: frame(.send), fails: .malformedCommand),
        Vector("Augmented BNF: CR and no LF", "SEND\n\n\0\rX", after: frame(.send), fails: .malformedCommand),
        Vector(
            "Augmented BNF: CR and no LF in a command", "SEND\n\n\0SE\rX", after: frame(.send), fails: .malformedCommand
        ),
        Vector("Augmented BNF: a blank in a command", "SEND\n\n\0SE ", after: frame(.send), fails: .malformedCommand),
        Vector("Augmented BNF: a command that may go on", "SEND\n\n\0SE\r", frame(.send)),
        Vector("Augmented BNF: half a CRLF at the end", "SEND\n\n\0\r", frame(.send)),
        Vector("Augmented BNF: EOLs after NUL", "SEND\n\n\0\n\n\nSEND\n\nx\0", frame(.send), frame(.send, [:], "x")),
        Vector("Augmented BNF: CRLFs after NUL", "SEND\n\n\0\r\n\r\nSEND\n\nx\0", frame(.send), frame(.send, [:], "x")),
        Vector("Heart-beating: EOLs before the first frame", "\n\n\nSEND\n\n\0", frame(.send)),
        Vector("Heart-beating: a lone EOL is no frame", "\n"),
        Vector("Heart-beating: CRLF is no frame", "\r\n"),
        Vector("Heart-beating: many EOLs", String(repeating: "\n", count: 100)),
        Vector(
            "Heart-beating: EOL and CRLF mixed", "\n\r\n\n\r\nBEGIN\ntransaction:1\n\n\0",
            frame(.begin, ["transaction": "1"])),
        Vector("Augmented BNF: empty line with CR only before LF", "SEND\na:b\n\r\n\0", frame(.send, ["a": "b"])),
        Vector("Augmented BNF: a CR line is no empty line", "SEND\na:b\n\r\r\n\0", fails: .malformedHeader),
    ]

    static let sequences: [Vector] = [
        Vector(
            "Overview: several frames in one read", "SEND\n\na\0SEND\n\nb\0SEND\n\nc\0",
            frame(.send, [:], "a"), frame(.send, [:], "b"), frame(.send, [:], "c")),
        Vector(
            "Overview: lengths and NULs by turns",
            "SEND\ncontent-length:1\n\n\0\0SEND\n\nb\0\nSEND\ncontent-length:0\n\n\0",
            frame(.send, ["content-length": "1"], "\0"), frame(.send, [:], "b"), frame(.send, ["content-length": "0"])),
        Vector("Overview: a frame and half of another", "SEND\n\na\0SEND\nx:y", frame(.send, [:], "a")),
        Vector(
            "Overview: state does not leak from frame to frame",
            "MESSAGE\nsubscription:1\ncontent-length:2\na:\\n\n\n\0\0\0MESSAGE\na:b\n\nx\0",
            frame(.message, ["subscription": "1", "content-length": "2", "a": "\n"], "\0\0"),
            frame(.message, ["a": "b"], "x")),
        Vector(
            "Overview: frames before a malformed one stand", "SEND\n\na\0SEND\n\nb\0SEND\nx\n\n\0",
            after: frame(.send, [:], "a"), frame(.send, [:], "b"), fails: .malformedHeader),
        Vector(
            "Overview: RECEIPT and MESSAGE", "RECEIPT\nreceipt-id:1\n\n\0\nMESSAGE\n\n\0\n",
            frame(.receipt, ["receipt-id": "1"]), frame(.message)),
    ]
}
