package import LoopbackBroker
package import MessagingShell
package import TestSupport
import Testing
package import Transport

/// The options of which server a client reaches, and by which way: the configurations of all clients have them.
package protocol ServerOptions: Sendable {
    var serverOrder: ServerOrder { get set }
    var proxy: Proxy { get set }
    var reconnect: ReconnectPolicy { get set }
    var connectTimeout: Duration { get set }
    var usesNetworkMonitor: Bool { get set }
    var network: NetworkOptions { get set }
    var serviceClass: ServiceClass { get set }
    var threadQuality: ServiceClass { get set }
    var threadCount: Int { get set }
}

extension OptionRow {
    /// The rows of ``ServerOptions``.
    ///
    /// - Parameters:
    ///   - scheme: the scheme of the client's URLs.
    ///   - options: the configuration that the rows change.
    ///   - quality: a quality of threads that no other test of the client has.
    ///   - port: returns the port of a broker.
    ///   - failedServer: returns the server of an event that reports a failed attempt.
    ///   - makeClient: makes a client, which has no way to its servers if there is a monitor of the network, and whose time is
    ///     that of a clock if there is one.
    package static func serverRows<Options: ServerOptions, Client: MessagingClient>(
        scheme: String, _ options: Options, quality: ServiceClass, port: @escaping @Sendable (LoopbackBroker) -> Int?,
        failedServer: @escaping @Sendable (Client.Event) -> BrokerURL?,
        makeClient: @escaping @Sendable (_ urls: [String], Options, NetworkMonitor?, ManualClock?) -> Client
    ) -> [OptionRow] where Client.Failure: ClientError {
        @Sendable func client(
            _ servers: String..., network: NetworkMonitor? = nil, clock: ManualClock? = nil,
            _ change: (inout Options) -> Void
        ) -> Client {
            var changed = options
            change(&changed)
            return makeClient(servers.map { "\(scheme)://\($0)" }, changed, network, clock)
        }
        func networkRow(_ option: String, name: String? = nil) -> OptionRow {
            OptionRow(name ?? "network.\(option)") {
                let broker = try await LoopbackBroker.judged()
                let port = port(broker) ?? 0
                try await ClientChecks.network(option, port: port) { network in
                    client("127.0.0.1:\(port)") { $0.network = network }
                }
                await broker.stop()
            }
        }
        return [
            OptionRow("serverOrder") {
                func order(_ order: ServerOrder) async throws -> [String] {
                    var changed = options
                    changed.serverOrder = order
                    let urls = (0..<10).map { "\(scheme)://s\($0)" }
                    let client = makeClient(urls, changed, NetworkMonitor(), nil)
                    let events = client.events
                    await #expect(throws: Client.Failure.self) { try await client.connect() }
                    return try await withTimeout(.patience, "an attempt at each server") {
                        var tried: [String] = []
                        for await event in events {
                            if let server = failedServer(event) { tried.append(server.host) }
                            if tried.count == urls.count { break }
                        }
                        return tried
                    }
                }
                let listed = try await order(.listed)
                #expect(listed == (0..<10).map { "s\($0)" })
                let shuffled = try await order(.shuffled(seed: 1))
                #expect(shuffled != listed && Set(shuffled) == Set(listed))
            },
            OptionRow("serviceClass") {
                let broker = try await LoopbackBroker.judged()
                let port = port(broker) ?? 0
                try await ClientChecks.serviceClass(port: port) { serviceClass in
                    client("127.0.0.1:\(port)") { $0.serviceClass = serviceClass }
                }
                await broker.stop()
            },
            networkRow("interface", name: "network"), networkRow("interface"), networkRow("localAddress"),
            networkRow("interfaceType"), networkRow("allowsExpensive"), networkRow("allowsConstrained"),
            networkRow("prefersNoProxies"),
            OptionRow("threadQuality") {
                await ClientChecks.threadQuality { quality, port in
                    client("127.0.0.1:\(port)") { $0.threadQuality = quality }
                }
            },
            OptionRow("threadCount") {
                ClientChecks.threadCount { count in
                    client("127.0.0.1:1") { ($0.threadQuality, $0.threadCount) = (quality, count) }
                }
            },
            OptionRow("usesNetworkMonitor") {
                await ClientChecks.networkMonitor { follows, policy, network in
                    client("broker.example", network: network) {
                        ($0.usesNetworkMonitor, $0.reconnect) = (follows, policy)
                    }
                }
            },
            OptionRow("proxy") {
                // Nobody is there to answer for the server.
                let broker = try await LoopbackBroker.judged()
                let address = "127.0.0.1:\(FreePort.next())"
                for proxy in [Proxy.http("http://\(address)"), .socks5("socks5://\(address)")] {
                    let client = client("127.0.0.1:\(port(broker) ?? 0)") { $0.proxy = proxy }
                    await #expect(throws: Client.Failure.self) { try await client.connect() }
                }
                #expect(broker.statistics.connections == 0)
                await broker.stop()
            },
            OptionRow("connectTimeout") {
                let clock = try ManualClock()
                let broker = try await LoopbackBroker.judged(clock: clock)
                await broker.freeze()
                let client = client("127.0.0.1:\(port(broker) ?? 0)", clock: clock) { $0.connectTimeout = .seconds(50) }
                let states = client.states
                let connecting = Task { try await client.connect() }
                for await state in states { if case .connecting = state { break } }
                await clock.advance(by: .seconds(49))
                guard case .connecting = client.state else {
                    Issue.record("\(client.state) before its time is over")
                    return
                }
                await clock.advance(by: .seconds(1))
                let error = await #expect(throws: Client.Failure.self) { try await connecting.value }
                #expect(error?.code == .timedOut)
                await broker.thaw()
                await broker.stop()
            },
        ]
    }
}
