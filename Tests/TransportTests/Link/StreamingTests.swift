import TestSupport
import Testing
import Transport

@Suite(.turns) struct StreamingTests {
    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `echoes every byte in order, however large the lines`(selector: SelectorKind, kind: StreamKind) async throws {
        var random = SeededGenerator(seed: Campaign.seed)
        let ends = try await Setting(selector, kind).links { $0.echoes = true }
        var expected: [UInt8] = []
        let sizes = [1, 2, 24, 1000, 16 * 1024, 16 * 1024 + 1, 70_000, 300_000]
        for round in 0..<Campaign.rounds(4000, least: 60) {
            let size = round < sizes.count ? sizes[round] : Int.random(in: 1...20_000, using: &random)
            let line = random.line(size)
            expected += line
            #expect(await ends.client.send(line, urgent: Bool.random(using: &random)))
        }
        let count = expected.count
        #expect(await eventually { ends.client.probe.byteCount >= count })
        #expect(ends.server.probe.bytes == expected)
        #expect(ends.client.probe.bytes == expected)
        #expect(ends.client.traffic.bytesSent == count)
        #expect(await eventually { ends.client.traffic.bytesReceived == count })
    }

    @Test(arguments: SelectorKind.allCases, [1, 3, 1000])
    func `puts lines together from any pieces`(selector: SelectorKind, bytesPerRead: Int) async throws {
        let seed = Campaign.seed &+ UInt64(bytesPerRead)
        var random = SeededGenerator(seed: seed)
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        pair.client.changeFaults {
            $0.bytesPerRead = bytesPerRead
            $0.capacity = 5000
        }
        let server = setting.link(Probe()) { $0.stopsEarly = true }
        let client = setting.link(Probe())
        client.attach(pair.client)
        server.attach(pair.server)
        #expect(await eventually { client.probe.openings == 1 })
        var expected: [UInt8] = []
        while expected.count < min(5000 * bytesPerRead, 300_000) {
            let line = random.line(Int.random(in: 1...min(bytesPerRead * 500, 60_000), using: &random))
            expected += line
            #expect(await client.send(line))
        }
        let count = expected.count
        #expect(await eventually { server.probe.byteCount >= count }, "seed \(seed)")
        #expect(server.probe.bytes == expected, "seed \(seed)")
        client.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases)
    func `small messages that wait for a slow peer leave together`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.capacity = 6000 }
        let client = setting.link(Probe())
        client.attach(pair.client)
        #expect(await eventually { client.probe.openings == 1 })
        let message = [UInt8](repeating: UInt8(ascii: "x"), count: 23) + [UInt8(ascii: "\n")]
        let count = 40_000
        for _ in 0..<count where await !client.send(message) { Issue.record("a message was refused") }
        let early = client.traffic
        // The peer begins to read only now: all but the first 250 messages have waited for it.
        let server = setting.link(Probe())
        server.probe.dropBytes()
        server.attach(pair.server)
        #expect(await eventually { server.probe.byteCount == count * message.count })
        let traffic = client.traffic
        #expect(early.bytesSent <= 6000 && early.writes <= 250, "\(early)")
        #expect(traffic.bytesSent == count * message.count)
        #expect(traffic.writes - early.writes < count / 50, "\(traffic)")
        client.dropConnection()
        server.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `senders on many threads keep their own order and lose nothing`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links()
        let senders = 8
        let each = Campaign.rounds(100_000, least: 1000)
        await withTaskGroup { group in
            for sender in 0..<senders {
                group.addTask {
                    for number in 0..<each {
                        _ = await ends.client.send(
                            Array("\(sender) \(number)\n".utf8), urgent: number.isMultiple(of: 7))
                    }
                }
            }
        }
        let digits = (0..<each).reduce(0) { $0 + "\($1)".utf8.count }
        let total = senders * (digits + each * 3)
        #expect(await eventually { ends.server.probe.byteCount == total })
        let numbers = Lines.parse(ends.server.probe.bytes)
        for sender in 0..<senders { #expect(numbers[sender] == Array(0..<each)) }
    }

    @Test(arguments: SelectorKind.allCases)
    func `an idle link gives its buffers and its last descriptor back`(selector: SelectorKind) async throws {
        let ends = try await Setting(selector).links()
        #expect(await ends.client.send([UInt8](repeating: 65, count: 500_000) + [10]))
        #expect(await eventually { ends.server.probe.byteCount == 500_001 })
        ends.client.perform { $0.nextDeadline = MonotonicClock.now }
        #expect(await eventually { ends.client.perform { $0.output.capacity } <= 4096 })
    }
}

/// Lines of the form "sender number".
enum Lines {
    static func parse(_ bytes: [UInt8]) -> [Int: [Int]] {
        var numbers: [Int: [Int]] = [:]
        for line in bytes.split(separator: 10) {
            let parts = line.split(separator: 32).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
            guard parts.count == 2 else {
                Issue.record("a damaged line: \(String(decoding: line, as: UTF8.self))")
                continue
            }
            numbers[parts[0], default: []].append(parts[1])
        }
        return numbers
    }
}
