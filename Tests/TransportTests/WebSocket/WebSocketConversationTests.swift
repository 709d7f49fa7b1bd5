import TestSupport
import Testing
import Transport

/// Both sides of a WebSocket against the Python package `websockets`, in random fragments.
@Suite(.requiresPythonClients, .turns) struct WebSocketConversationTests {
    /// What both scripts share: lines, cut at random, with pings between.
    private static let common = """
        import asyncio, os, random, sys
        import websockets

        def lines(count, text):
            for _ in range(count):
                size = random.choice([0, 1, 125, 126, 1000, 70000])
                if text:
                    yield "".join(random.choice("aé漢🚗") for _ in range(size)) + "\\n"
                else:
                    yield bytes(128 | b for b in os.urandom(size)) + b"\\n"

        def cut(whole):
            pieces, start = [], 0
            while start < len(whole):
                end = start + random.choice([1, 7, 126, 66000, len(whole)])
                pieces.append(whole[start:end])
                start = end
            return pieces

        """

    @Test(arguments: ["v12.stomp", "mqtt"])
    func `its client finds every byte again, and the closing handshake`(subprotocol: String) async throws {
        let probe = Probe()
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
            var machine = LineMachine(probe)
            machine.echoes = true
            let lines = WebSocketTextMessages("lines") { bytes in
                bytes.withUnsafeBytes { $0.firstIndex(of: 0x0A).map { $0 + 1 } ?? $0.count }
            }
            let options = WebSocketServerOptions([.init("mqtt"), .init("v12.stomp", textMessages: lines)])
            let layers = LayerStack(
                [WebSocketServerLayer(options)], deadline: .max, timeout: TransportError(.timedOut, "too slow"))
            let link = Link(machine: machine, loop: .shared, maximumOutboxBytes: 1 << 20)
            LayerHandshake(serving: layers, over: stream, loop: .shared).start { result in
                if case .success = result { link.attachNow(stream, layers: layers) }
            }
        }
        let client = try await PythonClients.start(
            Self.common + """
                async def main():
                    text = sys.argv[2] != "mqtt"
                    async with websockets.connect("ws://127.0.0.1:" + sys.argv[1], subprotocols=["other", sys.argv[2]],
                                                  ping_interval=None, max_size=None, max_queue=None) as socket:
                        assert socket.subprotocol == sys.argv[2]
                        for line in lines(40, text):
                            await socket.send(cut(line))
                            if random.random() < 0.3:
                                await (await socket.ping(os.urandom(125)))
                            answer = line[:0]
                            while len(answer) < len(line):
                                part = await socket.recv()
                                assert isinstance(part, type(line)), "the wrong kind of message"
                                answer += part
                            assert answer == line
                    print("closed", socket.close_code, flush=True)
                asyncio.run(main())
                """, ["\(listener.port)", subprotocol])
        try await client.waitForLine(containing: "closed 1000")
        #expect(try await client.waitForEnd() == .exited(0), "\(client.text(.errors))")
        #expect(await eventually { probe.ends.count == 1 })
        #expect(probe.ends == [nil])
        await listener.close()
    }

    @Test(arguments: ["v12.stomp", "mqtt"], [50, Int.max])
    func `its server finds every byte again, and the closing handshake`(
        subprotocol: String, frameSize: Int
    ) async throws {
        let server = try await PythonClients.start(
            Self.common + """
                async def echo(socket):
                    count, total = 0, int(sys.argv[1])
                    async for message in socket:
                        await socket.send(cut(message))
                        count += len(message.encode() if isinstance(message, str) else message)
                        if random.random() < 0.3:
                            await (await socket.ping())
                        if count == total:
                            await (await socket.ping())
                            print("all", type(message).__name__, flush=True)
                    print("closed", socket.close_code, flush=True)

                # Without max_queue a pong that is awaited would wait behind frames that nobody reads meanwhile.
                async def main():
                    async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["mqtt", "v12.stomp"],
                                                max_size=None, max_queue=None, compression=None) as server:
                        print("port", server.sockets[0].getsockname()[1], flush=True)
                        await asyncio.get_running_loop().create_future()
                asyncio.run(main())
                """, ["100000"])
        let port = UInt16(try await server.waitForLine(containing: "port ").text.dropFirst(5)) ?? 0
        var options = WebSocketOptions()
        options.maximumFrameSize = frameSize
        options.sendsText = true
        let isText = subprotocol != "mqtt"
        let layer = try WebSocketLayer(
            host: "127.0.0.1", port: port, isSecure: false, target: "/", subprotocols: [subprotocol], options: options,
            textMessages: isText ? WebSocketTextMessages("echo") { $0.byteCount } : nil)
        let layers = LayerStack(
            [layer], deadline: MonotonicClock.now + 60_000_000_000, timeout: TransportError(.timedOut, "too slow"))
        let stream = try await Connector.connect(
            to: .host("127.0.0.1", port: port), timeout: 60_000_000_000, loop: .shared)
        try await LayerHandshake.run(layers, over: stream, loop: .shared)
        let probe = Probe()
        let link = Link(machine: LineMachine(probe), loop: .shared, maximumOutboxBytes: 1 << 20)
        link.attach(stream, layers: layers)
        #expect(await eventually { probe.openings == 1 })
        var sent: [UInt8] = []
        while sent.count < 100_000 {
            let size = min([1, 125, 126, 1_000, 66_000].randomElement() ?? 1, 100_000 - sent.count)
            let byte = UInt8(ascii: "a") + UInt8(sent.count % 26)
            let line = [UInt8](repeating: byte, count: size - 1) + [UInt8(ascii: "\n")]
            sent += line
            #expect(await link.send(line))
        }
        try await server.waitForLine(containing: isText ? "all str" : "all bytes")
        #expect(await eventually { probe.byteCount == sent.count })
        #expect(probe.bytes == sent)
        link.perform { $0.wantsClose = true }
        try await server.waitForLine(containing: "closed 1000")
        #expect(await eventually { probe.ends.count == 1 })
        await server.kill()
    }
}
