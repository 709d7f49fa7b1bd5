import STOMPCore

extension Vector {
    static let limits: [Vector] = [
        Vector("Size Limits: a header line that just fits", "SEND\nab:cd\n\n\0", frame(.send, ["ab": "cd"]))
            .limits { $0.maximumLineBytes = 5 },
        Vector("Size Limits: a header line too long", "SEND\nab:cde\n\n\0", fails: .limitExceeded)
            .limits { $0.maximumLineBytes = 5 },
        Vector("Size Limits: CR does not count", "SEND\r\nab:cd\r\n\r\n\0", frame(.send, ["ab": "cd"]))
            .limits { $0.maximumLineBytes = 5 },
        Vector("Size Limits: a line without end", "SEND\nab:cdefghijklmnop", fails: .limitExceeded)
            .limits { $0.maximumLineBytes = 5 },
        Vector("Size Limits: a name without end", "SEND\nabcdefghijklmnop", fails: .limitExceeded)
            .limits { $0.maximumLineBytes = 5 },
        Vector("Size Limits: a command without end", String(repeating: "A", count: 300), fails: .limitExceeded),
        Vector("Size Limits: a command too long", String(repeating: "A", count: 257) + "\n\n\0", fails: .limitExceeded),
        Vector("Size Limits: as many headers as allowed", "SEND\na:1\nb:2\n\n\0", frame(.send, ["a": "1", "b": "2"]))
            .limits { $0.maximumHeaders = 2 },
        Vector("Size Limits: one header too many", "SEND\na:1\nb:2\nc:3\n\n\0", fails: .limitExceeded)
            .limits { $0.maximumHeaders = 2 },
        Vector("Size Limits: header bytes that just fit", "SEND\na:1\nb:2\n\n\0", frame(.send, ["a": "1", "b": "2"]))
            .limits { $0.maximumHeaderBytes = 13 },
        Vector("Size Limits: header bytes too many", "SEND\na:1\nb:2\n\n\0", fails: .limitExceeded)
            .limits { $0.maximumHeaderBytes = 12 },
        Vector("Size Limits: header bytes without end", "SEND\na:1\nb:2\nc:3\nd:4\ne:5\n", fails: .limitExceeded)
            .limits { $0.maximumHeaderBytes = 20 },
        Vector("Size Limits: a body that just fits", "SEND\n\n12345\0", frame(.send, [:], "12345"))
            .limits { $0.maximumBodyBytes = 5 },
        Vector("Size Limits: a body too long", "SEND\n\n123456\0", fails: .limitExceeded).limits {
            $0.maximumBodyBytes = 5
        },
        Vector("Size Limits: a body without end", "SEND\n\n1234567890", fails: .limitExceeded).limits {
            $0.maximumBodyBytes = 5
        },
        Vector(
            "Size Limits: an announced body that just fits", "SEND\ncontent-length:5\n\n12345\0",
            frame(.send, ["content-length": "5"], "12345")
        ).limits { $0.maximumBodyBytes = 5 },
        Vector(
            "Size Limits: an announced body is refused before it comes", "SEND\ncontent-length:6\n\n",
            fails: .limitExceeded
        ).limits { $0.maximumBodyBytes = 5 },
        Vector(
            "Size Limits: a gigabyte is refused by default", "SEND\ncontent-length:1073741824\n\n",
            fails: .limitExceeded),
        Vector("Size Limits: no body at all allowed", "SEND\n\n\0", frame(.send)).limits { $0.maximumBodyBytes = 0 },
    ]

    /// What brokers really send.
    static let brokers: [Vector] = [
        Vector(
            "RabbitMQ: MESSAGE",
            "MESSAGE\nsubscription:s\ndestination:/topic/a\nmessage-id:T_s@@session-x@@1\nredelivered:false\npersistent:1\ncontent-length:2\n\nhi\0\n",
            frame(
                .message,
                [
                    "subscription": "s", "destination": "/topic/a", "message-id": "T_s@@session-x@@1",
                    "redelivered": "false", "persistent": "1", "content-length": "2",
                ], "hi")),
        Vector(
            "RabbitMQ: ERROR with versions",
            "ERROR\nmessage:not_found\ncontent-type:text/plain\nversion:1.0,1.1,1.2\ncontent-length:4\n\nno q\0\n",
            frame(
                .error,
                [
                    "message": "not_found", "content-type": "text/plain", "version": "1.0,1.1,1.2",
                    "content-length": "4",
                ], "no q")),
        Vector(
            "ActiveMQ: MESSAGE with escaped colons",
            "MESSAGE\nexpires:0\ndestination:/queue/a\nsubscription:1\npriority:4\nmessage-id:ID\\chost-1\\c2\\c-1\\c1\\c1\ntimestamp:1\n\nhi\0\n",
            frame(
                .message,
                [
                    "expires": "0", "destination": "/queue/a", "subscription": "1", "priority": "4",
                    "message-id": "ID:host-1:2:-1:1:1", "timestamp": "1",
                ], "hi")),
        Vector(
            "ActiveMQ: CONNECTED",
            "CONNECTED\nserver:ActiveMQ/5.17.2\nheart-beat:0,0\nsession:ID:host-1:2\nversion:1.2\n\n\0\n",
            frame(
                .connected,
                ["server": "ActiveMQ/5.17.2", "heart-beat": "0,0", "session": "ID:host-1:2", "version": "1.2"])),
        Vector(
            "ActiveMQ 1.0: unescaped colons", .v10, "MESSAGE\nmessage-id:ID:host-1:2\n\nhi\0\n",
            frame(.message, ["message-id": "ID:host-1:2"], "hi")),
        Vector("Artemis: RECEIPT", "RECEIPT\nreceipt-id:abc\n\n\0", frame(.receipt, ["receipt-id": "abc"])),
    ]

    static let handshakes: [Vector] = [
        Vector(
            "1.0 CONNECT: login and passcode, padded", "CONNECT\nlogin: a\npasscode: b\n\n\0",
            frame(.connect, ["login": "a", "passcode": "b"])),
        Vector(
            "Connecting: blanks stay when the client speaks 1.1", "CONNECT\naccept-version:1.1\npasscode: b\n\n\0",
            frame(.connect, ["accept-version": "1.1", "passcode": " b"])),
        Vector("1.0 CONNECTED: session, padded", "CONNECTED\nsession: x\n\n\0", frame(.connected, ["session": "x"])),
        Vector(
            "Connecting: blanks stay in CONNECTED of 1.2", "CONNECTED\nversion:1.2\nsession: x\n\n\0",
            frame(.connected, ["version": "1.2", "session": " x"])),
        Vector("Connecting: telnet's CONNECT", "CONNECT\r\n\r\n\0\r\n", frame(.connect)),
        Vector(
            "Protocol Negotiation: several versions", "CONNECT\naccept-version:1.0,1.1,2.0\nhost:h\n\n\0",
            frame(.connect, ["accept-version": "1.0,1.1,2.0", "host": "h"])),
        Vector(
            "Connecting: colons in passcodes", "CONNECT\naccept-version:1.2\npasscode:a:b\n\n\0",
            frame(.connect, ["accept-version": "1.2", "passcode": "a:b"])),
    ]
}
