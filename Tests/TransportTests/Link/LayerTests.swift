import Synchronization
import TestSupport
import Testing
import Transport

@Suite(.turns) struct LayerTests {
    /// A stack of test layers, with seconds until its handshake must be done.
    private func layers(
        _ count: Int = 1, isMute: Bool = false, failsToSend: Bool = false, timeout: Int64 = 60_000_000_000
    ) -> LayerStack {
        LayerStack(
            (0..<count).map { _ in PlainLayer(isMute: isMute, failsToSend: failsToSend) },
            deadline: MonotonicClock.now + timeout, timeout: TransportError(.timedOut, "no hello in time"))
    }

    private func links(
        _ setting: Setting, client: LayerStack, server: LayerStack
    ) async throws -> Ends {
        let streams = try await setting.streams()
        let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
        ends.client.perform { $0.greeting = Array("greeting\n".utf8) }
        try await ends.attach(streams, client: client, server: server)
        return ends
    }

    @Test(arguments: SelectorKind.allCases, [1, 3])
    func `nothing bypasses the layers, whoever sends`(selector: SelectorKind, depth: Int) async throws {
        for kind in StreamKind.allCases {
            let ends = try await links(Setting(selector, kind), client: layers(depth), server: layers(depth))
            #expect(await ends.areOpen())
            let senders = 4
            let each = 100
            await withTaskGroup { group in
                for sender in 0..<senders {
                    group.addTask {
                        for number in 0..<each {
                            let filler = number == 50 ? String(repeating: " ", count: 70_000) : ""
                            _ = await ends.client.send(
                                Array("\(sender) \(filler)\(number)\n".utf8), urgent: number.isMultiple(of: 3))
                        }
                    }
                }
            }
            #expect(await eventually { ends.client.perform { $0.output.isEmpty } })
            ends.client.append(Array("9 9\n".utf8), urgent: true)
            #expect(await eventually { ends.server.probe.bytes.suffix(4).elementsEqual("9 9\n".utf8) })
            let bytes = ends.server.probe.bytes
            #expect(bytes.starts(with: "greeting\n".utf8))
            let numbers = Lines.parse(Array(bytes.dropFirst("greeting\n".utf8.count)))
            for sender in 0..<senders { #expect(numbers[sender] == Array(0..<each)) }
        }
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a peer that ends the connection with its handshake is named in the error`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let setting = try Setting(selector, kind)
        let streams = try await setting.streams()
        // The hello, and at once the good-bye.
        let bytes = Array("HELLO".utf8) + [2]
        setting.loop.execute { bytes.withUnsafeBytes { _ = streams.server.write(from: $0) } }
        let error = await #expect(throws: TransportError.self) {
            try await LayerHandshake.run(layers(), over: streams.client, loop: setting.loop)
        }
        #expect(error?.code == .closedByPeer)
        #expect(error?.message.contains("ended the connection at once") == true, "\(error?.message ?? "none")")
        setting.loop.execute { streams.server.close() }
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a link that closes writes what is left, says good-bye and only then ends`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await links(Setting(selector, kind), client: layers(2), server: layers(2))
        #expect(await ends.areOpen())
        ends.client.perform { machine in
            machine.output += [UInt8](repeating: 65, count: 300_000) + [10]
            machine.wantsClose = true
        }
        #expect(await eventually { ends.server.probe.ends.count == 1 && ends.client.probe.ends.count == 1 })
        #expect(ends.server.probe.byteCount == 300_001 + "greeting\n".utf8.count)
        #expect(ends.server.probe.ends == [nil])
    }

    @Test(arguments: SelectorKind.allCases)
    func `a stream that ends without good-bye is an error`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let streams = try await setting.streams()
        let client = setting.link(Probe())
        let server = setting.link(Probe()) { $0.greeting = Array("HELLO".utf8) }
        server.attach(streams.server)
        let layers = layers()
        try await LayerHandshake.run(layers, over: streams.client, loop: setting.loop)
        client.attach(streams.client, layers: layers)
        #expect(await eventually { client.probe.openings == 1 })
        server.dropConnection()
        #expect(await eventually { client.probe.ends.count == 1 })
        #expect(client.probe.ends.first??.message == "ended without good-bye")
    }

    @Test func `what arrives between the handshake and the link keeps the loop busy for one round only`() async throws {
        let clock = try ManualClock()
        let pair = MemoryPair.make()
        try await LayerHandshake.run(layers(0), over: pair.client, loop: clock.loop)
        _ = unsafe [UInt8](repeating: 10, count: 1).withUnsafeBytes { unsafe pair.server.write(from: $0) }
        let isQuiet = Atomic(false)
        let quiet = Task {
            await clock.waitUntilQuiet()
            isQuiet.store(true, ordering: .relaxed)
        }
        #expect(await eventually { isQuiet.load(ordering: .relaxed) })
        let link = Link(machine: LineMachine(Probe()), loop: clock.loop, maximumOutboxBytes: 1 << 20)
        link.attach(pair.client)
        #expect(await eventually { link.probe.byteCount == 1 })
        await quiet.value
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a handshake that takes too long ends the connection`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let setting = try Setting(selector, kind)
        let streams = try await setting.streams()
        async let mute: Void = LayerHandshake.run(layers(isMute: true), over: streams.server, loop: setting.loop)
        let error = await #expect(throws: TransportError.self) {
            try await LayerHandshake.run(layers(timeout: 50_000_000), over: streams.client, loop: setting.loop)
        }
        #expect(error?.message == "no hello in time")
        try await mute
    }

    @Test(arguments: SelectorKind.allCases)
    func `a layer that fails to send ends the connection after its alert`(selector: SelectorKind) async throws {
        let ends = try await links(Setting(selector), client: layers(failsToSend: true), server: layers())
        #expect(await eventually { ends.client.probe.ends.count == 1 && ends.server.probe.ends.count == 1 })
        #expect(ends.client.probe.ends.first??.message == "this layer cannot send")
        #expect(ends.server.probe.ends.first??.message == "the peer sent an alert")
    }
}
