import TestSupport
import Testing
import Transport

/// Small writes become large ones while callers are at it, and nothing stays behind when they stop.
@Suite(.turns) struct GatheringTests {
    private let message = [UInt8](repeating: UInt8(ascii: "x"), count: 23) + [UInt8(ascii: "\n")]

    @Test(arguments: SelectorKind.allCases)
    func `callers send a flood that nobody awaits, and the loop what they leave`(selector: SelectorKind) async throws {
        let ends = try await Setting(selector).links()
        ends.server.probe.dropBytes()
        ends.client.perform { $0.isAwaited = false }
        var total = 0
        for round in 1...40 {
            // From one message, which is no flood, to what fills several writes.
            let count = round * round * 10
            for _ in 0..<count { #expect(await ends.client.send(message)) }
            total += count * message.count
            let expected = total
            #expect(await eventually { ends.server.probe.byteCount == expected }, "round \(round)")
        }
        #expect(ends.client.traffic.bytesSent == total)
        #expect(ends.client.traffic.writes < total / message.count / 4)
    }

    @Test func `the machine hears when its output is taken`() async throws {
        let ends = try await Setting(.automatic).links()
        let before = MonotonicClock.now
        #expect(await ends.client.send(message))
        #expect(await eventually { ends.client.perform { $0.lastTaken >= before } })
    }
}
