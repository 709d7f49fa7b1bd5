#if os(Linux) && canImport(Network)
    import Network
    import Synchronization
    import TestSupport
    import Testing

    @testable import Transport

    /// The monitor that Network.framework feeds.
    @Suite(.turns, .serialized) struct NetworkMonitorTests {
        @Test func `it follows the path of the system`() async throws {
            let monitor = try #require(NetworkMonitor.system)
            let changes = Atomic(0)
            defer { FakeNetwork.setPath(.satisfied) }
            let observation = monitor.observe { changes.add(1, ordering: .relaxed) }
            #expect(monitor.isAvailable)
            FakeNetwork.setPath(.unsatisfied)
            #expect(await eventually { !monitor.isAvailable && changes.load(ordering: .relaxed) == 1 })
            FakeNetwork.setPath(.satisfied, interfaces: ["en0"])
            #expect(await eventually { monitor.isAvailable && changes.load(ordering: .relaxed) == 2 })
            // Cellular instead of Wi-Fi.
            FakeNetwork.setPath(.satisfied, interfaces: ["pdp_ip0"])
            #expect(await eventually { changes.load(ordering: .relaxed) == 3 })
            // A VPN that connects on demand.
            FakeNetwork.setPath(.requiresConnection, interfaces: ["utun0"])
            #expect(await eventually { changes.load(ordering: .relaxed) == 4 })
            #expect(monitor.isAvailable)
            withExtendedLifetime(observation) {}
        }

        @Test func `a connection that stays without a path fails, one that gets it back continues`() async throws {
            let setting = try Setting(.automatic)
            let server = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { stream in
                // Answers nothing, and keeps the connection open.
                setting.loop.execute { withExtendedLifetime(stream) {} }
            }
            defer { FakeNetwork.setPath(.satisfied) }
            let short = try await stream(to: server.port, grace: .milliseconds(1))
            let long = try await stream(to: server.port, grace: .seconds(600))
            FakeNetwork.setPath(.unsatisfied)
            #expect(
                await eventually {
                    short.write(from: UnsafeRawBufferPointer(start: nil, count: 0)) == .failed(ENETDOWN)
                })
            #expect(short.failure(ENETDOWN).code == .connectionLost)
            FakeNetwork.setPath(.satisfied)
            let line = Array("line\n".utf8)
            #expect(line.withUnsafeBytes { long.write(from: $0) } == .bytes(5))
            setting.loop.execute {
                short.close()
                long.close()
            }
            await server.close()
        }

        @Test func `a connection without a path fails at once where the system never grants one, and names the reason`()
            async throws
        {
            let setting = try Setting(.automatic)
            defer { FakeNetwork.setPath(.satisfied) }
            FakeNetwork.setPath(.unsatisfied)
            let error = await #expect(throws: TransportError.self) {
                try await NetworkConnecting.open(
                    to: .host("127.0.0.1", port: 1), parameters: NWParameters(tls: nil), peerName: "the broker",
                    failures: NetworkFailures(peerName: "the broker"), deadline: .max, loop: setting.loop,
                    waitsForPath: false)
            }
            #expect(error?.code == .unreachable)
            #expect(error?.message.contains("watchOS lets an app connect by itself only") == true)
        }

        @Test func `a denied permission for the local network is named, and granting it is enough`() async throws {
            let setting = try Setting(.automatic)
            let server = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
            defer { FakeNetwork.setPath(.satisfied) }
            func connect(timeout: Int64) async throws -> any ByteStream {
                try await Connector.connectByNetwork(
                    to: .host("127.0.0.1", port: server.port), timeout: timeout, loop: setting.loop)
            }
            FakeNetwork.setPath(.unsatisfied, because: .localNetworkDenied)
            await #expect { _ = try await connect(timeout: 1_000_000) } throws: {
                guard let error = $0 as? TransportError else { return false }
                return error.code == .localNetworkDenied && error.message.contains("NSLocalNetworkUsageDescription")
            }
            FakeNetwork.setPath(.unsatisfied)
            await #expect { _ = try await connect(timeout: 1_000_000) } throws: {
                ($0 as? TransportError)?.code == .unreachable
            }
            // The question is on the screen while the attempt waits.
            FakeNetwork.setPath(.unsatisfied, because: .localNetworkDenied)
            let connections = FakeNetwork.counts.connections
            let attempt = Task { try await connect(timeout: 600_000_000_000) }
            #expect(await eventually { FakeNetwork.counts.connections > connections })
            FakeNetwork.setPath(.satisfied)
            let stream = try await attempt.value
            setting.loop.execute { stream.close() }
            await server.close()
        }

        @Test(arguments: [
            (NWPath.UnsatisfiedReason.cellularDenied, TransportError.Code.unreachable, "mobile data off for this app"),
            (.wifiDenied, .unreachable, "allowed this app to use Wi-Fi"),
            (.vpnInactive, .unreachable, "a VPN that is not active"),
            (.localNetworkDenied, .localNetworkDenied, "Local Network"),
            (.notAvailable, .unreachable, "no network now"),
        ])
        func `an attempt that has no path names the reason`(
            reason: NWPath.UnsatisfiedReason, code: TransportError.Code, text: String
        ) async throws {
            let setting = try Setting(.automatic)
            defer { FakeNetwork.setPath(.satisfied) }
            FakeNetwork.setPath(.unsatisfied, because: reason)
            let error = await #expect(throws: TransportError.self) {
                try await Connector.connectByNetwork(
                    to: .host("127.0.0.1", port: 1), timeout: 1_000_000, loop: setting.loop)
            }
            #expect(error?.code == code)
            #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
        }

        /// A stream over a connection that is ready.
        private func stream(to port: UInt16, grace: DispatchTimeInterval) async throws -> NetworkStream {
            let endpoint = try #require(NWEndpoint(Endpoint.host("127.0.0.1", port: port)))
            let connection = NWConnection(to: endpoint, using: NWParameters(tls: nil))
            let queue = DispatchQueue(label: "viability")
            let isReady = Atomic(false)
            connection.stateUpdateHandler = { if $0 == .ready { isReady.store(true, ordering: .releasing) } }
            connection.start(queue: queue)
            #expect(await eventually { isReady.load(ordering: .acquiring) })
            let failures = NetworkFailures(peerName: "the server")
            return NetworkStream(connection, queue: queue, peerName: "the server", grace: grace) {
                failures.error($0, isOpen: true, hasDelivered: $1)
            }
        }
    }
#endif
