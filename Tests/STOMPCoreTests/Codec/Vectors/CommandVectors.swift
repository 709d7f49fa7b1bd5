import STOMPCore

extension Vector {
    static let commands: [Vector] = [
        Vector("Overview: CONNECT", "CONNECT\naccept-version:1.2\n\n\0", frame(.connect, ["accept-version": "1.2"])),
        Vector("Overview: STOMP", "STOMP\naccept-version:1.2\n\n\0", frame(.stomp, ["accept-version": "1.2"])),
        Vector("Overview: CONNECTED", "CONNECTED\nversion:1.2\n\n\0", frame(.connected, ["version": "1.2"])),
        Vector("SEND", "SEND\ndestination:/q\n\nhi\0", frame(.send, ["destination": "/q"], "hi")),
        Vector(
            "SUBSCRIBE", "SUBSCRIBE\nid:0\ndestination:/q\nack:client\n\n\0",
            frame(.subscribe, ["id": "0", "destination": "/q", "ack": "client"])),
        Vector("UNSUBSCRIBE", "UNSUBSCRIBE\nid:0\n\n\0", frame(.unsubscribe, ["id": "0"])),
        Vector("ACK", "ACK\nid:12345\ntransaction:tx1\n\n\0", frame(.ack, ["id": "12345", "transaction": "tx1"])),
        Vector("NACK", "NACK\nid:12345\n\n\0", frame(.nack, ["id": "12345"])),
        Vector("BEGIN", "BEGIN\ntransaction:tx1\n\n\0", frame(.begin, ["transaction": "tx1"])),
        Vector("COMMIT", "COMMIT\ntransaction:tx1\n\n\0", frame(.commit, ["transaction": "tx1"])),
        Vector("ABORT", "ABORT\ntransaction:tx1\n\n\0", frame(.abort, ["transaction": "tx1"])),
        Vector("DISCONNECT", "DISCONNECT\nreceipt:77\n\n\0", frame(.disconnect, ["receipt": "77"])),
        Vector(
            "MESSAGE", "MESSAGE\nsubscription:0\nmessage-id:007\ndestination:/q\n\nhello\0",
            frame(.message, ["subscription": "0", "message-id": "007", "destination": "/q"], "hello")),
        Vector("RECEIPT", "RECEIPT\nreceipt-id:77\n\n\0", frame(.receipt, ["receipt-id": "77"])),
        Vector("ERROR", "ERROR\nmessage:bad\n\nwhy\0", frame(.error, ["message": "bad"], "why")),
        Vector(
            "Augmented BNF: an unlisted command is a frame", "HELLO\na:b\n\nx\0",
            STOMPFrame(unlisted: "HELLO", headers: ["a": "b"], body: [0x78])),
        Vector("Augmented BNF: commands are case-sensitive", "send\n\n\0", STOMPFrame(unlisted: "send")),
        Vector("Augmented BNF: Send is not SEND", "Send\n\n\0", STOMPFrame(unlisted: "Send")),
        Vector("Augmented BNF: same length, other command", "ACT\n\n\0", STOMPFrame(unlisted: "ACT")),
        Vector("Augmented BNF: same start, other command", "SENT\n\n\0", STOMPFrame(unlisted: "SENT")),
        Vector("Augmented BNF: BEGIM is not BEGIN", "BEGIM\n\n\0", STOMPFrame(unlisted: "BEGIM")),
        Vector("Augmented BNF: MESSAGES is not MESSAGE", "MESSAGES\n\n\0", STOMPFrame(unlisted: "MESSAGES")),
        Vector("Augmented BNF: a blank is part of no command", " SEND\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: a blank after the command", "SEND \n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: NUL in the command", "SE\0ND\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: NUL between frames", "\0SEND\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: an HTTP answer", "HTTP/1.1 400 Bad Request\r\n\r\n", fails: .malformedCommand),
        Vector("Augmented BNF: a command of 8-bit bytes", "SÉND\n\n\0", fails: .malformedCommand),
        Vector("Augmented BNF: no headers, no body", "BEGIN\n\n\0", frame(.begin)),
        Vector("Augmented BNF: frame not finished", "SEND\ndestination:/q\n\nhi"),
        Vector("Augmented BNF: headers not finished", "SEND\ndestination:/q\n"),
        Vector("Augmented BNF: command not finished", "SEN"),
        Vector("Augmented BNF: nothing", ""),
        Vector(
            "1.0 Overview: a frame", .v10, "SEND\ndestination:/q\n\nhi\0", frame(.send, ["destination": "/q"], "hi")),
        Vector(
            "1.1 Overview: a frame", .v11, "SEND\ndestination:/q\n\nhi\0", frame(.send, ["destination": "/q"], "hi")),
    ]
}
