import TestSupport
import Testing
import Transport

@Suite(.turns) struct BackPressureTests {
    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a frozen reader suspends callers within the bound until it thaws`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let limit = 100_000
        let ends = try await Setting(selector, kind).links(limit: limit) { $0.wantsReadingPaused = true }
        ends.server.probe.dropBytes()
        let senders = 4
        let each = 80
        let line = [UInt8](repeating: 65, count: 65_535) + [10]
        let waiting = Tally()
        try await withThrowingTaskGroup { group in
            for _ in 0..<senders {
                group.addTask {
                    for _ in 0..<each {
                        if ends.client.outboxIsFull {
                            waiting.add(1)
                            _ = await ends.client.outboxRoom()
                            waiting.add(-1)
                        }
                        ends.client.append(line)
                    }
                }
            }
            // All of them together have more to send than the system buffers.
            #expect(await eventually { waiting.value == senders })
            #expect(ends.client.perform { $0.output.count } < limit + senders * line.count)
            let sent = ends.client.traffic.bytesSent
            #expect(sent < senders * each * line.count)
            #expect(ends.server.probe.byteCount == 0)

            // Bytes that the system accepts meanwhile make room for the others too: repeat this until it accepts no
            // more.
            let releasesNoOther = await eventually {
                let before = ends.client.perform { $0.output.count }
                let sent = ends.client.traffic.bytesSent
                let cancelled = Task { await ends.client.outboxRoom() }
                cancelled.cancel()
                _ = await cancelled.value
                let after = ends.client.perform { $0.output.count }
                return waiting.value == senders && after == before && ends.client.traffic.bytesSent == sent
            }
            #expect(releasesNoOther)

            ends.server.perform { $0.wantsReadingPaused = false }
            try await group.waitForAll()
        }
        let expected = senders * each * line.count
        #expect(await eventually { ends.server.probe.byteCount == expected })
    }

    @Test(arguments: SelectorKind.allCases)
    func `callers that wait for room are released when the connection ends`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.capacity = 10 }
        let client = setting.link(Probe(), limit: 100)
        client.attach(pair.client)
        #expect(await eventually { client.probe.openings == 1 })
        client.append([UInt8](repeating: 1, count: 500))
        #expect(await eventually { client.perform { $0.output.isEmpty } })
        client.append([UInt8](repeating: 1, count: 500))
        #expect(client.outboxIsFull)
        let waiter = Task { await client.outboxRoom() }
        try await Task.sleep(for: .milliseconds(20))
        client.dropConnection()
        #expect(await waiter.value == nil)
        #expect(!client.outboxIsFull)
        #expect(await eventually { client.probe.ends.count == 1 })
        // Without a connection there is nothing to wait for.
        client.append([UInt8](repeating: 1, count: 500))
        #expect(await client.outboxRoom() == nil)
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a peer that sends and never reads cannot make the outbox grow`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let limit = 100_000
        let setting = try Setting(selector, kind)
        let streams = try await setting.streams()
        let server = setting.link(Probe(), limit: limit) { $0.echoes = true }
        server.probe.dropBytes()
        server.attach(streams.server)
        let client = setting.link(Probe(), limit: limit)
        client.probe.dropBytes()
        client.attach(streams.client)
        #expect(await eventually { client.probe.openings == 1 && server.probe.openings == 1 })
        client.perform { $0.wantsReadingPaused = true }
        let line = [UInt8](repeating: 65, count: 65_535) + [10]
        let total = 300 * line.count
        let sender = Task {
            for _ in 0..<300 { _ = await client.send(line, limit: limit) }
        }
        var largest = 0
        var last = -1
        // Until nothing moves any more: everybody waits for everybody.
        while last != server.traffic.bytesReceived {
            last = server.traffic.bytesReceived
            for _ in 0..<20 {
                largest = max(largest, server.perform { $0.output.count })
                try await Task.sleep(for: .milliseconds(2))
            }
        }
        #expect(last < total)
        #expect(largest < 2 * limit + 2 * EventLoop.readBufferSize)
        // And nobody is stuck for ever.
        client.perform { $0.wantsReadingPaused = false }
        await sender.value
        #expect(await eventually { client.probe.byteCount == total })
        client.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `while reading is paused nothing is delivered and bytes still go out`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links()
        ends.client.perform { $0.wantsReadingPaused = true }
        // Reading stops once the loop has looked.
        ends.client.append(Array("out\n".utf8))
        #expect(await eventually { ends.server.probe.byteCount == 4 })
        ends.server.append(Array("in\n".utf8))
        try await Task.sleep(for: .milliseconds(30))
        #expect(ends.client.probe.byteCount == 0)
        ends.client.perform { $0.wantsReadingPaused = false }
        #expect(await eventually { ends.client.probe.byteCount == 3 })
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a peer that goes while reading is paused does not keep the loop busy`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links()
        ends.client.perform { $0.wantsReadingPaused = true }
        ends.client.append(Array("out\n".utf8))
        #expect(await eventually { ends.server.probe.byteCount == 4 })
        ends.server.append(Array("last words\n".utf8))
        #expect(await eventually { ends.server.traffic.bytesSent == 11 })
        ends.server.dropConnection()
        try await Task.sleep(for: .milliseconds(50))
        #expect(ends.client.traffic.reads < 10)
        ends.client.perform { $0.wantsReadingPaused = false }
        #expect(await eventually { ends.client.probe.ends.count == 1 })
        #expect(ends.client.probe.bytes == Array("last words\n".utf8))
    }
}
