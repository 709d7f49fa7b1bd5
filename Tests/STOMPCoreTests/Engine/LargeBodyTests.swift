import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite("Engine: bodies that are left out")
struct LargeBodyTests {
    @Test(arguments: STOMPVersion.allCases)
    func `output and the body that it leaves out are the frames`(version: STOMPVersion) throws {
        let large = (0..<5_000).map { UInt8(truncatingIfNeeded: $0) }
        let (whole, sparing) = (try ScriptedEngine.connected(version), try ScriptedEngine.connected(version))
        sparing.engine.leastPayloadLeftOut = 5_000
        for client in [whole, sparing] {
            for (number, body) in [Array(large.dropLast()), large, [1], large].enumerated() {
                try client.engine.send(
                    destination: "/queue/a", headers: ["number": "\(number)"], body: body, receiptToken: UInt64(number),
                    at: client.nanoseconds)
            }
        }
        let payload = sparing.engine.largePayload
        let left = try #require(payload)
        // The caller's own bytes.
        #expect(left.bytes.withUnsafeBytes { $0.baseAddress } == large.withUnsafeBytes { $0.baseAddress })
        var output = sparing.engine.output
        let expected = whole.engine.output
        #expect(output.count + 5_000 == expected.count)
        let count = sparing.engine.outputCount
        #expect(count == expected.count)
        left.insert(into: &output)
        #expect(output == expected)
        sparing.engine.connectionClosed(at: sparing.nanoseconds, into: &sparing.effects)
        let rest = sparing.engine.outputCount
        #expect(rest == 0)
    }

    @Test func `a body is not left out of a frame that is refused`() throws {
        let client = try ScriptedEngine.connected()
        client.engine.leastPayloadLeftOut = 500
        #expect(throws: STOMPUsageError.self) {
            try client.engine.send(
                destination: "/queue/a", headers: ["": "no name"], body: [UInt8](repeating: 1, count: 1_000),
                at: client.nanoseconds)
        }
        let count = client.engine.outputCount
        #expect(count == 0)
    }

    @Test(arguments: [Int(UInt32.max) - 1, Int(UInt32.max), Int(UInt32.max) + 1])
    func `no body is so large that it is left out for a caller that did not ask for that`(count: Int) throws {
        let client = try ScriptedEngine.connected()
        let isLeftOut = client.engine.isLeftOut(count)
        #expect(!isLeftOut)
    }

    @Test(arguments: [0, 1, 3], [true, false])
    func `messages are counted without the body that is left out`(place: Int, omitsContentLength: Bool) throws {
        for hasReceipt in [true, false] {
            let (whole, sparing) = (try ScriptedEngine.connected(), try ScriptedEngine.connected())
            sparing.engine.leastPayloadLeftOut = 500
            for client in [whole, sparing] {
                for number in 0..<4 {
                    let isLarge = number == place
                    try client.engine.send(
                        destination: "/queue/a", body: [UInt8](repeating: 10, count: isLarge ? 500 : number * 50),
                        receiptToken: isLarge && hasReceipt ? 1 : nil, omitsContentLength: omitsContentLength,
                        at: client.nanoseconds)
                    // A heart-beat.
                    client.engine.output.append(10)
                }
            }
            let (expected, output) = (whole.engine.output, sparing.engine.output)
            let body = sparing.engine.largePayload
            #expect(output.count + 500 == expected.count)
            let most = whole.engine.countUnconfirmedSends(in: expected.span.bytes, endingAfter: 0)
            #expect(most == (hasReceipt ? 3 : 4))
            for offset in 0...expected.count {
                let count = sparing.engine.countUnconfirmedSends(
                    in: output.span.bytes, leavingOut: body, endingAfter: offset)
                let wanted = whole.engine.countUnconfirmedSends(in: expected.span.bytes, endingAfter: offset)
                #expect(count == wanted, "\(offset)")
            }
        }
    }

    @Test func `own messages in the output are counted until it is taken, and other frames are not`() throws {
        let client = try ScriptedEngine.connected()
        client.engine.leastPayloadLeftOut = 500
        for round in 1...2 {
            for count in [0, 10, 600, 600] {
                try client.engine.send(
                    destination: "/queue/a", body: [UInt8](repeating: 1, count: count), at: client.nanoseconds)
            }
            var (own, all) = (client.engine.ownBytes, client.engine.outputCount)
            #expect(own == all)
            try client.engine.subscribe(
                id: "\(round)", destination: "/queue/a", token: UInt64(round), at: client.nanoseconds)
            (own, all) = (client.engine.ownBytes, client.engine.outputCount)
            #expect(own < all && own > 1_200)
            client.engine.outputTaken(at: client.nanoseconds)
            client.engine.output = []
            client.engine.largePayload = nil
            own = client.engine.ownBytes
            #expect(own == 0)
        }
    }
}
