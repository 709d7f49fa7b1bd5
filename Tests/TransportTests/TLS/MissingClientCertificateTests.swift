import MessagingWire
import TestSupport
import Testing

@testable import Transport

/// A server that demands a client certificate, and a client that has none.
@Suite(.turns)
struct MissingClientCertificateTests {
    /// With TLS 1.3 the client's handshake succeeds before the server judges it, and what the client sends at once may
    /// destroy the alert.
    @Test func `is named over a WebSocket too, when the server leaves without an alert`() throws {
        let certificates = Certificates()
        var demands = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        demands.clientAuthorities = [.file(certificates.authority.certificate)]
        let server = try TLSLayer(server: TLSContexts(server: demands))
        let layers = LayerStack(
            [
                try TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 443),
                try WebSocketLayer(
                    host: "localhost", port: 443, isSecure: true, target: "/mqtt", subprotocols: ["mqtt"],
                    options: WebSocketOptions(), textMessages: nil),
            ], deadline: .max, timeout: TransportError(.timedOut, "too slow"))
        var (toServer, toClient, plain): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
        try server.opened(at: 0, wire: &toClient)
        try layers.begin(at: 0)
        try layers.take([], into: &toServer)
        try server.receive(toServer.span.bytes, at: 0, plain: &plain, wire: &toClient)
        try layers.receive(toClient.span.bytes, at: 0, into: &plain)
        toServer = []
        try layers.take([], into: &toServer)
        // The client's handshake is done, and its request has left.
        #expect(toServer.count > 200)
        let error = #expect(throws: TransportError.self) { try layers.endReceived() }
        #expect(error?.code == .clientCertificateRefused, "\(String(describing: error))")
    }
}
