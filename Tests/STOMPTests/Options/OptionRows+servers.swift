import ClientTestSupport
import LoopbackBroker
import MessagingShell
import MessagingWebSocketCore
import STOMP
import TestSupport
import Testing
import Transport

/// A client whose connections all fail.
private func client(_ urls: [String], _ change: (inout STOMPConfiguration) -> Void) -> STOMPClient {
    var configuration = STOMPConfiguration()
    change(&configuration)
    return STOMPClient(urls, configuration: configuration, loop: .shared, override: ClientChecks.noNetwork)
}

/// The servers that are tried in one round, none of which can be had.
private func attempts(_ names: [String], _ order: ServerOrder) async -> [String] {
    let client = client(names.map { "stomp://\($0)" }) { $0.serverOrder = order }
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

/// How connecting to a broker that speaks TLS ends.
private func connectByTLS(trusting isTrusted: Bool) async throws -> STOMPError? {
    let certificates = Certificates()
    var options = LoopbackBrokerOptions()
    options.tls = TLSServerOptions(
        identity: TLSIdentity(certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
    )
    return try await withBroker(options) { broker in
        var configuration = STOMPConfiguration()
        if isTrusted { configuration.tls.trust = .authorities([.file(certificates.authority.certificate)]) }
        return await failure(
            of: STOMPClient("stomps://localhost:\(broker.ports.stomps ?? 0)", configuration: configuration))
    }
}

private func failure(of client: STOMPClient) async -> STOMPError? {
    do throws(STOMPError) {
        try await client.connect()
        await client.disconnect()
        return nil
    } catch {
        return error
    }
}

extension OptionTableTests {
    /// Options of which server is reached, by which way, and how soon and how often that is tried.
    static let serverRows: [OptionRow] = [
        OptionRow("serverOrder") {
            let names = (0..<10).map { "s\($0)" }
            #expect(await attempts(names, .listed) == names)
            let shuffled = await attempts(names, .shuffled(seed: 1))
            #expect(shuffled != names && Set(shuffled) == Set(names))
        },
        OptionRow("serviceClass") {
            let broker = try await LoopbackBroker.start()
            let port = Int(broker.ports.stomp ?? 0)
            try await ClientChecks.serviceClass(port: port) { serviceClass in
                var configuration = STOMPConfiguration()
                configuration.serviceClass = serviceClass
                return STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
            }
            await broker.stop()
        },
        networkRow("interface", name: "network"), networkRow("interface"), networkRow("localAddress"),
        networkRow("interfaceType"), networkRow("allowsExpensive"), networkRow("allowsConstrained"),
        networkRow("prefersNoProxies"),
        OptionRow("threadQuality") {
            await ClientChecks.threadQuality { quality, port in
                var configuration = STOMPConfiguration()
                configuration.threadQuality = quality
                return STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
            }
        },
        OptionRow("threadCount") {
            ClientChecks.threadCount { count in
                var configuration = STOMPConfiguration()
                configuration.threadQuality = .responsive
                configuration.threadCount = count
                return STOMPClient("stomp://127.0.0.1:1", configuration: configuration)
            }
        },
        OptionRow("usesNetworkMonitor") {
            await ClientChecks.networkMonitor { follows, policy, network in
                var configuration = STOMPConfiguration()
                configuration.usesNetworkMonitor = follows
                configuration.reconnect = policy
                return STOMPClient(
                    ["stomp://broker.example"], configuration: configuration, loop: .shared,
                    override: ClientChecks.noNetwork, network: network)
            }
        },
        OptionRow("tls") {
            try await verify(connectByTLS(trusting: true) == nil)
            try await verify(connectByTLS(trusting: false) != nil)
        },
        OptionRow("webSocket") {
            var options = LoopbackBrokerOptions()
            options.allowedOrigins = ["http://here.example"]
            try await withBroker(options) { broker in
                for (origin, isAllowed) in [("http://here.example", true), ("http://elsewhere.example", false)] {
                    var configuration = STOMPConfiguration()
                    configuration.webSocket.headers = [("Origin", origin)]
                    let client = STOMPClient("ws://127.0.0.1:\(broker.ports.ws ?? 0)", configuration: configuration)
                    #expect(await (failure(of: client) == nil) == isAllowed)
                }
            }
        },
        OptionRow("webSocket.sendsText") {
            // ActiveMQ Classic reads no others.
            let usual = try await FakeWebSocket.kindsOfMessages { _ in }
            #expect(usual == [.text])
            for sendsText in [false, true] {
                let kinds = try await FakeWebSocket.kindsOfMessages { $0.webSocket.sendsText = sendsText }
                #expect(kinds == [sendsText ? .text : .binary])
            }
        },
        OptionRow("proxy") {
            // Nobody is there to answer for the server.
            try await withBroker { broker in
                let client = broker.client { $0.proxy = .http("http://127.0.0.1:\(FreePort.next())") }
                #expect(await failure(of: client) != nil)
                #expect(broker.statistics.connections == 0)
            }
        },
        OptionRow("reconnect") {
            let client = client(["stomp://nowhere"]) {
                $0.reconnect.firstConnectAttempts = 2
                $0.reconnect.initialDelay = .milliseconds(1)
            }
            var events = client.events.makeAsyncIterator()
            let connecting = Task { try await client.connect() }
            var count = 0
            while let event = await events.next() {
                if case .attemptFailed = event { count += 1 }
                if case .stateChanged(.disconnected) = event { break }
            }
            _ = await connecting.result
            #expect(count == 2)
        },
        OptionRow("connectTimeout") {
            let silent = try SilentServer()
            var configuration = STOMPConfiguration()
            configuration.connectTimeout = .milliseconds(50)
            let client = STOMPClient("stomp://127.0.0.1:\(silent.port)", configuration: configuration)
            try await within(.seconds(25)) { #expect(await failure(of: client) != nil) }
        },
    ]

    private static func networkRow(_ option: String, name: String? = nil) -> OptionRow {
        OptionRow(name ?? "network.\(option)") {
            let broker = try await LoopbackBroker.start()
            let port = Int(broker.ports.stomp ?? 0)
            try await ClientChecks.network(option, port: port) { network in
                var configuration = STOMPConfiguration()
                configuration.network = network
                return STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
            }
            await broker.stop()
        }
    }
}
