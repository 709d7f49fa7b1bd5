import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import MessagingShell
import TestSupport
import Testing
import Transport

extension OptionTableTests {
    /// Options of how a connection comes about.
    static let connectingRows: [OptionRow] = [
        OptionRow(
            "fallbackVersions",
            shownBy: ConnectingTests
                .`falls back to the versions that are allowed, and stays with what the server takes`),
        OptionRow("credentialsProvider", shownBy: ReconnectTests.`credentials are asked for before every attempt`),
        OptionRow("connectProvider", shownBy: ReconnectTests.`each CONNECT may be changed`),
        OptionRow(
            "authentication",
            shownBy: ConnectingTests.`authenticates in steps, and renews it, also when the server asks`),
        OptionRow(
            "authentication.respond",
            shownBy: ConnectingTests.`an authentication that fails on this side ends the attempt for good`),
        OptionRow(
            "authentication.verify",
            shownBy: ConnectingTests.`the server's last data are verified before the app trusts it`),
        OptionRow("followsRedirects", shownBy: ConnectingTests.`goes where the server sends it, if that is allowed`),
    ]

    /// Options of which server is reached, and by which way.
    static let serverRows: [OptionRow] = [
        OptionRow("serverOrder") {
            let names = (0..<10).map { "s\($0)" }
            try await verify(attempts(names, .listed) == names)
            let shuffled = try await attempts(names, .shuffled(seed: 1))
            #expect(shuffled != names && Set(shuffled) == Set(names))
        },
        OptionRow("serviceClass") {
            let broker = try await LoopbackBroker.start()
            let port = Int(broker.ports.mqtt ?? 0)
            try await ClientChecks.serviceClass(port: port) { serviceClass in
                var configuration = MQTTConfiguration()
                configuration.serviceClass = serviceClass
                return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            }
            await broker.stop()
        },
        networkRow("interface", name: "network"), networkRow("interface"), networkRow("localAddress"),
        networkRow("interfaceType"), networkRow("allowsExpensive"), networkRow("allowsConstrained"),
        networkRow("prefersNoProxies"),
        OptionRow("threadQuality") {
            await ClientChecks.threadQuality { quality, port in
                var configuration = MQTTConfiguration()
                configuration.threadQuality = quality
                return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            }
        },
        OptionRow("threadCount") {
            ClientChecks.threadCount { count in
                var configuration = MQTTConfiguration()
                configuration.threadQuality = .background
                configuration.threadCount = count
                return MQTTClient("mqtt://127.0.0.1:1", configuration: configuration)
            }
        },
        OptionRow("usesNetworkMonitor") {
            await ClientChecks.networkMonitor { follows, policy, network in
                var configuration = MQTTConfiguration()
                configuration.usesNetworkMonitor = follows
                configuration.reconnect = policy
                return MQTTClient(
                    ["mqtt://broker.example"], configuration: configuration, loop: .shared,
                    override: ClientChecks.noNetwork, network: network)
            }
        },
        OptionRow("proxy") {
            // Nobody is there to answer for the server.
            let broker = try await LoopbackBroker.start()
            var configuration = MQTTConfiguration()
            configuration.proxy = .socks5("socks5://127.0.0.1:\(FreePort.next())")
            let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
            await #expect(throws: MQTTError.self) { try await client.connect() }
            #expect(broker.statistics.connections == 0)
            await broker.stop()
        },
    ]

    private static func networkRow(_ option: String, name: String? = nil) -> OptionRow {
        OptionRow(name ?? "network.\(option)") {
            let broker = try await LoopbackBroker.start()
            let port = Int(broker.ports.mqtt ?? 0)
            try await ClientChecks.network(option, port: port) { network in
                var configuration = MQTTConfiguration()
                configuration.network = network
                return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            }
            await broker.stop()
        }
    }

    /// The servers that are tried in one round, none of which can be had.
    private static func attempts(_ names: [String], _ order: ServerOrder) async throws -> [String] {
        var configuration = MQTTConfiguration()
        configuration.serverOrder = order
        let client = MQTTClient(
            names.map { "mqtt://\($0)" }, configuration: configuration, loop: .shared, override: ClientChecks.noNetwork)
        var events = client.events.makeAsyncIterator()
        let connecting = Task { try await client.connect() }
        var tried: [String] = []
        while let event = await events.next() {
            if case .attemptFailed(let server, _) = event { tried.append(server.host) }
            if case .stateChanged(.disconnected) = event { break }
        }
        _ = await connecting.result
        return tried
    }
}
