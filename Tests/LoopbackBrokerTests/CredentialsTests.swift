import LoopbackBroker
import MQTT
import MessagingShell
import STOMP
import TestSupport
import Testing

/// What the closure for credentials may change beyond user name and password, in both clients.
@Suite(.turns) struct CredentialsTests {
    @Test(arguments: [true, false]) func aSignedURLReplacesTheOneOfTheClient(isMQTT: Bool) async throws {
        try await withBroker { broker in
            let signed = (broker.urls.ws ?? "") + "/signed?time=1&signature=hush"
            try await withClient(isMQTT, "ws://127.0.0.1:\(FreePort.next())/") { request in
                #expect(request.server.resource == "/")
                var credentials = Credentials()
                credentials.url = signed
                return credentials
            } _: { client in
                try await client.connect()
                #expect(client.server?.resource == "/signed?time=1&signature=hush")
                #expect(client.server?.description.hasSuffix("/signed?time=•••&signature=•••") == true)
            }
        }
    }

    @Test(arguments: [true, false]) func theUserInTheSignedURLIsLetIn(isMQTT: Bool) async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "key"), .init(name: "bob", password: "key")]
        try await withBroker(options) { broker in
            let port = (isMQTT ? broker.ports.mqtt : broker.ports.stomp) ?? 0
            let scheme = isMQTT ? "mqtt" : "stomp"
            let names = ["ann": "key", "bob": "wrong"]
            for (name, password) in names {
                try await withClient(isMQTT, "\(scheme)://127.0.0.1:\(FreePort.next())") { _ in
                    // The name beside the URL comes before the one in it.
                    var credentials = name == "ann" ? Credentials() : Credentials(userName: "bob", password: "key")
                    credentials.url = "\(scheme)://\(name):\(password)@127.0.0.1:\(port)"
                    return credentials
                } _: { client in
                    try await client.connect()
                }
            }
        }
    }

    @Test(arguments: [true, false]) func aQueryIsReplacedForEachAttempt(isMQTT: Bool) async throws {
        try await withBroker { broker in
            try await withClient(isMQTT, (broker.urls.ws ?? "") + "/path?token=0") { request in
                var credentials = Credentials()
                credentials.query = "token=hush-\(broker.statistics.connections + 1)"
                return credentials
            } _: { client in
                try await client.connect()
                #expect(client.server?.resource == "/path?token=hush-1")
                await broker.dropAllConnections()
                var seen: [String] = []
                while client.server?.resource != "/path?token=hush-2", let event = await client.events() {
                    seen.append(event)
                }
                #expect(client.server?.resource == "/path?token=hush-2")
                #expect(!seen.contains { $0.contains("hush") })
            }
        }
    }

    @Test(arguments: [true, false]) func headerFieldsAreAddedAndReplaced(isMQTT: Bool) async throws {
        try await withBroker { broker in
            for (origin, isLetIn) in [("http://localhost", true), ("http://elsewhere.example", false)] {
                try await withClient(isMQTT, broker.urls.ws ?? "", origin: "http://refused.example") { _ in
                    var credentials = Credentials()
                    // The broker looks at the origin; the options of the client have one that it refuses.
                    credentials.webSocketHeaders = ["origin": origin, "Authorization": "Bearer hush"]
                    return credentials
                } _: { client in
                    var failure = ""
                    do { try await client.connect() } catch { failure = "\(error)" }
                    #expect(failure.isEmpty == isLetIn)
                    #expect(!failure.contains("hush"))
                }
            }
        }
    }

    @Test(arguments: [true, false]) func mistakesAreReportedWithoutTheSecret(isMQTT: Bool) async throws {
        try await withBroker { broker in
            let plain = (isMQTT ? broker.urls.mqtt : broker.urls.stomp) ?? ""
            let cases: [(listed: String, url: String?, query: String?)] = [
                (broker.urls.ws ?? "", nil, "token=hush hush"), (plain, nil, "token=hush"),
                (plain, "nonsense://hush:hush@host?hush", nil), (plain, "http://host/a b?hush", nil),
            ]
            for (listed, url, query) in cases {
                try await withClient(isMQTT, listed) { _ in
                    var credentials = Credentials()
                    (credentials.url, credentials.query) = (url, query)
                    return credentials
                } _: { client in
                    let failure = await #expect(throws: (any Error).self) { try await client.connect() }
                    #expect(SecretSearch.leaks(of: "hush", in: failure.map { "\($0)" } ?? "") == [])
                }
            }
        }
    }

    // MARK: Parts

    /// What the tests need of a client of either protocol.
    private struct Client {
        let connect: () async throws -> Void
        let serverNow: () -> BrokerURL?
        /// The next event as text.
        let events: () async -> String?

        var server: BrokerURL? { serverNow() }
    }

    private func withClient(
        _ isMQTT: Bool, _ url: String, origin: String = "http://localhost",
        _ provider: @escaping @Sendable (CredentialsRequest) async throws -> Credentials?,
        _ body: (Client) async throws -> Void
    ) async throws {
        let policy = ReconnectPolicy(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        var webSocket = WebSocketOptions()
        webSocket.headers = [("Origin", origin)]
        if isMQTT {
            var configuration = MQTTConfiguration()
            (configuration.reconnect, configuration.webSocket) = (policy, webSocket)
            configuration.credentialsProvider = provider
            let client = MQTTClient(url, configuration: configuration)
            nonisolated(unsafe) var events = client.events.makeAsyncIterator()
            try await body(
                Client(connect: { try await client.connect() }, serverNow: { client.server }) {
                    await events.next().map { "\($0)" }
                })
            await client.disconnect()
        } else {
            var configuration = STOMPConfiguration()
            (configuration.reconnect, configuration.webSocket) = (policy, webSocket)
            configuration.credentialsProvider = provider
            let client = STOMPClient(url, configuration: configuration)
            nonisolated(unsafe) var events = client.events.makeAsyncIterator()
            try await body(
                Client(connect: { try await client.connect() }, serverNow: { client.server }) {
                    await events.next().map { "\($0)" }
                })
            await client.disconnect()
        }
    }
}
