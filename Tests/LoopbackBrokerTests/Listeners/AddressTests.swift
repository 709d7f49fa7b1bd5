import ClientTestSupport
import Foundation
import MQTT
import STOMP
import TestSupport
import Testing
import Transport

@testable import LoopbackBroker

/// Every way in, with the clients of this package.
@Suite(.turns) struct AddressTests {
    /// A broker that listens on everything it can.
    private func withEverything(
        _ body: (LoopbackBroker, TLSOptions) async throws -> Void
    ) async throws {
        let certificates = Certificates()
        let scratch = try ScratchDirectory("sockets")
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        options.mqttSocket = scratch.file("mqtt 100%.sock")
        options.stompSocket = scratch.file("stomp.sock")
        var trust = TLSOptions()
        trust.trust = .authorities([.file(certificates.authority.certificate)])
        try await withBroker(options) { try await body($0, trust) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == [])
    }

    /// Larger than what a frame's header says in two bytes, and no UTF-8.
    private let large = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    @Test func `an MQTT client reaches it by each of its URLs`() async throws {
        try await withEverything { broker, trust in
            let urls = [
                broker.urls.mqtt, broker.urls.mqtts, broker.urls.ws, broker.urls.wss, broker.urls.mqttSocket,
            ]
            for (number, url) in urls.enumerated() {
                for version in [MQTTVersion.v3_1, .v5_0] {
                    var configuration = MQTTConfiguration(clientID: "client-\(number)")
                    configuration.version = version
                    configuration.tls = trust
                    let client = MQTTClient(try #require(url), configuration: configuration)
                    try await client.connect()
                    let messages = try await client.subscribe(to: "t/\(number)", qos: .exactlyOnce)
                    try await client.publish(large, to: "t/\(number)", qos: .exactlyOnce)
                    for try await message in messages {
                        #expect(message.bytes == large)
                        break
                    }
                    await client.disconnect()
                }
            }
        }
    }

    @Test func `a STOMP client reaches it by each of its URLs`() async throws {
        try await withEverything { broker, trust in
            let urls = [
                broker.urls.stomp, broker.urls.stomps, broker.urls.ws, broker.urls.wss, broker.urls.stompSocket,
            ]
            for (number, url) in urls.enumerated() {
                for sendsText in [false, true] {
                    var configuration = STOMPConfiguration()
                    configuration.tls = trust
                    configuration.webSocket.sendsText = sendsText
                    let client = STOMPClient(try #require(url), configuration: configuration)
                    try await client.connect()
                    let messages = try await client.subscribe(to: "/queue/\(number)")
                    try await client.sendAndConfirm(large, to: "/queue/\(number)")
                    for try await message in messages {
                        #expect(message.bytes == large)
                        break
                    }
                    await client.disconnect()
                }
            }
        }
    }

    @Test func `has no URL for what it does not serve`() async throws {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .none
        options.wsPort = .none
        try await withBroker(options) { broker in
            #expect(broker.urls.stomp == "stomp://127.0.0.1:\(broker.ports.stomp ?? 0)")
            #expect([broker.urls.mqtt, broker.urls.ws, broker.urls.mqtts, broker.urls.wss] == [nil, nil, nil, nil])
            #expect(broker.urls.mqttSocket == nil)
            #expect(broker.ports.ws == nil && broker.ports.stomps == nil)
        }
    }

    @Test func `the URL of a missing listener throws an error that names the option to set`() async throws {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .none
        try await withBroker(options) { broker in
            let served = try [broker.stompURL, broker.wsURL]
            #expect(served == [broker.urls.stomp, broker.urls.ws])
            func failure(_ url: () throws(TransportError) -> String) -> TransportError? {
                do throws(TransportError) { _ = try url() } catch { return error }
                return nil
            }
            let missing = [
                (failure { () throws(TransportError) in try broker.mqttURL }, "LoopbackBrokerOptions.mqttPort"),
                (failure { () throws(TransportError) in try broker.mqttsURL }, "LoopbackBrokerOptions.tls"),
                (failure { () throws(TransportError) in try broker.stompsURL }, "LoopbackBrokerOptions.tls"),
                (failure { () throws(TransportError) in try broker.wssURL }, "LoopbackBrokerOptions.tls"),
                (failure { () throws(TransportError) in try broker.mqttSocketURL }, "LoopbackBrokerOptions.mqttSocket"),
                (
                    failure { () throws(TransportError) in try broker.stompSocketURL },
                    "LoopbackBrokerOptions.stompSocket"
                ),
            ]
            for (error, option) in missing {
                #expect(error?.code == .badURL)
                #expect(error?.message.contains(option) == true)
            }
        }
        try await withEverything { broker, _ in
            let served = try [
                broker.mqttURL, broker.mqttsURL, broker.stompsURL, broker.wssURL, broker.mqttSocketURL,
                broker.stompSocketURL,
            ]
            let urls = broker.urls
            #expect(served == [urls.mqtt, urls.mqtts, urls.stomps, urls.wss, urls.mqttSocket, urls.stompSocket])
        }
    }

    @Test func `says what is wrong with its certificate when it starts`() async throws {
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(identity: TLSIdentity(certificates: .text("none"), key: .text("none")))
        let failure = await #expect(throws: TransportError.self) { try await LoopbackBroker.judged(options) }
        #expect(failure?.code == .tlsConfiguration)
    }

    @Test func `refuses a socket that somebody listens on, and replaces one that is left over`() async throws {
        let scratch = try ScratchDirectory("sockets")
        var options = LoopbackBrokerOptions()
        options.mqttSocket = scratch.file("broker.sock")
        try await withBroker(options) { broker in
            let failure = await #expect(throws: TransportError.self) { try await LoopbackBroker.judged(options) }
            #expect(failure?.code == .cannotListen)
            #expect(failure?.message.contains("another program listens there") == true)
            let client = MQTTClient(broker.urls.mqttSocket ?? "")
            try await client.connect()
            await client.disconnect()
        }
    }

    @Test func `another free port is tried when one is taken on ::1, and the error reports how often`() async throws {
        let taken = TransportError(.cannotListen, "Cannot listen on [::1]:4711: in use.", errno: EADDRINUSE)
        let exhausted = TransportError(.cannotListen, "Cannot listen on 127.0.0.1: no descriptors.", errno: EMFILE)
        for (failures, error, attempts) in [(2, taken, 3), (100, taken, 16), (100, exhausted, 1)] {
            var count = 0
            var failure: TransportError?
            do throws(TransportError) {
                _ = try await LoopbackListeners.openFree { () throws(TransportError) in
                    count += 1
                    if count <= failures { throw error }
                    return []
                }
            } catch {
                failure = error
            }
            #expect(count == attempts)
            #expect((failure == nil) == (failures == 2))
            #expect(failure?.message.contains(error.message) != false)
            #expect(attempts != 16 || failure?.message.contains("in 16 attempts") == true)
        }
    }

    @Test func `drops, freezes and stops what has not finished its handshake`() async throws {
        // The time that it has for its handshake does not pass, however busy the machine is.
        let broker = try await LoopbackBroker.judged(clock: ManualClock())
        do {
            let client = try await RawClient.open(broker.ports.ws)
            try await client.send("GET / HTTP/1.1\r\n")
            #expect(await eventually { broker.connectionCount == 1 })
            await broker.freeze()
            try await client.send("Host: x\r\nUpgrade: none\r\n\r\n")
            await #expect(throws: TimeoutError.self) {
                try await client.connection.receive(atLeast: 1, timeout: .milliseconds(100))
            }
            await broker.thaw()
            try await client.expect("HTTP/1.1 400 Bad Request\r\n")
            // The refusal is read before its connection is forgotten.
            #expect(await eventually { broker.connectionCount == 0 })
            let other = try await RawClient.open(broker.ports.ws)
            #expect(await eventually { broker.connectionCount == 1 })
            await broker.dropAllConnections()
            try await other.expectEnd()
            #expect(broker.connectionCount == 0)
        }
        await broker.stop()
    }
}
