import TestSupport
import Testing
import Transport

/// A client that wants to negotiate anew in the middle of a connection.
@Suite(.turns) struct TLSRenegotiationTests {
    #if os(Linux)
        private typealias Renegotiate = @convention(c) (OpaquePointer) -> Int32
        private typealias Control = @convention(c) (OpaquePointer, Int32, Int, UnsafeMutableRawPointer?) -> Int
        private typealias ClearOptions = @convention(c) (OpaquePointer, UInt64) -> UInt64

        /// A client of TLS 1.2 that may negotiate anew, its connection, and what makes it do so.
        private func pair() throws -> (LayerPair, TLSLayer, renegotiate: () -> Int32) {
            let certificates = Certificates()
            let identity = TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
            let client = try TLSLayer(
                client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1)
            let connection = try #require(client.connection)
            let library = try OpenSSLLibrary.open(OpenSSLLibrary.usualNames)
            let control: Control = try library.function("SSL_ctrl")
            let clearOptions: ClearOptions = try library.function("SSL_clear_options")
            let renegotiate: Renegotiate = try library.function("SSL_renegotiate")
            // TLS 1.3 knows no renegotiation, and our client's own options forbid it.
            let (maximumVersion, tls12, noRenegotiation) = (Int32(124), 0x0303, UInt64(1) << 30)
            #expect(control(connection, maximumVersion, tls12, nil) == 1)
            _ = clearOptions(connection, noRenegotiation)
            let pair = try LayerPair(
                client: client, server: TLSLayer(server: TLSContexts(server: TLSServerOptions(identity: identity))))
            try pair.exchange()
            #expect(client.version == "TLSv1.2")
            return (pair, client, { renegotiate(connection) })
        }

        @Test func `is refused by the server's side, and nothing breaks`() async throws {
            let (pair, _, renegotiate) = try pair()
            try pair.send(fromClient: Array("before\n".utf8))
            try pair.exchange()
            #expect(renegotiate() == 1)
            // The request leaves with the next read or write.
            try pair.send(fromServer: Array("x".utf8))
            #expect { try pair.exchange() } throws: {
                ($0 as? TransportError)?.message.contains("no renegotiation") == true
            }
            #expect(pair.server.isOpen && pair.atServer == Array("before\n".utf8))
            try pair.send(fromServer: Array("after\n".utf8))
        }

        @Test func `what cannot be encrypted before the peer has answered is not dropped in silence`() throws {
            let (pair, client, renegotiate) = try pair()
            #expect(renegotiate() == 1)
            let error = #expect(throws: TransportError.self) { try pair.send(fromClient: Array("lost\n".utf8)) }
            #expect(error?.code == .tlsFailed)
            #expect(error?.message.contains("localhost:1") == true)
            // Nothing more can be sent.
            #expect(!client.isOpen)
        }
    #endif
}
