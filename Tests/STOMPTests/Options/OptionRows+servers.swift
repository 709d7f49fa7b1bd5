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
    /// Options of which server is reached, and by which way.
    static let serverRows: [OptionRow] = OptionRow.serverRows(
        scheme: "stomp", STOMPConfiguration(), quality: .responsive, port: { $0.ports.stomp },
        failedServer: { (event: STOMPEvent) in if case .attemptFailed(let server, _) = event { server } else { nil } },
        makeClient: { (urls, configuration, network, clock) -> STOMPClient in
            if let clock { return STOMPClient(urls, configuration: configuration, loop: clock.loop, clock: clock) }
            guard let network else { return STOMPClient(urls, configuration: configuration) }
            return STOMPClient(
                urls, configuration: configuration, loop: .shared, override: ClientChecks.noNetwork, network: network)
        })

    /// Options of the layers below STOMP, and of how often an attempt is made.
    static let layerRows: [OptionRow] = [
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
    ]
}

extension STOMPConfiguration: ServerOptions {}
