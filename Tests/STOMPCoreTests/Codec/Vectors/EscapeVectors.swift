import STOMPCore

extension Vector {
    static let escapes: [Vector] = [
        Vector("Value Encoding: line feed", "SEND\na:x\\ny\n\n\0", frame(.send, ["a": "x\ny"])),
        Vector("Value Encoding: colon", "SEND\na:x\\cy\n\n\0", frame(.send, ["a": "x:y"])),
        Vector("Value Encoding: backslash", "SEND\na:x\\\\y\n\n\0", frame(.send, ["a": "x\\y"])),
        Vector("Value Encoding: carriage return", "SEND\na:x\\ry\n\n\0", frame(.send, ["a": "x\ry"])),
        Vector("Value Encoding: names too", "SEND\na\\cb\\\\c:1\n\n\0", frame(.send, ["a:b\\c": "1"])),
        Vector("Value Encoding: a line feed in a name", "SEND\na\\nb:1\n\n\0", frame(.send, ["a\nb": "1"])),
        Vector("Value Encoding: one pass, backslash and n", "SEND\na:\\\\n\n\n\0", frame(.send, ["a": "\\n"])),
        Vector("Value Encoding: one pass, backslash and c", "SEND\na:\\\\c\n\n\0", frame(.send, ["a": "\\c"])),
        Vector(
            "Value Encoding: one pass, two backslashes and n", "SEND\na:\\\\\\\\n\n\n\0", frame(.send, ["a": "\\\\n"])),
        Vector(
            "Value Encoding: one pass, backslash then line feed", "SEND\na:\\\\\\n\n\n\0", frame(.send, ["a": "\\\n"])),
        Vector("Value Encoding: all four", "SEND\na:\\r\\n\\c\\\\\n\n\0", frame(.send, ["a": "\r\n:\\"])),
        Vector("Value Encoding: at both ends", "SEND\na:\\nx\\n\n\n\0", frame(.send, ["a": "\nx\n"])),
        Vector("Value Encoding: an escaped CR at the end stays", "SEND\na:x\\r\n\n\0", frame(.send, ["a": "x\r"])),
        Vector(
            "Value Encoding: an escaped CR before CRLF stays", "SEND\r\na:x\\r\r\n\r\n\0", frame(.send, ["a": "x\r"])),
        Vector("Value Encoding: tab is undefined", "SEND\na:\\t\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: undefined in a name", "SEND\na\\t:b\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: capital letters are undefined", "SEND\na:\\N\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: a zero is undefined", "SEND\na:\\0\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: a lone backslash at the end", "SEND\na:x\\\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: a lone backslash before CRLF", "SEND\na:x\\\r\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: a lone backslash at the end of a name", "SEND\na\\:x\n\n\0", fails: .undefinedEscape),
        Vector("Value Encoding: three backslashes", "SEND\na:\\\\\\\n\n\0", fails: .undefinedEscape),
        Vector(
            "Value Encoding: undefined after a good frame", "SEND\na:b\n\n\0SEND\na:\\x\n\n\0",
            after: frame(.send, ["a": "b"]), fails: .undefinedEscape),
        Vector("Value Encoding: undefined before UTF-8", "SEND\na:\\é\n\n\0", fails: .undefinedEscape),
        Vector("1.1 Value Encoding: line feed", .v11, "SEND\na:x\\ny\n\n\0", frame(.send, ["a": "x\ny"])),
        Vector("1.1 Value Encoding: colon", .v11, "SEND\na:x\\cy\n\n\0", frame(.send, ["a": "x:y"])),
        Vector("1.1 Value Encoding: backslash", .v11, "SEND\na:x\\\\y\n\n\0", frame(.send, ["a": "x\\y"])),
        Vector("1.1 Value Encoding: \\r is undefined", .v11, "SEND\na:x\\ry\n\n\0", fails: .undefinedEscape),
        Vector("1.1 Value Encoding: \\t is undefined", .v11, "SEND\na:x\\ty\n\n\0", fails: .undefinedEscape),
        Vector("1.1 Value Encoding: a raw CR inside a value", .v11, "SEND\na:x\ry\n\n\0", frame(.send, ["a": "x\ry"])),
        Vector(
            "1.0: nothing is escaped", .v10, "SEND\na:x\\ny\\c\\\\\\t\n\n\0", frame(.send, ["a": "x\\ny\\c\\\\\\t"])),
        Vector("1.0: a backslash at the end", .v10, "SEND\na:x\\\n\n\0", frame(.send, ["a": "x\\"])),
        Vector("1.0: colons in values", .v10, "SEND\na:x:y\n\n\0", frame(.send, ["a": "x:y"])),
        Vector(
            "Value Encoding: CONNECT is not escaped", "CONNECT\naccept-version:1.2\npasscode:a\\nb\\\n\n\0",
            frame(.connect, ["accept-version": "1.2", "passcode": "a\\nb\\"])),
        Vector(
            "Value Encoding: CONNECTED is not escaped", "CONNECTED\nversion:1.2\nserver:a\\cb\\t\n\n\0",
            frame(.connected, ["version": "1.2", "server": "a\\cb\\t"])),
        Vector(
            "Value Encoding: STOMP is not escaped", "STOMP\naccept-version:1.2\nlogin:a\\tb\n\n\0",
            frame(.stomp, ["accept-version": "1.2", "login": "a\\tb"])),
        Vector(
            "1.1 Value Encoding: CONNECTED is not escaped", .v11, "CONNECTED\nversion:1.1\nserver:\\r\n\n\0",
            frame(.connected, ["version": "1.1", "server": "\\r"])),
        Vector(
            "Value Encoding: an escaped name is not the plain one", "SEND\ncontent\\c-length:9\n\nab\0",
            frame(.send, ["content:-length": "9"], "ab")),
        Vector("Value Encoding: backslashes in bodies mean nothing", "SEND\n\na\\tb\0", frame(.send, [:], "a\\tb")),
    ]
}
