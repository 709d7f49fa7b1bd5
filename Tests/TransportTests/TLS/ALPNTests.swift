import TestSupport
import Testing
import Transport

/// What is offered by ALPN (RFC 7301), against OpenSSL.
@Suite(.turns) struct ALPNTests {
    @Test(arguments: [
        // The server's preference counts among what is offered.
        (offered: ["x-other", "mqtt"], chosen: "mqtt"), (offered: ["http/1.1", "mqtt"], chosen: "mqtt"),
        (offered: ["http/1.1"], chosen: "http/1.1"), (offered: [], chosen: nil),
    ])
    func `the server chooses among the protocols of the options`(offered: [String], chosen: String?) async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) { $0.applicationProtocols = ["mqtt", "http/1.1"] }
        var options = TLSOptions.trusting(certificates)
        options.applicationProtocols = offered
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        #expect(connection.layer.applicationProtocol == chosen)
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `a server that speaks none of the protocols refuses the connection`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) { $0.applicationProtocols = ["mqtt", "http/1.1"] }
        var options = TLSOptions.trusting(certificates)
        options.applicationProtocols = ["x-other"]
        await #expect {
            try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        } throws: {
            ($0 as? TransportError)?.message.contains("no application protocol") == true
        }
    }

    @Test func `what the scheme needs is offered unless the options name others`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) { $0.applicationProtocols = ["mqtt", "http/1.1"] }
        var options = TLSOptions.trusting(certificates)
        for (own, chosen) in [(nil, "http/1.1"), (["mqtt"], "mqtt")] {
            options.applicationProtocols = own
            let layer = try TLSLayer(
                client: TLSContexts(client: options), host: "localhost", port: server.port, protocols: ["http/1.1"])
            let layers = LayerStack(
                [layer], deadline: MonotonicClock.now + 60_000_000_000, timeout: TransportError(.timedOut, "too slow"))
            let stream = try await Connector.connect(
                to: .host("127.0.0.1", port: server.port), timeout: 60_000_000_000, loop: EventLoop.shared)
            try await LayerHandshake.run(layers, over: stream, loop: EventLoop.shared)
            #expect(layer.applicationProtocol == chosen)
            EventLoop.shared.execute { stream.close() }
        }
    }

    @Test func `a protocol that cannot be offered is refused before anything is sent`() async throws {
        var options = TLSOptions.trusting(Certificates())
        for name in ["", String(repeating: "x", count: 256)] {
            options.applicationProtocols = [name]
            #expect { try TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1) } throws: {
                ($0 as? TransportError)?.code == .tlsConfiguration
            }
        }
    }
}
