import ClientTestSupport
import LoopbackBroker
import TestSupport
import Testing
import Transport

@testable import MQTT

/// A broker that speaks TLS, and a client of it.
private func connectByTLS(
    asksForCertificate: Bool = false, host: String = "localhost", _ change: (inout TLSOptions, Certificates) -> Void
) async throws -> MQTTError? {
    let certificates = Certificates()
    let identity = TLSIdentity(
        certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
    var options = LoopbackBrokerOptions()
    options.tls = TLSServerOptions(identity: identity)
    if asksForCertificate { options.tls?.clientAuthorities = [.file(certificates.authority.certificate)] }
    let broker = try await LoopbackBroker.judged(options)
    var configuration = MQTTConfiguration()
    configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
    change(&configuration.tls, certificates)
    let client = MQTTClient("mqtts://\(host):\(broker.ports.mqtts ?? 0)", configuration: configuration)
    var failure: MQTTError?
    do throws(MQTTError) { try await client.connect() } catch { failure = error }
    await client.disconnect()
    await broker.stop()
    return failure
}

private func code(_ error: MQTTError?) -> TransportError.Code? { (error?.underlying as? TransportError)?.code }

extension OptionTableTests {
    static let tlsRows: [OptionRow] = [
        OptionRow("tls") { try await verify(connectByTLS { tls, _ in tls = TLSOptions() } != nil) },
        OptionRow("tls.trust") {
            try await verify(connectByTLS { _, _ in } == nil)
            try await verify(connectByTLS { tls, _ in tls.trust = .system } != nil)
        },
        OptionRow("tls.identity") {
            let failure = try await connectByTLS(asksForCertificate: true) { tls, certificates in
                tls.identity = TLSIdentity(
                    certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
            }
            #expect(failure == nil)
        },
        OptionRow("tls.serverName") {
            try await verify(connectByTLS { tls, _ in tls.serverName = "another.example" } != nil)
        },
        OptionRow("tls.verification") {
            let failure = try await connectByTLS { tls, _ in
                tls.trust = .system
                tls.verification = .unsafeAcceptAnyCertificate
            }
            #expect(failure == nil)
        },
        OptionRow("tls.applicationProtocols") {
            // A name that is empty cannot be offered.
            let failure = try await connectByTLS { tls, _ in tls.applicationProtocols = [""] }
            #expect(code(failure) == .tlsConfiguration)
        },
        OptionRow("tls.resumesSessions") {
            try await verify(resumes(allowed: true))
            try await verify(!resumes(allowed: false))
        },
        OptionRow("tls.minimumVersion") {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.server) { $0.version = .tls12 }
            var configuration = MQTTConfiguration()
            configuration.reconnect = .never
            configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
            configuration.tls.minimumVersion = .tls13
            let client = MQTTClient("mqtts://localhost:\(server.port)", configuration: configuration)
            await #expect { try await client.connect() } throws: { code($0 as? MQTTError) == .tlsVersion }
        },
        OptionRow("tls.implementation") {
            #if !canImport(Network)
                let failure = try await connectByTLS { tls, _ in tls.implementation = .system }
                #expect(code(failure) == .tlsUnavailable)
            #endif
        },
        OptionRow("tls.pinnedKeys") {
            let pin = String(repeating: "A", count: 43) + "="
            let failure = try await connectByTLS { tls, _ in tls.pinnedKeys = [pin] }
            #expect(failure?.code == .certificatePinMismatch)
        },
        OptionRow("tls.additionalCheck") {
            let failure = try await connectByTLS { tls, _ in
                tls.additionalCheck = { _, name in throw TransportError(.certificateRefused, "Not \(name).") }
            }
            #expect(failure?.code == .certificateRefused)
            #expect(failure?.message.contains("Not localhost.") == true)
        },
        OptionRow("tls.revocation") {
            let failure = try await connectByTLS { tls, _ in tls.revocation = .required }
            #if canImport(Network)
                #expect(failure?.code == .certificateStatusUnknown)
            #else
                #expect(failure?.code == .unsupported)
            #endif
        },
        OptionRow("tls.preSharedKey") {
            let certificates = Certificates()
            let key: [UInt8] = Array(1...16)
            let server = try TLSTestServer.start(certificates.server) {
                $0.preSharedKey = ("meter-7", key)
                $0.reply = [0x20, 2, 0, 0]
            }
            for hasKey in [true, false] {
                var configuration = MQTTConfiguration()
                configuration.reconnect = .never
                if hasKey { configuration.tls.preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key) }
                let client = MQTTClient("mqtts://localhost:\(server.port)", configuration: configuration)
                var failure: MQTTError?
                do throws(MQTTError) { try await client.connect() } catch { failure = error }
                #expect((failure == nil) == hasKey, "\(String(describing: failure))")
                await client.disconnect()
            }
        },
        OptionRow("tls.keyLogFile") {
            // What it writes is a matter of TransportTests; a release build refuses it.
            let failure = try await connectByTLS { tls, _ in tls.keyLogFile = "/nowhere/keys.log" }
            #if DEBUG
                #expect(code(failure) == .tlsConfiguration)
            #else
                #expect(code(failure) == .unsupported)
            #endif
        },
        OptionRow("tls.libraryPath") {
            let failure = try await connectByTLS { tls, _ in tls.libraryPath = "/nowhere/libssl.so" }
            #expect(code(failure) == .tlsUnavailable)
        },
    ]

    static let webSocketRows: [OptionRow] = [
        OptionRow("webSocket") {
            try await verify(connectByWebSocket { $0.headers = [("Origin", "http://elsewhere.example")] }.error != nil)
        },
        OptionRow("webSocket.headers") {
            try await verify(connectByWebSocket { $0.headers = [("Origin", "http://here.example")] }.error == nil)
            try await verify(connectByWebSocket { $0.headers = [("Origin", "http://elsewhere.example")] }.error != nil)
        },
        OptionRow("webSocket.subprotocols") {
            try await verify(connectByWebSocket { $0.subprotocols = ["nonsense"] }.error != nil)
        },
        OptionRow("webSocket.sendsText") {
            // For STOMP, whose table has the test; MQTT stays binary, which the broker demands.
            try await verify(connectByWebSocket { $0.sendsText = true }.error == nil)
        },
        OptionRow("webSocket.maximumFrameSize") {
            let usual = try await connectByWebSocket { _ in }.bytesSent
            // Each byte gets a header and a mask of its own.
            try await verify(connectByWebSocket { $0.maximumFrameSize = 1 }.bytesSent > usual + 50)
        },
        OptionRow("webSocket.maximumMessageSize") {
            let usual = try await connectByWebSocket { _ in }.bytesSent
            // Four bytes have a header and a mask of their own.
            let short = try await connectByWebSocket { $0.maximumMessageSize = 4 }
            verify(short.error == nil && short.bytesSent > usual + 20)
        },
    ]

    private static func connectByWebSocket(
        _ change: (inout WebSocketOptions) -> Void
    ) async throws -> (error: MQTTError?, bytesSent: Int) {
        var options = LoopbackBrokerOptions()
        options.allowedOrigins = ["http://here.example"]
        let broker = try await LoopbackBroker.judged(options)
        var configuration = MQTTConfiguration(clientID: "by-websocket")
        change(&configuration.webSocket)
        let client = MQTTClient("ws://127.0.0.1:\(broker.ports.ws ?? 0)", configuration: configuration)
        var failure: MQTTError?
        do throws(MQTTError) { try await client.connect() } catch { failure = error }
        let bytesSent = client.core.link.traffic.bytesSent
        await client.disconnect()
        await broker.stop()
        return (failure, bytesSent)
    }

    /// Whether the second TLS connection to a server continues the session of the first.
    private static func resumes(allowed: Bool) async throws -> Bool {
        let certificates = Certificates()
        let identity = TLSIdentity(
            certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(identity: identity)
        let broker = try await LoopbackBroker.judged(options)
        let relay = try ShapedRelay.start(to: Int(broker.ports.mqtts ?? 0), bytesPerSecond: 1_000_000)
        var configuration = MQTTConfiguration()
        configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
        configuration.tls.resumesSessions = allowed
        // Network.framework continues no session of a server that only the options trust.
        configuration.tls.implementation = .openSSL
        let client = MQTTClient("mqtts://localhost:\(relay.port)", configuration: configuration)
        var returned: [Int] = []
        for _ in 0..<2 {
            let before = relay.bytesReturned
            try await client.connect()
            // Its answer comes behind the server's tickets.
            try await client.publish("x", to: "a", qos: .atLeastOnce)
            returned.append(relay.bytesReturned - before)
            await client.disconnect()
        }
        relay.stop()
        await broker.stop()
        // A handshake that continues a session has no certificate in it.
        return returned[1] < returned[0] - 300
    }
}
