import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import TestSupport
import Testing
import Transport

/// Files of the TLS options that are replaced while a client runs.
@Suite(.turns)
struct RenewedCertificateTests {
    private let certificates = Certificates()
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory("renewed") }

    /// A broker that demands a certificate of the tests' authority.
    private func broker() async throws -> LoopbackBroker {
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        options.tls?.clientAuthorities = [.file(certificates.authority.certificate)]
        return try await LoopbackBroker.judged(options)
    }

    /// A client that makes its next attempt when the test says so.
    private func client(_ url: String) -> MQTTClient {
        var configuration = MQTTConfiguration()
        configuration.reconnect.initialDelay = .seconds(3600)
        configuration.reconnect.maximumDelay = .seconds(3600)
        configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
        configuration.tls.identity = TLSIdentity(
            certificates: .file(folder.file("client.pem")), key: .file(folder.file("client.key")))
        return MQTTClient(url, configuration: configuration)
    }

    /// Waits for the next connection, or for the failure of the attempt.
    private func outcome(_ events: inout Updates<MQTTEvent>.AsyncIterator) async -> MQTTError.Code? {
        while let event = await events.next() {
            if case .stateChanged(.connected) = event { return nil }
            if case .stateChanged(.waiting(_, _, let failure)) = event, failure.code != .connectionLost {
                return failure.code
            }
        }
        return .cancelled
    }

    @Test(arguments: [true, false])
    func `a client that was refused is accepted with the certificate that replaces its old one`(
        overWebSocket: Bool
    ) async throws {
        let broker = try await broker()
        try folder.install(certificates.otherServer)
        let client = client(try overWebSocket ? broker.wssURL : broker.mqttsURL)
        var events = client.events.makeAsyncIterator()
        await client.start()
        #expect(await outcome(&events) == .clientCertificateRefused)
        try folder.install(certificates.client)
        client.networkChanged()
        #expect(await outcome(&events) == nil)
        await client.disconnect()
        await broker.stop()
    }

    enum Way: CaseIterable { case reconnect, loss, anew, suspension }

    @Test(arguments: Way.allCases)
    func `each connection shows the certificate that is in the files when it is made`(way: Way) async throws {
        let broker = try await broker()
        try folder.install(certificates.client)
        let client = client(try broker.mqttsURL)
        var events = client.events.makeAsyncIterator()
        await client.start()
        #expect(await outcome(&events) == nil)
        // The broker refuses this one, which shows that it was read.
        try folder.install(certificates.otherServer)
        let moving: Task<Void, any Error>?
        switch way {
        case .reconnect:
            moving = Task { try await client.reconnect() }
        case .loss:
            moving = nil
            await broker.dropAllConnections()
            #expect(await eventually { if case .waiting = client.state { true } else { false } })
            client.networkChanged()
        case .anew:
            moving = nil
            await client.disconnect()
            await client.start()
        case .suspension:
            moving = nil
            await client.suspend()
            client.resume()
        }
        #expect(await outcome(&events) == .clientCertificateRefused)
        await client.disconnect()
        _ = await moving?.result
        await broker.stop()
    }

    #if DEBUG
        @Test func `attempts that do not reach a server do not load the system's authorities again`() async throws {
            // The key log, which a debug build has, is created when OpenSSL reads the options.
            let log = folder.file("keys.log")
            var configuration = MQTTConfiguration()
            configuration.reconnect = .never
            configuration.tls.implementation = .openSSL
            configuration.tls.keyLogFile = log
            let client = MQTTClient("mqtts://127.0.0.1:\(FreePort.next())", configuration: configuration)
            for attempt in 1...5 {
                let error = await #expect(throws: MQTTError.self) { try await client.connect() }
                #expect(error?.code == .connectionRefused)
                #expect(FileManager.default.fileExists(atPath: log) == (attempt == 1))
                if attempt == 1 { try FileManager.default.removeItem(atPath: log) }
            }
        }
    #endif
}
