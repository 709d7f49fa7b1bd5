import MessagingWire
import TestSupport
import Testing
import Transport

/// What a machine is told of how far its bytes have come.
@Suite(.turns) struct ProgressTests {
    /// What the machine of `link` is told now.
    private func progress(of link: LineLink) async -> OutputProgress {
        let before = link.probe.timeouts.count
        link.perform { $0.nextDeadline = MonotonicClock.now }
        #expect(await eventually { link.probe.timeouts.count > before })
        return link.probe.progress
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.reportingAcknowledgements)
    func `all bytes are acknowledged once the peer has read them`(selector: SelectorKind, kind: StreamKind) async throws
    {
        let ends = try await Setting(selector, kind).links()
        for round in 1...3 {
            ends.client.append(Array("0123456789\n".utf8))
            #expect(await eventually { ends.server.probe.byteCount == round * 11 })
            var last = OutputProgress()
            // The acknowledgement of a system may take a moment.
            let isAcknowledged = await eventually {
                last = await progress(of: ends.client)
                return last.acknowledged == round * 11
            }
            #expect(isAcknowledged, "\(last)")
            #expect(last.total == round * 11)
        }
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.reportingAcknowledgements)
    func `what the peer does not take stays unacknowledged, wherever it waits`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links { $0.wantsReadingPaused = true }
        ends.server.append(Array("paused\n".utf8))
        #expect(await eventually { ends.client.probe.byteCount == 7 })
        ends.server.probe.dropBytes()
        // More than the system buffers: the rest waits in the outbox.
        let line = [UInt8](repeating: 10, count: 16 << 20)
        ends.client.append(line)
        #expect(await eventually { ends.client.traffic.bytesSent > 0 })
        ends.client.append(line)
        let stalled = await progress(of: ends.client)
        #expect(stalled.total == 2 * line.count)
        #expect(stalled.acknowledged < line.count)
        ends.server.perform { $0.wantsReadingPaused = false }
        #expect(await eventually { ends.server.probe.byteCount == 2 * line.count })
        let isAcknowledged = await eventually { await progress(of: ends.client).acknowledged == 2 * line.count }
        #expect(isAcknowledged)
    }

    @Test(arguments: SelectorKind.allCases)
    func `a connection does not count the bytes of the one before it`(selector: SelectorKind) async throws {
        let ends = try await Setting(selector, .memory).links()
        ends.client.append(Array("first\n".utf8))
        #expect(await eventually { ends.server.probe.byteCount == 6 })
        let pair = MemoryPair.make()
        ends.client.attach(pair.client)
        ends.server.attach(pair.server)
        #expect(await eventually { ends.client.probe.openings == 2 && ends.server.probe.openings == 2 })
        #expect(await progress(of: ends.client) == OutputProgress())
        ends.client.append(Array("second\n".utf8))
        #expect(await eventually { ends.server.probe.byteCount == 13 })
        #expect(await progress(of: ends.client) == OutputProgress(total: 7, acknowledged: 7))
    }

    @Test(arguments: SelectorKind.allCases)
    func `what layers add counts too`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
        let (client, server) = (ends.client, ends.server)
        let deadline = MonotonicClock.now.advanced(byNanoseconds: 20_000_000_000)
        func layers() -> LayerStack {
            LayerStack([PlainLayer()], deadline: deadline, timeout: TransportError(.timedOut, "late"))
        }
        try await ends.attach((pair.client, pair.server), client: layers(), server: layers())
        #expect(await ends.areOpen())
        client.append(Array("0123456789\n".utf8))
        #expect(await eventually { server.probe.byteCount == 11 })
        let progress = await progress(of: client)
        // Five bytes of hello, and three in front of the line. The total may be too large.
        #expect(progress.acknowledged == 19)
        #expect(progress.total >= 19)
    }
}
