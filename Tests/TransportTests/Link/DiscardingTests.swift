import TestSupport
import Testing
import Transport

@Suite(.turns) struct DiscardingTests {
    /// What 100 lines and a connection that ends came to.
    private func outcome(
        of setting: Setting, layers: LayerStack?, serverLayers: LayerStack?, bytesUntilCut: Int
    ) async throws -> (received: Int, discarded: Int) {
        let pair = MemoryPair.make()
        let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
        try await ends.attach((pair.client, pair.server), client: layers, server: serverLayers)
        #expect(await ends.areOpen())
        // The server reads nothing until the cut is set: it could have read all of the lines by then.
        pair.client.changeFaults {
            $0.capacity = 200
            $0.isFrozen = true
        }
        for number in 100..<200 { ends.client.append(Array("line \(number)\n".utf8)) }
        pair.client.changeFaults {
            $0.capacity = .max
            $0.isFrozen = false
            $0.bytesUntilCut = bytesUntilCut
        }
        #expect(await eventually { ends.client.probe.ends.count == 1 && ends.server.probe.ends.count == 1 })
        // A line without its line end is not received.
        return (ends.server.probe.byteCount / 9, ends.client.probe.discardedLines)
    }

    private func layers(failsToSend: Bool = false) -> LayerStack {
        LayerStack(
            [PlainLayer(failsToSend: failsToSend)], deadline: MonotonicClock.now + 60_000_000_000,
            timeout: TransportError(.timedOut, "no hello in time"))
    }

    @Test(arguments: SelectorKind.allCases)
    func `each line is received or reported as discarded`(selector: SelectorKind) async throws {
        let outcome = try await outcome(
            of: Setting(selector, .memory), layers: nil, serverLayers: nil, bytesUntilCut: 155)
        #expect(outcome.received + outcome.discarded == 100)
        #expect(outcome.discarded > 0)
    }

    @Test(arguments: SelectorKind.allCases)
    func `each line that layers did not send whole is reported as discarded`(selector: SelectorKind) async throws {
        let outcome = try await outcome(
            of: Setting(selector, .memory), layers: layers(), serverLayers: layers(), bytesUntilCut: 155)
        #expect(outcome.received + outcome.discarded >= 100)
        #expect(outcome.discarded > 0)
    }

    @Test(arguments: SelectorKind.allCases)
    func `lines that a layer cannot send are reported as discarded`(selector: SelectorKind) async throws {
        let outcome = try await outcome(
            of: Setting(selector, .memory), layers: layers(failsToSend: true), serverLayers: layers(),
            bytesUntilCut: .max)
        #expect(outcome.received == 0)
        #expect(outcome.discarded > 0)
    }
}
