import TestSupport
import Testing
import Transport

@Suite(.turns) struct ClosingTests {
    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `the last bytes arrive although the peer goes on sending`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind, isTimeless: true).links()
        let flood = Task {
            while await ends.client.send([UInt8](repeating: 65, count: 4999) + [10]) {
                try? await Task.sleep(for: .microseconds(100))
            }
        }
        #expect(await eventually { ends.server.probe.byteCount > 20_000 }, "\(ends.client.traffic)")
        let farewell = Array(repeatElement([UInt8](repeating: 66, count: 999) + [10], count: 700).joined())
        ends.server.perform { machine in
            machine.output += farewell
            machine.wantsClose = true
        }
        #expect(await eventually { ends.client.probe.ends.count == 1 })
        #expect(ends.client.probe.byteCount == farewell.count)
        #expect(ends.client.probe.ends == [nil])
        await flood.value
        #expect(await eventually { ends.server.probe.ends.count == 1 })
    }

    @Test(arguments: SelectorKind.allCases)
    func `a peer that takes none of the last bytes is given up, a slow one is not`(
        selector: SelectorKind
    ) async throws {
        let setting = try Setting(selector, .memory)
        let frozen = MemoryPair.make()
        frozen.client.changeFaults { $0.capacity = 100 }
        let stuck = setting.link(Probe())
        stuck.attach(frozen.client)
        #expect(await eventually { stuck.probe.openings == 1 })
        let start = ContinuousClock.now
        stuck.perform { machine in
            machine.output += [UInt8](repeating: 65, count: 1000)
            machine.wantsClose = true
        }
        #expect(await eventually { stuck.probe.ends.count == 1 })
        #expect(ContinuousClock.now - start >= .seconds(5))
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a connection to a peer that is known to be silent ends without waiting for it to take the last bytes`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links { $0.wantsReadingPaused = true }
        // More than the system buffers.
        ends.client.append([UInt8](repeating: 10, count: 16 << 20))
        #expect(await eventually { ends.client.traffic.bytesSent > 0 })
        ends.client.perform { machine in
            machine.abandonsOutput = true
            machine.wantsClose = true
        }
        // Behind what the link itself has asked of the loop.
        await withCheckedContinuation { continuation in
            ends.setting.loop.execute { continuation.resume() }
        }
        #expect(ends.client.probe.ends == [nil])
    }

    @Test(arguments: SelectorKind.allCases)
    func `after a write that failed nothing more is written, and what the peer said last is read`(
        selector: SelectorKind
    ) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        let faulty = FaultyStream(pair.client)
        let client = setting.link(Probe())
        let server = setting.link(Probe())
        server.attach(pair.server)
        client.attach(faulty)
        #expect(await eventually { client.probe.openings == 1 && server.probe.openings == 1 })
        client.append(Array("one\n".utf8))
        #expect(await eventually { server.probe.byteCount == 4 })
        // The last words lie there unread when the write fails.
        client.perform { $0.wantsReadingPaused = true }
        client.append(Array("two\n".utf8))
        #expect(await eventually { server.probe.byteCount == 8 })
        server.append(Array("last words\n".utf8))
        #expect(await eventually { server.traffic.bytesSent == 11 })
        faulty.failNextWrite()
        client.append(Array("lost\n".utf8), urgent: true)
        client.append(Array("behind the hole\n".utf8), urgent: true)
        #expect(await eventually { client.probe.ends.count == 1 })
        #expect(client.probe.ends.first??.code == .connectionLost)
        #expect(client.probe.bytes == Array("last words\n".utf8))
        #expect(await eventually { server.probe.ends.count == 1 })
        #expect(server.probe.bytes == Array("one\ntwo\n".utf8))
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `both ends hear of a connection that one of them drops`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let ends = try await Setting(selector, kind).links()
        ends.client.dropConnection()
        #expect(await eventually { ends.client.probe.ends.count == 1 && ends.server.probe.ends.count == 1 })
        #expect(!ends.client.perform { $0.isOpen })
    }

    @Test func `the last bytes of a connection may take their time as long as they move`() async throws {
        let (clock, server) = try await Self.closing()
        // The server reads slowly, and goes on writing.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { unsafe buffer.deallocate() }
        for _ in 0..<9 {
            await clock.advance(by: .seconds(3))
            #expect(Self.isOpen(server))
            #expect(unsafe server.read(into: buffer) == .bytes(100))
        }
        #expect(unsafe server.read(into: buffer) == .bytes(100))
        await clock.advance(by: .seconds(2))
        #expect(!Self.isOpen(server))
    }

    /// A client that has written some bytes to a stream that holds 100, and the server's end of it.
    private static func narrow(
        writing bytes: [UInt8]
    ) async throws -> (clock: ManualClock, client: Link<LineMachine>, server: MemoryStream) {
        let clock = try ManualClock()
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.capacity = 100 }
        let client = Link(machine: LineMachine(Probe()), loop: clock.loop, maximumOutboxBytes: 1 << 20)
        client.attach(pair.client)
        await clock.waitUntilQuiet()
        client.append(bytes)
        await clock.waitUntilQuiet()
        return (clock, client, server: pair.server)
    }

    @Test func `last bytes that wait for room in the stream may take their time as long as they move`() async throws {
        let (clock, client, server) = try await Self.narrow(writing: [UInt8](repeating: 65, count: 100))
        // The stream is full by now.
        client.perform { machine in
            machine.output += [UInt8](repeating: 66, count: 1000)
            machine.wantsClose = true
        }
        await clock.waitUntilQuiet()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { unsafe buffer.deallocate() }
        for _ in 0..<10 {
            await clock.advance(by: .seconds(3))
            #expect(client.probe.ends == [])
            #expect(unsafe server.read(into: buffer) == .bytes(100))
        }
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [nil])
        #expect(unsafe server.read(into: buffer) == .bytes(100))
    }

    @Test func `last bytes that wait for room in the stream and no longer move are discarded`() async throws {
        let (clock, client, server) = try await Self.narrow(writing: [UInt8](repeating: 10, count: 50))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { unsafe buffer.deallocate() }
        #expect(unsafe server.read(into: buffer) == .bytes(50))
        client.perform { machine in
            machine.output += [UInt8](repeating: 10, count: 1000)
            machine.wantsClose = true
        }
        // The stream takes the first of them, its peer none.
        await clock.advance(by: .seconds(4))
        #expect(client.probe.ends == [])
        await clock.advance(by: .seconds(2))
        #expect(client.probe.ends == [nil])
        #expect(client.probe.discardedLines == 900)
    }

    @Test func `a connection whose last bytes no longer move is closed`() async throws {
        let (clock, server) = try await Self.closing()
        await clock.advance(by: .seconds(7))
        #expect(!Self.isOpen(server))
    }

    /// A client that has written a thousand bytes to a stream that keeps what the server has not read, and is leaving.
    private static func keeping() async throws -> (clock: ManualClock, client: Link<LineMachine>, server: MemoryStream)
    {
        let clock = try ManualClock()
        let pair = MemoryPair.make()
        let client = Link(machine: LineMachine(Probe()), loop: clock.loop, maximumOutboxBytes: 1 << 20)
        client.attach(FaultyStream(pair.client, keepsWrittenBytes: true))
        await clock.waitUntilQuiet()
        client.perform { machine in
            machine.output += [UInt8](repeating: 65, count: 1000)
            machine.wantsClose = true
        }
        await clock.waitUntilQuiet()
        return (clock, client, pair.server)
    }

    @Test func `a connection has ended when the peer has ended it, if its last bytes are still in the process`()
        async throws
    {
        let (clock, client, server) = try await Self.keeping()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { unsafe buffer.deallocate() }
        for _ in 0..<10 {
            await clock.advance(by: .milliseconds(900))
            #expect(client.probe.ends == [])
            #expect(unsafe server.read(into: buffer) == .bytes(100))
        }
        #expect(unsafe server.read(into: buffer) == .endOfStream)
        // What the peer still says is dropped.
        #expect(Self.isOpen(server))
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [] && client.probe.byteCount == 0)
        server.close()
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [nil])
    }

    @Test
    func `a connection has ended after a second in which none of its last bytes moved, and they may still arrive`()
        async throws
    {
        let (clock, client, server) = try await Self.keeping()
        await clock.advance(by: .milliseconds(900))
        #expect(client.probe.ends == [])
        await clock.advance(by: .milliseconds(100))
        #expect(client.probe.ends == [nil])
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { unsafe buffer.deallocate() }
        for _ in 0..<9 {
            await clock.advance(by: .seconds(3))
            #expect(Self.isOpen(server))
            #expect(unsafe server.read(into: buffer) == .bytes(100))
        }
    }

    @Test func `the last bytes still arrive when the owner no longer waits for the end, and another connection begins`()
        async throws
    {
        let (clock, client, server) = try await Self.keeping()
        client.dropConnection()
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [nil])
        let next = MemoryPair.make()
        client.attach(next.client)
        await clock.waitUntilQuiet()
        #expect(client.probe.openings == 2)
        await clock.advance(by: .seconds(2))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2000, alignment: 1)
        defer { unsafe buffer.deallocate() }
        #expect(Self.isOpen(server))
        #expect(unsafe server.read(into: buffer) == .bytes(1000))
        server.close()
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [nil])
        client.append([66, 10])
        await clock.waitUntilQuiet()
        #expect(unsafe next.server.read(into: buffer) == .bytes(2))
    }

    /// A client that has written a thousand bytes, all that it had, and left; the server has not read them.
    private static func closing() async throws -> (clock: ManualClock, server: MemoryStream) {
        let clock = try ManualClock()
        let pair = MemoryPair.make()
        let client = Link(machine: LineMachine(Probe()), loop: clock.loop, maximumOutboxBytes: 1 << 20)
        client.attach(pair.client)
        await clock.waitUntilQuiet()
        client.perform { machine in
            machine.output += [UInt8](repeating: 65, count: 1000)
            machine.wantsClose = true
        }
        await clock.waitUntilQuiet()
        #expect(client.probe.ends == [nil])
        return (clock, pair.server)
    }

    /// Whether the client still takes what its server writes.
    private static func isOpen(_ server: MemoryStream) -> Bool {
        let result = unsafe [UInt8](repeating: 66, count: 10).withUnsafeBytes { unsafe server.write(from: $0) }
        return if case .bytes = result { true } else { false }
    }

    @Test(arguments: SelectorKind.allCases)
    func `a connection ends although a child process has a copy of its descriptor`(selector: SelectorKind) async throws
    {
        let setting = try Setting(selector)
        var descriptors: [Int32] = [0, 0]
        #if canImport(Glibc)
            let type = Int32(SOCK_STREAM.rawValue)
        #else
            let type = SOCK_STREAM
        #endif
        try #require(unsafe socketpair(AF_UNIX, type, 0, &descriptors) == 0)
        for descriptor in descriptors { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        let copy = dup(descriptors[0])
        defer { close(copy) }
        let client = setting.link(Probe())
        let server = setting.link(Probe())
        client.attach(SocketStream(descriptor: descriptors[0], peerName: "server", isTCP: false))
        server.attach(SocketStream(descriptor: descriptors[1], peerName: "client", isTCP: false))
        #expect(await eventually { client.probe.openings == 1 && server.probe.openings == 1 })
        client.dropConnection()
        #expect(await eventually { server.probe.ends == [nil] })
    }
}
