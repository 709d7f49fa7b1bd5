import TestSupport
import Testing
import Transport

@Suite(.turns) struct LinkSendingTests {
    private let message = [UInt8](repeating: UInt8(ascii: "x"), count: 23) + [UInt8(ascii: "\n")]

    @Test(arguments: SelectorKind.allCases)
    func `what callers send leaves to the last byte when they stop`(selector: SelectorKind) async throws {
        let ends = try await Setting(selector).links()
        ends.server.probe.dropBytes()
        var total = 0
        for round in 1...40 {
            // From one message to what fills several writes.
            let count = round * round * 10
            for _ in 0..<count { #expect(await ends.client.send(message)) }
            total += count * message.count
            let expected = total
            #expect(await eventually { ends.server.probe.byteCount == expected }, "round \(round)")
        }
        #expect(ends.client.traffic.bytesSent == total)
    }

    @Test func `the machine hears when its output is taken`() async throws {
        let ends = try await Setting(.automatic).links()
        let before = MonotonicClock.now
        #expect(await ends.client.send(message))
        #expect(await eventually { ends.client.perform { $0.lastTaken >= before } })
    }
}
