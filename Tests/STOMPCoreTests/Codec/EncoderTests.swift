import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct EncoderTests {
    private func encoded(_ frame: STOMPFrame, _ version: STOMPVersion = .v12) throws -> String {
        var bytes: [UInt8] = []
        try STOMPEncoder(version: version).encode(frame, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private func misuse(_ frame: STOMPFrame, _ version: STOMPVersion = .v12) -> STOMPUsageError.Code? {
        var bytes: [UInt8] = [1, 2, 3]
        do throws(STOMPUsageError) {
            try STOMPEncoder(version: version).encode(frame, into: &bytes)
            return nil
        } catch {
            #expect(bytes == [1, 2, 3], "nothing may be written before a misuse is thrown")
            return error.code
        }
    }

    @Test func writesCommandHeadersInOrderAndBody() throws {
        #expect(
            try encoded(frame(.send, ["destination": "/q", "a": "b"], "hi"))
                == "SEND\ndestination:/q\na:b\ncontent-length:2\n\nhi\0")
    }

    @Test func writesNoContentLengthForAnEmptyBody() throws {
        #expect(try encoded(frame(.send, ["destination": "/q"])) == "SEND\ndestination:/q\n\n\0")
    }

    @Test func countsBytesNotCharacters() throws {
        #expect(try encoded(frame(.send, [:], "grüße")) == "SEND\ncontent-length:7\n\ngrüße\0")
    }

    @Test func keepsARightContentLengthAndRefusesAWrongOne() throws {
        #expect(try encoded(frame(.send, ["content-length": "2"], "ab")) == "SEND\ncontent-length:2\n\nab\0")
        #expect(misuse(frame(.send, ["content-length": "3"], "ab")) == .reservedHeader)
    }

    @Test func escapesNamesAndValuesByVersion() throws {
        let headers: STOMPHeaders = ["a:b\\c": "d:e\nf\\g"]
        #expect(try encoded(frame(.send, headers)) == "SEND\na\\cb\\\\c:d\\ce\\nf\\\\g\n\n\0")
        #expect(try encoded(frame(.send, headers), .v11) == "SEND\na\\cb\\\\c:d\\ce\\nf\\\\g\n\n\0")
        #expect(try encoded(frame(.send, ["a": "b\rc"])) == "SEND\na:b\\rc\n\n\0")
        #expect(try encoded(frame(.send, ["a": "b\rc"]), .v11) == "SEND\na:b\rc\n\n\0")
        #expect(try encoded(frame(.send, ["a": "b:c\\d"]), .v10) == "SEND\na:b:c\\d\n\n\0")
    }

    @Test(arguments: [STOMPCommand.connect, .stomp, .connected])
    func neverEscapesTheHandshake(_ command: STOMPCommand) throws {
        #expect(
            try encoded(STOMPFrame(command, headers: ["passcode": "a\\b:c"])) == "\(command)\npasscode:a\\b:c\n\n\0")
    }

    @Test func escapesConnectOnlyWhereAskedTo() throws {
        var encoder = STOMPEncoder()
        encoder.connectEscaping = .v12
        var bytes: [UInt8] = []
        try encoder.encode(frame(.connect, ["passcode": "a\\b:c"]), into: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "CONNECT\npasscode:a\\\\b\\cc\n\n\0")
    }

    @Test func refusesWhatAVersionCannotCarryAndWritesNothing() {
        #expect(misuse(frame(.send, ["a": "b\nc"]), .v10) == .unencodableHeader)
        #expect(misuse(frame(.send, ["a:b": "c"]), .v10) == .unencodableHeader)
        #expect(misuse(frame(.send, ["a": "b\r"]), .v10) == .unencodableHeader)
        #expect(misuse(frame(.send, ["a": "b\r"]), .v11) == .unencodableHeader)
        #expect(misuse(frame(.send, ["a": "b\r"])) == nil)
        #expect(misuse(frame(.connect, ["passcode": "a\nb"])) == .unencodableHeader)
        #expect(misuse(frame(.send, ["": "b"])) == .unencodableHeader)
        #expect(misuse(STOMPFrame(unlisted: "A B")) == .unencodableHeader)
        #expect(misuse(STOMPFrame(unlisted: "")) == .unencodableHeader)
        #expect(misuse(STOMPFrame(unlisted: "HELLO", headers: ["": ""])) == .unencodableHeader)
    }

    @Test(arguments: STOMPCommand.allCases.filter { !$0.mayHaveBody })
    func refusesABodyWhereNoneMayBe(_ command: STOMPCommand) {
        #expect(misuse(STOMPFrame(command, body: [1])) == .unexpectedBody)
    }

    @Test func findsSpecialBytesAtEveryPlaceOfAText() throws {
        for length in 0..<40 {
            for place in 0...length {
                for special in ["\\", ":", "\n", "\r"] {
                    let text =
                        String(repeating: "x", count: place) + special + String(repeating: "y", count: length - place)
                    let original = frame(.send, ["a": text, text + "n": "v"])
                    var bytes: [UInt8] = []
                    try STOMPEncoder().encode(original, into: &bytes)
                    var decoder = STOMPDecoder()
                    decoder.push(bytes)
                    #expect(try decoder.next() == original)
                }
            }
        }
    }

    @Test func writesUnlistedCommands() throws {
        #expect(try encoded(STOMPFrame(unlisted: "HELLO", body: [0x61])) == "HELLO\ncontent-length:1\n\na\0")
    }
}
