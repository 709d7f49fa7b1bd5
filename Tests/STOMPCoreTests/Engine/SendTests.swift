import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct SendTests {
    private func misuse(_ client: ScriptedEngine, _ headers: STOMPHeaders) -> STOMPUsageError.Code? {
        client.misuse { e throws(STOMPUsageError) in
            try e.engine.send(destination: "/q", headers: headers, body: [1], at: 0)
        }
    }

    @Test func sendWritesDestinationHeadersLengthAndBody() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(
            destination: "/q", headers: ["content-type": "text/plain", "a": "b:c"], body: Array("a\0b".utf8), at: 0)
        #expect(
            client.takeOutput()
                == "SEND\ndestination:/q\ncontent-type:text/plain\na:b\\cc\ncontent-length:3\n\na\0b\0")
    }

    @Test func contentLengthIsLeftOutOnRequestButNotBesideANul() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: Array("ab".utf8), omitsContentLength: true, at: 0)
        #expect(client.takeOutput() == "SEND\ndestination:/q\n\nab\0")
        try client.engine.send(destination: "/q", body: [0], omitsContentLength: true, at: 0)
        #expect(client.takeOutput() == "SEND\ndestination:/q\ncontent-length:1\n\n\0\0")
    }

    /// Each frame must be what an engine writes that never saw the one before.
    @Test func framesDoNotDependOnThoseBeforeThem() throws {
        // Equal as characters, not as bytes; one of them kept and sent again in the same memory.
        let destinations = ["/q", "/queue/caf\u{E9}", "/queue/cafe\u{301}", "/queue/a:b\nc", ""]
        let kept: STOMPHeaders = ["content-type": "text/plain", "n": "1"]
        let headers: [STOMPHeaders] = [
            [:], kept, kept, ["content-type": "text/plain", "n": "2"], ["n": "\u{E9}"], ["n": "e\u{301}"],
            ["long": String(repeating: "x", count: 2_000)], ["receipt": "mine"],
        ]
        let heads = destinations.flatMap { destination in headers.map { (destination, $0) } }
        for version in [STOMPVersion.v10, .v11, .v12] {
            /// Bytes, not strings: those compare what they look like.
            func sent(_ head: (String, STOMPHeaders), by client: ScriptedEngine) -> ([UInt8], STOMPUsageError.Code?) {
                defer { client.engine.output = [] }
                let refusal = client.misuse { e throws(STOMPUsageError) in
                    try e.engine.send(destination: head.0, headers: head.1, body: [0x78], at: 0)
                }
                return (client.engine.output, refusal)
            }
            let client = try ScriptedEngine.connected(version)
            let expected = try heads.map { sent($0, by: try ScriptedEngine.connected(version)) }
            for first in heads.indices {
                for second in heads.indices {
                    for index in [first, first, second, second] {
                        let got = sent(heads[index], by: client)
                        #expect(got == expected[index], "\(version) \(heads[index]) behind \(heads[first])")
                    }
                }
            }
        }
    }

    @Test func aReceiptStandsBehindTheDestinationOfAHeadThatComesAgain() throws {
        let client = try ScriptedEngine.connected()
        for number in 1...4 {
            try client.engine.send(
                destination: "/q", headers: ["a": "b"], body: [0x78], receiptToken: UInt64(number), at: 0)
            #expect(
                client.takeOutput()
                    == "SEND\ndestination:/q\nreceipt:\(number)\na:b\ncontent-length:1\n\nx\0")
        }
        // Another connection has rules of its own.
        let other = try ScriptedEngine.connected(server: "ActiveMQ/5.17.2")
        let long: STOMPHeaders = ["a": String(repeating: "x", count: 9_990)]
        #expect(misuse(other, long) == nil && misuse(other, long) == nil && misuse(other, long) == nil)
    }

    @Test func `a destination that is too long for the broker is refused behind others with the same headers`() throws {
        let client = try ScriptedEngine.connected(server: "ActiveMQ/5.17.2")
        let long = "/queue/" + String(repeating: "x", count: 11_000)
        for _ in 1...5 { try client.engine.send(destination: "/queue/a", headers: ["a": "b"], body: [0x78], at: 0) }
        _ = client.takeOutput()
        let refusal = client.misuse { e throws(STOMPUsageError) in
            try e.engine.send(destination: long, headers: ["a": "b"], body: [0x78], at: 0)
        }
        #expect(refusal == .brokerLimit && client.engine.output.isEmpty)
    }

    @Test(arguments: [
        "destination", "content-length", "transaction", "receipt", "receipt-id", "subscription", "message-id", "ack",
    ])
    func reservedHeadersAreRefused(_ name: String) throws {
        #expect(misuse(try ScriptedEngine.connected(), ["a": "b", name: "x"]) == .reservedHeader)
    }

    @Test(arguments: [
        "Destination", "content-type", "content-lengt", "ack2", "persistent", "reply-to", "correlation-id",
    ])
    func otherHeadersTravelWithTheMessage(_ name: String) throws {
        #expect(misuse(try ScriptedEngine.connected(), [name: "x"]) == nil)
    }

    @Test func whatTheVersionCannotCarryIsRefused() throws {
        #expect(misuse(try ScriptedEngine.connected(.v10), ["a": "b\nc"]) == .unencodableHeader)
        #expect(misuse(try ScriptedEngine.connected(.v12), ["a": "b\nc"]) == nil)
        #expect(misuse(try ScriptedEngine.connected(.v12), ["": "b"]) == .unencodableHeader)
    }

    @Test func `the header that the version cannot carry is named, also one that the operation writes`() throws {
        func message(
            _ version: STOMPVersion = .v10, _ operation: (inout STOMPEngine) throws(STOMPUsageError) -> Void
        ) throws -> String? {
            let client = try ScriptedEngine.connected(version)
            let error = #expect(throws: STOMPUsageError.self) { try operation(&client.engine) }
            #expect(error?.code == .unencodableHeader && client.engine.output.isEmpty)
            return error?.message
        }
        let destination = try message { engine throws(STOMPUsageError) in
            try engine.send(destination: "/queue/a\nb", headers: ["c": "d"], body: [], at: 0)
        }
        #expect(destination?.hasPrefix("The header 'destination' holds a line feed, ") == true)
        let subscribed = try message(.v11) { engine throws(STOMPUsageError) in
            try engine.subscribe(id: "1", destination: "/queue/a\r", token: 1, at: 0)
        }
        #expect(subscribed?.hasPrefix("The header 'destination' ends with a carriage return, ") == true)
        let id = try message { engine throws(STOMPUsageError) in
            try engine.subscribe(id: "dur\nable", destination: "/queue/a", token: 1, at: 0)
        }
        #expect(id?.hasPrefix("The header 'id' holds a line feed, ") == true)
        let transaction = try message { engine throws(STOMPUsageError) in _ = try engine.begin(named: "t\n", at: 0) }
        #expect(transaction?.hasPrefix("The header 'transaction' holds a line feed, ") == true)
        let own = try message { engine throws(STOMPUsageError) in
            try engine.send(destination: "/queue/a", headers: ["a": "b", "c": "d\n"], body: [], at: 0)
        }
        #expect(own?.hasPrefix("The header 'c' holds a line feed, ") == true)
        let several = try message { engine throws(STOMPUsageError) in
            try engine.subscribe(id: "a\nb", destination: "/queue/a\r", headers: ["": "c"], token: 1, at: 0)
        }
        #expect(several?.hasPrefix("The header 'id' holds a line feed, ") == true)
    }

    @Test func limitsOfAKnownBrokerAreKept() throws {
        let client = try ScriptedEngine.connected(server: "ActiveMQ/5.17.2")
        #expect(misuse(client, ["a": String(repeating: "x", count: 11_000)]) == .brokerLimit)
        #expect(misuse(client, ["a": String(repeating: ":", count: 6_000)]) == .brokerLimit)
        #expect(misuse(client, ["a": String(repeating: "x", count: 9_000)]) == nil)
        #expect(misuse(client, STOMPHeaders((0..<1_000).map { .init("h\($0)", "") })) == .brokerLimit)
        let other = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        #expect(misuse(other, ["a": String(repeating: "x", count: 70_000)]) == nil)
    }

    @Test func operationsOfTheOtherRoleAreRefused() throws {
        let client = try ScriptedEngine.connected()
        #expect(client.misuse { e throws(STOMPUsageError) in try e.engine.accept(at: 0) } == .wrongRole)
        #expect(client.misuse { e throws(STOMPUsageError) in try e.engine.sendReceipt("1", at: 0) } == .wrongRole)
        let server = try ScriptedEngine.serving()
        #expect(misuse(server, [:]) == .wrongRole)
        #expect(server.misuse { e throws(STOMPUsageError) in try e.engine.disconnect(at: 0) } == .wrongRole)
    }
}
