import TestSupport
import Testing
import Transport

/// A peer that asks for new keys without end (RFC 8446 section 4.6.3).
@Suite(.turns) struct KeyUpdateTests {
    #if os(Linux)
        private typealias KeyUpdate = @convention(c) (OpaquePointer, Int32) -> Int32

        @Test func `a flood of key updates is answered with no more bytes than it has, and the connection works`()
            async throws
        {
            let certificates = Certificates()
            let keyUpdate: KeyUpdate = try OpenSSLLibrary.open(OpenSSLLibrary.usualNames).function("SSL_key_update")
            let identity = TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
            let server = try TLSLayer(server: TLSContexts(server: TLSServerOptions(identity: identity)))
            let pair = try LayerPair(
                client: TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1),
                server: server)
            try pair.exchange()
            #expect(server.version == "TLSv1.3")
            let connection = try #require(server.connection)
            let before = pair.sentByClient
            let count = 5000
            for _ in 0..<count {
                // SSL_KEY_UPDATE_REQUESTED; it leaves with the byte behind it.
                #expect(keyUpdate(connection, 1) == 1)
                try pair.send(fromServer: [1])
            }
            try pair.exchange()
            #expect(pair.atClient.count == count)
            // The record of an update and that of its byte take more than the one of the answer.
            #expect(pair.sentByClient - before <= count * 32)
            try pair.send(fromClient: [2, 3])
            try pair.send(fromServer: [4])
            try pair.exchange()
            #expect(pair.atServer == [2, 3] && pair.atClient.last == 4)
        }
    #endif
}
