import TestSupport
import Testing
import Transport

/// A client that wants to negotiate anew in the middle of a connection.
@Suite(.requires(program: "openssl"), .turns) struct TLSRenegotiationTests {
    @Test func `is refused by the server's side, and nothing breaks`() async throws {
        let certificates = try await TestCertificates.shared()
        let contexts = TLSContexts(
            server: TLSServerOptions(
                identity: TLSIdentity(
                    certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))))
        let probe = Probe()
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
            guard let layer = try? TLSLayer(server: contexts) else { return }
            var machine = LineMachine(probe)
            machine.echoes = true
            let layers = LayerStack([layer], deadline: .max, timeout: TransportError(.timedOut, "too slow"))
            Link(machine: machine, loop: .shared, maximumOutboxBytes: 1 << 20).attach(stream, layers: layers)
        }
        let client = try await ChildProcess.start(
            Command(
                "openssl", ["s_client", "-connect", "127.0.0.1:\(listener.port)", "-tls1_2", "-legacy_renegotiation"],
                input: .pipe))
        try await client.write("before\n")
        #expect(await eventually { probe.byteCount == 7 })
        // A line that begins with R asks for it.
        try await client.write("R\n")
        #expect(await eventually { client.text(.errors).contains("no renegotiation") }, "\(client.text(.errors))")
        #expect(probe.byteCount == 7)
        await client.kill()
        await listener.close()
    }
}
