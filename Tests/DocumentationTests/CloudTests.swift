import ClientTestSupport
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// The settings of the article on clouds, against brokers with the limits of the services.
@Suite(.turns)
struct CloudTests {
    private let certificates = Certificates()

    /// Runs twenty subscriptions over three reconnects, and more messages than a second allows.
    private func run(
        _ configuration: MQTTConfiguration, _ options: LoopbackBrokerOptions, messages: Int
    ) async throws {
        var (options, configuration) = (options, configuration)
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        if configuration.tls.identity != nil {
            options.tls?.clientAuthorities = [.file(certificates.authority.certificate)]
        }
        configuration.tls.trust = .authorities([.file(certificates.authority.certificate)])
        configuration.reconnect.initialDelay = .milliseconds(10)
        let broker = try await LoopbackBroker.judged(options)
        let client = MQTTClient(try broker.mqttsURL, configuration: configuration)
        try await client.connect()
        var received: [MQTTSubscription.Iterator] = []
        for number in 0..<20 {
            received.append(try await client.subscribe(to: "site/\(number)/+").makeAsyncIterator())
        }
        for round in 0..<4 {
            for index in received.indices {
                try await client.publish("\(round)", to: "site/\(index)/state", qos: .atLeastOnce)
                #expect(try await received[index].next()?.text == "\(round)")
            }
            if round < 3 { await broker.dropAllConnections() }
            #expect(await eventually { client.counters.connections == min(4, round + 2) && client.state.isConnected })
        }
        let many = (0..<messages).map { MQTTOutgoingMessage("\($0)", to: "log/\($0 % 5)") }
        try await client.publish(many).check()
        #expect(client.counters.connections == 4)
        await client.disconnect()
        await broker.stop()
    }

    @Test(arguments: [false, true]) func `AWS IoT Core with a certificate`(isPort443: Bool) async throws {
        let client = certificates.client
        let configuration = awsIoT(certificate: client.certificate, key: client.key, isPort443: isPort443)
        try await run(configuration, .awsIoT, messages: 150)
        #expect(configuration.tls.applicationProtocols == (isPort443 ? ["x-amzn-mqtt-ca"] : nil))
    }

    @Test func `AWS IoT Core asks for a token before each attempt`() async throws {
        let calls = Mutex(0)
        var options = LoopbackBrokerOptions.awsIoT
        options.users = [.init(name: "thermometer-1?x-amz-customauthorizer-name=gate", password: "token")]
        let configuration = awsIoTWithAuthoriser("gate") {
            calls.withLock { $0 += 1 }
            return "token"
        }
        try await run(configuration, options, messages: 10)
        #expect(calls.withLock { $0 } == 4)
    }

    @Test func `AWS IoT Core with a signed URL`() async throws {
        let broker = try await LoopbackBroker.judged(.awsIoT)
        let url = try broker.wsURL
        let client = MQTTClient(
            "wss://endpoint.invalid/mqtt", configuration: awsIoTOverWebSocket { url + "/mqtt?X-Amz-Signature=0" })
        try await client.connect()
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `Azure Event Grid with a certificate`() async throws {
        let client = certificates.client
        var options = LoopbackBrokerOptions.azureEventGrid
        options.users = nil
        try await run(
            azureEventGrid(certificate: client.certificate, key: client.key), options, messages: 1_500)
    }

    @Test func `services with a user name and a password`() async throws {
        for (configuration, user) in [
            (hiveMQCloud(user: "ann", password: "secret"), "ann"), (emqx(user: "ann", password: "secret"), "ann"),
            (cloudAMQP(virtualHost: "lab", user: "ann", password: "secret"), "lab:ann"),
        ] {
            var options = LoopbackBrokerOptions()
            options.users = [.init(name: user, password: "secret")]
            try await run(configuration, options, messages: 10)
        }
    }

    @Test func `a program shows whether it stays within the limits`() async throws {
        #expect(try await staysWithinTheLimits { try await $0.publish("x", to: "a/b", qos: .atLeastOnce) })
        #expect(
            try await !staysWithinTheLimits { client in
                _ = try? await client.publish("x", to: "a/b/c/d/e/f/g/h/i", qos: .atLeastOnce)
            })
    }
}
