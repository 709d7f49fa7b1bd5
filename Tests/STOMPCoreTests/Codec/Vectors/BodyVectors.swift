import STOMPCore

extension Vector {
    static let bodies: [Vector] = [
        Vector("Body: up to the first NUL", "SEND\n\nabc\0", frame(.send, [:], "abc")),
        Vector("Body: empty", "SEND\n\n\0", frame(.send)),
        Vector("Body: line feeds belong to it", "SEND\n\n\n\na\n\n\0", frame(.send, [:], "\n\na\n\n")),
        Vector("Body: CRs belong to it", "SEND\n\n\r\na\r\n\0", frame(.send, [:], "\r\na\r\n")),
        Vector("Body: colons and command words", "SEND\n\nSEND\na:b\n\n\0", frame(.send, [:], "SEND\na:b\n\n")),
        Vector("Body: UTF-8", "SEND\n\ngrüße\0", frame(.send, [:], "grüße")),
        Vector("Body: any bytes", "", STOMPFrame(.send, body: [0xFF, 0xFE, 0x80])).bytes(
            Array("SEND\n\n".utf8) + [0xFF, 0xFE, 0x80, 0]),
        Vector("Body: of MESSAGE", "MESSAGE\n\nx\0", frame(.message, [:], "x")),
        Vector("Body: of ERROR", "ERROR\n\nx\0", frame(.error, [:], "x")),
        Vector("Body: SUBSCRIBE has none", "SUBSCRIBE\nid:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: UNSUBSCRIBE has none", "UNSUBSCRIBE\nid:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: CONNECT has none", "CONNECT\n\nx\0", fails: .unexpectedBody),
        Vector("Body: STOMP has none", "STOMP\n\nx\0", fails: .unexpectedBody),
        Vector("Body: CONNECTED has none", "CONNECTED\nversion:1.2\n\nx\0", fails: .unexpectedBody),
        Vector("Body: RECEIPT has none", "RECEIPT\nreceipt-id:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: DISCONNECT has none", "DISCONNECT\n\nx\0", fails: .unexpectedBody),
        Vector("Body: ACK has none", "ACK\nid:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: NACK has none", "NACK\nid:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: BEGIN has none", "BEGIN\ntransaction:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: COMMIT has none", "COMMIT\ntransaction:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: ABORT has none", "ABORT\ntransaction:1\n\nx\0", fails: .unexpectedBody),
        Vector("Body: a line feed is a body too", "RECEIPT\nreceipt-id:1\n\n\n\0", fails: .unexpectedBody),
        Vector("Body: none by length", "RECEIPT\nreceipt-id:1\ncontent-length:1\n\nx\0", fails: .unexpectedBody),
        Vector(
            "Body: length zero on RECEIPT is no body", "RECEIPT\nreceipt-id:1\ncontent-length:0\n\n\0",
            frame(.receipt, ["receipt-id": "1", "content-length": "0"])),
    ]

    static let lengths: [Vector] = [
        Vector(
            "Header content-length: NULs inside", "SEND\ncontent-length:5\n\na\0b\0c\0",
            frame(.send, ["content-length": "5"], "a\0b\0c")),
        Vector(
            "Header content-length: only NULs", "SEND\ncontent-length:3\n\n\0\0\0\0",
            frame(.send, ["content-length": "3"], "\0\0\0")),
        Vector(
            "Header content-length: zero is honoured", "SEND\ncontent-length:0\n\n\0",
            frame(.send, ["content-length": "0"])),
        Vector("Header content-length: zero with a body", "SEND\ncontent-length:0\n\nx\0", fails: .missingTerminator),
        Vector(
            "Header content-length: counts bytes", "SEND\ncontent-length:7\n\ngrüße\0",
            frame(.send, ["content-length": "7"], "grüße")),
        Vector(
            "Header content-length: characters are too few", "SEND\ncontent-length:5\n\ngrüße\0",
            fails: .missingTerminator),
        Vector("Header content-length: too short", "SEND\ncontent-length:2\n\nabc\0", fails: .missingTerminator),
        Vector("Header content-length: too long", "SEND\ncontent-length:4\n\nabc\0\n", fails: .missingTerminator),
        Vector("Header content-length: too long by what follows", "SEND\ncontent-length:4\n\nabc\0"),
        Vector("Header content-length: not yet there", "SEND\ncontent-length:10\n\nabc"),
        Vector(
            "Header content-length: leading zeros", "SEND\ncontent-length:003\n\nabc\0",
            frame(.send, ["content-length": "003"], "abc")),
        Vector("Header content-length: letters", "SEND\ncontent-length:abc\n\n\0", fails: .invalidContentLength),
        Vector("Header content-length: empty", "SEND\ncontent-length:\n\n\0", fails: .invalidContentLength),
        Vector("Header content-length: negative", "SEND\ncontent-length:-1\n\n\0", fails: .invalidContentLength),
        Vector("Header content-length: a plus", "SEND\ncontent-length:+1\n\na\0", fails: .invalidContentLength),
        Vector("Header content-length: a fraction", "SEND\ncontent-length:1.0\n\na\0", fails: .invalidContentLength),
        Vector("Header content-length: hexadecimal", "SEND\ncontent-length:0x1\n\na\0", fails: .invalidContentLength),
        Vector("Header content-length: other digits", "SEND\ncontent-length:٣\n\nabc\0", fails: .invalidContentLength),
        Vector(
            "Header content-length: 2^63", "SEND\ncontent-length:9223372036854775808\n\n\0",
            fails: .invalidContentLength),
        Vector(
            "Header content-length: 2^64 + 1", "SEND\ncontent-length:18446744073709551617\n\na\0",
            fails: .invalidContentLength),
        Vector(
            "Header content-length: thirty digits", "SEND\ncontent-length:999999999999999999999999999999\n\n\0",
            fails: .invalidContentLength),
        Vector(
            "Header content-length: the largest number", "SEND\ncontent-length:\(Int.max)\n\n\0",
            fails: .limitExceeded),
        Vector(
            "Header content-length: blanks in 1.2", "SEND\ncontent-length: 3\n\nabc\0", fails: .invalidContentLength),
        Vector(
            "Header content-length: blanks in 1.1", .v11, "SEND\ncontent-length:3 \n\nabc\0",
            fails: .invalidContentLength),
        Vector(
            "1.0 content-length: blanks", .v10, "SEND\ncontent-length: 3\n\nabc\0",
            frame(.send, ["content-length": "3"], "abc")),
        Vector(
            "Header content-length: of MESSAGE", "MESSAGE\ncontent-length:2\n\n\0\0\0",
            frame(.message, ["content-length": "2"], "\0\0")),
        Vector(
            "Header content-length: of ERROR", "ERROR\ncontent-length:1\n\n\n\0",
            frame(.error, ["content-length": "1"], "\n")),
        Vector(
            "Header content-length: invalid on a frame without body", "BEGIN\ntransaction:1\ncontent-length:x\n\n\0",
            fails: .invalidContentLength),
    ]
}
