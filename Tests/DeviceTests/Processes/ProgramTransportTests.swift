import ClientTestSupport
import Foundation
import LoopbackBroker
import MessagingJudge
import TestSupport
import Testing

/// The programs and a broker that listens on everything.
@Suite(.turns)
struct ProgramTransportTests {
    private struct Bench {
        let broker: LoopbackBroker
        let certificates: Certificates

        func url(_ program: DeviceProgram, _ own: (LoopbackBroker.URLs) -> (mqtt: String?, stomp: String?)) -> String {
            let urls = own(broker.urls)
            return (program == .motions ? urls.mqtt : urls.stomp) ?? ""
        }
        func secure(_ program: DeviceProgram) -> String { url(program) { ($0.mqtts, $0.stomps) } }
    }

    /// - Parameter mayBreak: the rules that a test has a program break on purpose.
    private func withBroker(
        asksClients: Bool = false, mayBreak: Set<Clause> = [], _ body: (Bench) async throws -> Void
    ) async throws {
        let certificates = Certificates()
        let scratch = try ScratchDirectory("sockets")
        var options = LoopbackBrokerOptions()
        var tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        if asksClients { tls.clientAuthorities = [.file(certificates.authority.certificate)] }
        options.tls = tls
        options.mqttSocket = scratch.file("mqtt")
        options.stompSocket = scratch.file("stomp")
        let broker = try await LoopbackBroker.judged(options, mayBreak: mayBreak)
        do {
            try await body(Bench(broker: broker, certificates: certificates))
        } catch {
            await broker.stop()
            throw error
        }
        await broker.stop()
    }

    /// A replay of a moment, with no second attempt.
    private func run(
        _ program: DeviceProgram, _ url: String, _ more: [String] = [], environment: [String: String] = [:]
    ) async throws -> (status: TestSupport.ExitStatus, output: [String], errors: [String]) {
        try await program.run(
            ["--broker", url, "--no-reconnect", "--speed", "5000", "--interval", "10"] + more, environment: environment)
    }

    @Test(arguments: DeviceProgram.allCases)
    func `every scheme works`(program: DeviceProgram) async throws {
        try await withBroker { bench in
            let trust = ["--ca", bench.certificates.authority.certificate]
            let plain = bench.url(program) { ($0.mqtt, $0.stomp) }
            let socket = bench.url(program) { ($0.mqttSocket, $0.stompSocket) }
            let wss = bench.broker.urls.wss ?? ""
            for (url, more) in [
                (plain, []), (bench.broker.urls.ws ?? "", []), (socket, []), (bench.secure(program), trust),
                (wss, trust),
            ] {
                let result = try await run(program, url, more)
                #expect(result.status == .exited(0), "\(url): \(result.errors)")
                #expect(result.errors == [])
            }
        }
    }

    @Test(arguments: DeviceProgram.allCases)
    func `an unknown authority is refused, and accepted with a loud warning`(program: DeviceProgram) async throws {
        try await withBroker { bench in
            let refused = try await run(program, bench.secure(program))
            #expect(refused.status == .exited(78))
            #expect(refused.errors.count == 1)
            #expect(refused.errors.first?.contains("--ca FILE") == true)
            let accepted = try await run(program, bench.secure(program), ["--insecure"])
            #expect(accepted.status == .exited(0))
            #expect(accepted.errors.count == 1)
            #expect(accepted.errors.first?.hasPrefix("WARNING: --insecure") == true)
        }
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a client certificate is shown, and its lack has a status of its own`(program: DeviceProgram) async throws {
        try await withBroker(asksClients: true) { bench in
            let trust = ["--ca", bench.certificates.authority.certificate]
            let client = bench.certificates.client
            let shown = try await run(
                program, bench.secure(program), trust + ["--cert", client.certificate, "--key", client.key])
            #expect(shown.status == .exited(0), "\(shown.errors)")
            let missing = try await run(program, bench.secure(program), trust)
            #expect(missing.status == .exited(77), "\(missing.errors)")
            #expect(missing.errors.count == 1)
            let other = bench.certificates.server.key
            let mixed = try await run(
                program, bench.secure(program), trust + ["--cert", client.certificate, "--key", other])
            #expect(mixed.status == .exited(78), "\(mixed.errors)")
            #expect(mixed.errors.count == 1)
        }
    }

    @Test(arguments: DeviceProgram.allCases)
    func `TLS on one side only is told`(program: DeviceProgram) async throws {
        // The handshake of TLS is no packet and no frame.
        try await withBroker(mayBreak: [.malformedPacket, .malformedFrame]) { bench in
            let scheme = program == .motions ? "mqtt" : "stomp"
            let (plain, secure) = (bench.url(program) { ($0.mqtt, $0.stomp) }, bench.secure(program))
            let toSecure = try await run(
                program, secure.replacing("\(scheme)s:", with: "\(scheme):"))
            #expect(toSecure.status == .exited(76), "\(toSecure.errors)")
            #expect(toSecure.errors.first?.contains("use \(scheme)s:// instead") == true, "\(toSecure.errors)")
            let toSecureWeb = try await run(program, (bench.broker.urls.wss ?? "").replacing("wss:", with: "ws:"))
            #expect(toSecureWeb.status == .exited(76), "\(toSecureWeb.errors)")
            #expect(toSecureWeb.errors.first?.contains("use wss:// instead") == true, "\(toSecureWeb.errors)")
            let toPlain = try await run(program, plain.replacing("\(scheme):", with: "\(scheme)s:"))
            #expect(toPlain.status == .exited(76), "\(toPlain.errors)")
            #expect(toPlain.errors.first?.contains("TLS") == true, "\(toPlain.errors)")
        }
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a missing OpenSSL is named with the package to install`(program: DeviceProgram) async throws {
        let url = program == .motions ? "mqtts://localhost:1" : "stomps://localhost:1"
        let result = try await run(program, url, environment: ["MESSAGING_LIBSSL": "/nonexistent/libssl.so"])
        #expect(result.status == .exited(78))
        #expect(result.errors.count == 1)
        #if os(Linux)
            #expect(result.errors.first?.contains("install the package libssl3") == true, "\(result.errors)")
        #endif
    }
}
