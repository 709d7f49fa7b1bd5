import STOMPCore
import TestSupport
import Testing
import Wire

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
}
