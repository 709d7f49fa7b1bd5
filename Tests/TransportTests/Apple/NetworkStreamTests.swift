#if os(Linux) && canImport(Network)
    import Network
    import Synchronization
    import TestSupport
    import Testing

    @testable import Transport

    /// A stream of Network.framework: its bounds, its states, and its end.
    @Suite(.turns) struct NetworkStreamTests {
        @Test func `ten megabytes to a slow reader stay within the bound`() async throws {
            let setting = try Setting(.automatic, .network)
            let ends = try await setting.links(limit: 100_000) { $0.wantsReadingPaused = true }
            ends.server.probe.dropBytes()
            let line = [UInt8](repeating: 65, count: 65_535) + [10]
            let sender = Task {
                for _ in 0..<160 { guard await ends.client.send(line, limit: 100_000) else { return } }
            }
            #expect(await eventually { FakeNetwork.counts.mostUnsentBytes > 0 })
            ends.server.perform { $0.wantsReadingPaused = false }
            await sender.value
            #expect(await eventually { ends.server.probe.byteCount == 160 * line.count })
            #expect(FakeNetwork.counts.mostUnsentBytes <= NetworkStream.maximumUnsent)
        }

        @Test func `a reader that does not read stops the sender, and holds no more than the bound`() async throws {
            let setting = try Setting(.automatic, .network)
            let streams = try await setting.streams()
            let stream = try #require(streams.client as? NetworkStream)
            let loop = setting.loop
            // Attached without interest in reading: the first receive is all that may be outstanding.
            let handler = SilentHandler(loop: loop)
            loop.execute { stream.attach(handler, interest: []) }
            let block = [UInt8](repeating: 7, count: 1 << 16)
            var written = 0
            var refusals = 0
            while refusals < 200, written < 64 << 20 {
                let result = block.withUnsafeBytes { streams.server.write(from: $0) }
                if case .bytes(let count) = result {
                    written += count
                    refusals = 0
                } else {
                    refusals += 1
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            #expect(written < 64 << 20)
            #expect(stream.unreadBytes <= NetworkStream.maximumUnread)
            loop.execute { stream.close() }
            streams.server.endWriting()
        }

        @Test func `what was written is reported, and nothing as acknowledged`() async throws {
            let setting = try Setting(.automatic, .network)
            let ends = try await setting.links()
            ends.client.append(Array("0123456789\n".utf8))
            #expect(await eventually { ends.server.probe.byteCount == 11 })
            let stream = try await setting.streams().client
            let result = Array("line\n".utf8).withUnsafeBytes { stream.write(from: $0) }
            #expect(result == .bytes(5))
            #expect(await eventually { stream.progress == StreamProgress(written: 5, acknowledged: 0, passedOn: 5) })
            setting.loop.execute { stream.close() }
        }

        @Test func `a connection has ended only when the peer has its last bytes`() async throws {
            let line = Array("0123456789\n".utf8)
            // Half a second passes before anything is sent.
            let (ends, port) = try await slowLinks(bytesPerSecond: line.count * 2)
            defer { FakeNetwork.faults.bytesPerSecond[port] = nil }
            ends.client.perform { machine in
                machine.output += line
                machine.wantsClose = true
            }
            #expect(await eventually { ends.client.probe.ends.count == 1 })
            #expect(ends.server.probe.bytes == line)
            #expect(ends.client.probe.ends == [nil])
        }

        @Test func `last bytes that leave slowly all arrive`() async throws {
            let (ends, port) = try await slowLinks(bytesPerSecond: 20_000)
            defer { FakeNetwork.faults.bytesPerSecond[port] = nil }
            // All that the stream keeps.
            let line = [UInt8](repeating: 65, count: NetworkStream.maximumUnsent - 1) + [10]
            ends.client.perform { machine in
                machine.output += line
                machine.wantsClose = true
            }
            #expect(await eventually { ends.client.traffic.bytesSent == line.count })
            // The owner does not wait for so long.
            ends.client.dropConnection()
            #expect(await eventually { ends.client.probe.ends.count == 1 })
            #expect(await eventually { ends.server.probe.ends.count == 1 })
            #expect(ends.server.probe.byteCount == line.count)
        }

        @Test func `the service class is the connection's`() async throws {
            let server = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { _ in }
            for (serviceClass, expected) in [
                (ServiceClass.background, NWParameters.ServiceClass.background), (.standard, .bestEffort),
                (.responsive, .responsiveData),
            ] {
                let stream = try await Connector.connectByNetwork(
                    to: .host("127.0.0.1", port: server.port), serviceClass: serviceClass, timeout: 20_000_000_000,
                    loop: .shared)
                #expect(FakeNetwork.counts.parameters[server.port]?.serviceClass == expected)
                EventLoop.shared.execute { stream.close() }
            }
            await server.close()
        }

        @Test func `each network option is a parameter of the connection, and an absent interface is named`()
            async throws
        {
            let server = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { _ in }
            func parameters(_ change: (inout NetworkOptions) -> Void) async throws -> NWParameters {
                var network = NetworkOptions()
                change(&network)
                let stream = try await Connector.open(
                    to: .host("127.0.0.1", port: server.port), network: network, timeout: 20_000_000_000, loop: .shared)
                EventLoop.shared.execute { stream.close() }
                #expect(stream is NetworkStream, "sockets cannot honour what Network.framework can")
                return try #require(FakeNetwork.counts.parameters[server.port])
            }
            #expect(try await parameters { $0.allowsExpensive = false }.prohibitExpensivePaths)
            #expect(try await parameters { $0.allowsConstrained = false }.prohibitConstrainedPaths)
            #expect(try await parameters { $0.prefersNoProxies = true }.preferNoProxies)
            for (type, expected) in [
                (NetworkOptions.InterfaceType.wifi, NWInterface.InterfaceType.wifi), (.cellular, .cellular),
                (.wired, .wiredEthernet),
            ] {
                let found = try await parameters { $0.interfaceType = type }
                #expect(found.requiredInterfaceType == expected)
                #expect(!found.prohibitExpensivePaths && !found.prohibitConstrainedPaths && !found.preferNoProxies)
            }
            let local = try await parameters { $0.localAddress = "127.0.0.1" }
            #expect(local.requiredLocalEndpoint == .hostPort(host: NWEndpoint.Host("127.0.0.1"), port: .any))
            #expect(local.requiredInterface == nil && local.requiredInterfaceType == .other)
            FakeNetwork.interfaces = ["en7"]
            defer { FakeNetwork.interfaces = [] }
            #expect(try await parameters { $0.interface = "en7" }.requiredInterface?.name == "en7")
            await #expect { _ = try await parameters { $0.interface = "nowhere0" } } throws: {
                guard let error = $0 as? TransportError else { return false }
                return error.code == .unreachable && error.message.contains("nowhere0")
            }
            await #expect { _ = try await parameters { $0.localAddress = "a name" } } throws: {
                ($0 as? TransportError)?.code == .unsupported
            }
            await server.close()
        }

        @Test func `a host without a route names the permission for the local network`() async throws {
            let failures = NetworkFailures(peerName: "the server")
            let error = failures.error(try #require(.system(EHOSTUNREACH)), isOpen: false)
            #expect(error.code == .unreachable)
            #expect(error.message.contains("NSLocalNetworkUsageDescription"))
        }

        @Test func `what a setting or the App Sandbox denies is named`() async throws {
            let failures = NetworkFailures(peerName: "the server")
            let policyDenied: Int32 = -65570
            let noSuchRecord: Int32 = -65554
            let table: [(NWError, TransportError.Code, String)] = [
                (.dns(policyDenied), .localNetworkDenied, "NSLocalNetworkUsageDescription"),
                (.dns(noSuchRecord), .unknownHost, "Outgoing Connections (Client)"),
                (try #require(.system(EPERM)), .unreachable, "Outgoing Connections (Client)"),
            ]
            for (system, code, advice) in table {
                let error = failures.error(system, isOpen: false)
                #expect(error.code == code, "\(system)")
                #expect(error.message.contains(advice), "\(error)")
            }
            // Sockets are denied the same.
            #expect(TransportError.unreachable("the server", EPERM).message.contains("Outgoing Connections (Client)"))
            let error = await #expect(throws: TransportError.self) {
                try await Connector.connect(
                    to: .host("nowhere.invalid", port: 1), timeout: 20_000_000_000, loop: EventLoop.shared)
            }
            #expect(error?.message.contains("Outgoing Connections (Client)") == true)
        }

        @Test func `a refused connection and an unknown host have their errors`() async throws {
            await #expect { _ = try await connect(to: .host("127.0.0.1", port: UInt16(FreePort.next()))) } throws: {
                ($0 as? TransportError)?.code == .connectionRefused
            }
            await #expect { _ = try await connect(to: .host("nowhere.invalid", port: 1)) } throws: {
                ($0 as? TransportError)?.code == .unknownHost
            }
        }

        @Test func `cancelling the task ends the attempt and the connection`() async throws {
            let server = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { _ in }
            let cancelled = FakeNetwork.counts.cancelled
            let certificates = Certificates()
            let task = Task { () async -> TransportError? in
                do throws(TransportError) {
                    // It accepts and says nothing: the handshake would last until the deadline.
                    _ = try await Connector.connectByNetwork(
                        to: .host("127.0.0.1", port: server.port),
                        secure: TLSContexts(client: .trusting(certificates)), timeout: .max, loop: .shared)
                    return nil
                } catch {
                    return error
                }
            }
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            #expect(await eventually { FakeNetwork.counts.cancelled > cancelled })
            await server.close()
        }

        /// Two links; what the client's sends leaves at this speed.
        private func slowLinks(bytesPerSecond: Int) async throws -> (ends: Ends, port: UInt16) {
            let setting = try Setting(.automatic, .network)
            let accepted = Mutex<SocketStream?>(nil)
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { stream in
                accepted.withLock { $0 = stream }
            }
            FakeNetwork.faults.bytesPerSecond[listener.port] = bytesPerSecond
            let stream = try await Connector.connectByNetwork(
                to: .host("127.0.0.1", port: listener.port), timeout: 20_000_000_000, loop: setting.loop)
            #expect(await eventually { accepted.withLock { $0 != nil } })
            let ends = Ends(setting, client: setting.link(Probe()), server: setting.link(Probe()))
            ends.client.attach(stream)
            ends.server.attach(try #require(accepted.withLock { $0 }))
            #expect(await ends.areOpen())
            let port = listener.port
            await listener.close()
            return (ends, port)
        }

        private func connect(to endpoint: Endpoint) async throws(TransportError) -> any ByteStream {
            try await Connector.connectByNetwork(to: endpoint, timeout: 20_000_000_000, loop: .shared)
        }
    }

    private final class SilentHandler: LoopHandler, @unchecked Sendable {
        // Sendable because it has nothing of its own.
    }
#endif
