import Foundation
import TestSupport
import Testing
import Transport

@Suite(.turns) struct ListenerTests {
    @Test(arguments: SelectorKind.allCases, [StreamKind.tcp, .unix])
    func `is there again on the same place at once, although old connections linger`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let setting = try Setting(selector, kind)
        var endpoint = setting.endpoint()
        // The system must not assign the port to another connection while the listener is closed.
        if case .host(let host, _) = endpoint { endpoint = .host(host, port: UInt16(FreePort.next())) }
        for _ in 0..<5 {
            let accepted = Collected<SocketStream>()
            let listener = try await Listener.listen(on: endpoint, loop: setting.loop) { accepted.append($0) }
            endpoint = setting.endpoint(of: listener, on: endpoint)
            let stream = try await Connector.connect(to: endpoint, timeout: 60_000_000_000, loop: setting.loop)
            #expect(await eventually { accepted.all.count == 1 })
            await listener.close()
            let closed = endpoint
            await #expect(throws: TransportError.self) {
                _ = try await Connector.connect(to: closed, timeout: 60_000_000_000, loop: setting.loop)
            }
            accepted.all[0].close()
            stream.close()
        }
    }

    #if os(Linux)
        @Test(arguments: SelectorKind.allCases)
        func `refuses connections once it is closed, although a copy of its descriptor is open`(
            selector: SelectorKind
        ) async throws {
            let setting = try Setting(selector)
            let endpoint = Endpoint.host("127.0.0.1", port: UInt16(FreePort.next()))
            let listener = try await Listener.listen(on: endpoint, loop: setting.loop) { _ in }
            // A child process has such a copy until it starts its program.
            let copy = try #require(copyOfSocket(boundTo: listener.port))
            defer { close(copy) }
            await listener.close()
            await #expect(throws: TransportError.self) {
                _ = try await Connector.connect(to: endpoint, timeout: 60_000_000_000, loop: setting.loop)
            }
            let next = try await Listener.listen(on: endpoint, loop: setting.loop) { _ in }
            await next.close()
        }

        private func copyOfSocket(boundTo port: UInt16) -> Int32? {
            for descriptor in Int32(3)..<4096 {
                var address = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let isSocket = withUnsafeMutableBytes(of: &address) {
                    getsockname(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &size) == 0
                }
                if isSocket, address.sin_family == AF_INET, address.sin_port == port.bigEndian {
                    return fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                }
            }
            return nil
        }
    #endif

    @Test(arguments: SelectorKind.allCases)
    func `says that a port is taken`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let listener = try await Listener.listen(on: setting.endpoint(), loop: setting.loop) { _ in }
        let taken = setting.endpoint(of: listener, on: setting.endpoint())
        do throws(TransportError) {
            _ = try await Listener.listen(on: taken, loop: setting.loop) { _ in }
            Issue.record("two listeners on one port")
        } catch {
            #expect(error.code == .cannotListen)
            #expect(error.errno == EADDRINUSE)
            #expect(error.message.contains("\(listener.port)"))
        }
        await listener.close()
        await listener.close()
    }

    /// On Darwin nothing can be set of an accepted socket whose peer has gone.
    @Test func `a connection that has ended before it was prepared is closed, and the next one is accepted`() throws {
        let ended = try OneWay()
        let good = try OneWay()
        var waiting = [ended.writer, good.writer]
        let accepted = System.acceptConnection {
            waiting.removeFirst()
        } preparing: { descriptor in
            errno = EINVAL
            return descriptor == ended.writer ? -1 : 0
        }
        #expect(accepted == good.writer)
        #expect(ended.isWriterClosed)
        #expect(!good.isWriterClosed)
        close(good.writer)
    }

    @Test func `a connection that the system has no memory to prepare is closed, and the reason is reported`() throws {
        let connection = try OneWay()
        let accepted = System.acceptConnection {
            connection.writer
        } preparing: { _ in
            errno = ENOBUFS
            return -1
        }
        let code = errno
        #expect(accepted == -1)
        #expect(code == ENOBUFS)
        #expect(connection.isWriterClosed)
    }

    /// A pipe, whose writer stands for a connection; its user closes the writer.
    private final class OneWay {
        let writer: Int32
        private let reader: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            (reader, writer) = (ends[0], ends[1])
            _ = fcntl(reader, F_SETFL, O_NONBLOCK)
        }

        deinit { close(reader) }

        /// The end of what can be read, unlike EAGAIN.
        var isWriterClosed: Bool {
            var byte: UInt8 = 0
            return read(reader, &byte, 1) == 0
        }
    }

    #if os(Linux)
        /// In a process of its own, where nobody else opens descriptors.
        @Test func `no descriptor is left after connections of all kinds`() async {
            await #expect(processExitsWith: .success) {
                func descriptors() -> Int {
                    let folder = "/proc/self/fd/"
                    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
                    // Dispatch makes its timers' descriptors whenever it first needs one.
                    return names.count {
                        (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + $0))
                            != "anon_inode:[timerfd]"
                    }
                }
                for selector in SelectorKind.allCases {
                    for kind in StreamKind.allCases {
                        let setting = try Setting(selector, kind)
                        var before = 0
                        for round in 0..<30 {
                            // The first round pays for what stays for ever.
                            if round == 1 { before = descriptors() }
                            let ends = try await setting.links { $0.echoes = true }
                            _ = await ends.client.send(Array("hello\n".utf8), urgent: true)
                            guard await eventually({ ends.client.probe.byteCount == 6 }) else { exit(2) }
                            switch round % 3 {
                            case 0: ends.client.dropConnection()
                            case 1: ends.server.perform { $0.wantsClose = true }
                            default: break
                            }
                            let port = UInt16(FreePort.next())
                            _ = try? await Connector.connect(
                                to: .host("localhost", port: port), timeout: 1_000_000_000, loop: setting.loop)
                        }
                        let expected = before
                        guard await eventually({ descriptors() <= expected }) else { exit(3) }
                    }
                }
                exit(0)
            }
        }
    #endif
}
