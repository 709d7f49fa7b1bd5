import Foundation
import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

/// Files of the TLS options that are replaced while a client runs.
@Suite(.turns)
struct RenewedCertificateTests {
    @Test func `a client that was refused is accepted with the certificate that replaces its old one`() async throws {
        let certificates = Certificates()
        let folder = try ScratchDirectory("renewed")
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        options.tls?.clientAuthorities = [.file(certificates.authority.certificate)]
        try await withBroker(options) { broker in
            try folder.install(certificates.otherServer)
            var configuration = STOMPConfiguration()
            configuration.reconnect.initialDelay = .seconds(3600)
            configuration.reconnect.maximumDelay = .seconds(3600)
            configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
            configuration.tls.identity = TLSIdentity(
                certificates: .file(folder.file("client.pem")), key: .file(folder.file("client.key")))
            let client = STOMPClient(try broker.stompsURL, configuration: configuration)
            await client.start()
            var refusals: [STOMPError.Code] = []
            for await state in client.states {
                if case .waiting(_, _, let failure) = state {
                    refusals.append(failure.code)
                    if refusals.count == 2 { break }
                    try folder.install(certificates.client)
                    client.networkChanged()
                }
                if case .connected = state { break }
            }
            #expect(refusals == [.clientCertificateRefused])
            await client.disconnect()
        }
    }
}
