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

    /// How a conversation ends, and with what over a connection.
    enum Ending: CaseIterable {
        case plainGoodBye, plainAlert, tls, webSocket

        func layers() throws -> (client: LayerStack, server: LayerStack) {
            let certificates = Certificates()
            let identity = TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
            let (client, server): (any ByteLayer, any ByteLayer) =
                switch self {
                case .plainGoodBye, .plainAlert: (PlainLayer(), PlainLayer())
                case .tls:
                    try (
                        TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1),
                        TLSLayer(server: TLSContexts(server: TLSServerOptions(identity: identity)))
                    )
                case .webSocket:
                    (
                        try WebSocketLayer(
                            host: "localhost", port: 1, isSecure: false, target: "/", subprotocols: ["mqtt"],
                            options: WebSocketOptions(), textMessages: nil),
                        WebSocketServerLayer(WebSocketServerOptions([.init("mqtt")]))
                    )
                }
            func stack(_ layer: any ByteLayer) -> LayerStack {
                LayerStack(
                    [layer], deadline: MonotonicClock.now + 60_000_000_000,
                    timeout: TransportError(.timedOut, "too slow"))
            }
            return (stack(client), stack(server))
        }
    }

    @Test(arguments: SelectorKind.allCases, Ending.allCases)
    func `lines that wait while the end of the conversation is read are reported as discarded`(
        selector: SelectorKind, ending: Ending
    ) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
        let layers = try ending.layers()
        try await ends.attach((pair.client, pair.server), client: layers.client, server: layers.server)
        #expect(await ends.areOpen())
        // In one turn of the loop, so that nothing is sent in between.
        await setting.loop.result(of: {
            if ending == .plainAlert {
                _ = unsafe ([3] as [UInt8]).withUnsafeBytes { unsafe pair.server.write(from: $0) }
            } else {
                ends.server.perform { $0.wantsClose = true }
                ends.server.closeNow()
            }
            for number in 100..<200 { ends.client.append(Array("line \(number)\n".utf8)) }
            ends.client.ready(.read, at: setting.loop.now)
        })
        #expect(await eventually { ends.client.probe.ends.count == 1 && ends.client.probe.discardedLines > 0 })
        #expect(ends.client.probe.ends.first??.message == (ending == .plainAlert ? "the peer sent an alert" : nil))
        #expect(ends.client.probe.discardedLines == 100)
    }

    @Test(arguments: SelectorKind.allCases)
    func `lines that come behind the closing message are reported as discarded`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
        try await ends.attach((pair.client, pair.server), client: layers(), server: layers())
        #expect(await ends.areOpen())
        pair.client.changeFaults { $0.capacity = 0 }
        await setting.loop.result(of: {
            ends.client.perform { $0.wantsClose = true }
            // The closing message finds no room.
            ends.client.closeNow()
            for number in 100..<200 { ends.client.append(Array("line \(number)\n".utf8)) }
            pair.client.changeFaults { $0.capacity = .max }
        })
        #expect(await eventually { ends.client.probe.ends.count == 1 && ends.client.probe.discardedLines > 0 })
        #expect(ends.client.probe.ends == [nil])
        #expect(ends.client.probe.discardedLines == 100)
        #expect(ends.server.probe.byteCount == 0)
    }
}
