#if canImport(Network)
    import STOMP
    import TestSupport
    import Testing
    import Transport

    @testable import MQTT
    @testable import MessagingShell

    /// Whole clients over Network.framework, or over its fake.
    @Suite(.serialized, .turns)
    struct NetworkTransportTests {
        private func mqtt(
            _ url: String, _ certificates: Certificates, _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) -> MQTTClient {
            var configuration = MQTTConfiguration(clientID: "network-%%%%")
            configuration.allowSlowBrokers()
            configuration.tls = .trusting(certificates)
            configuration.tls.implementation = .system
            configuration.reconnect.initialDelay = .milliseconds(20)
            configuration.reconnect.maximumDelay = .milliseconds(100)
            change(&configuration)
            return MQTTClient(url, configuration: configuration)
        }

        private func stomp(
            _ url: String, _ certificates: Certificates, _ change: (inout STOMPConfiguration) -> Void = { _ in }
        ) -> STOMPClient {
            var configuration = STOMPConfiguration()
            configuration.allowSlowBrokers()
            configuration.tls = .trusting(certificates)
            configuration.tls.implementation = .system
            configuration.reconnect.initialDelay = .milliseconds(20)
            configuration.reconnect.maximumDelay = .milliseconds(100)
            change(&configuration)
            return STOMPClient(url, configuration: configuration)
        }

        /// The first message whose text is this, sent again and again until it arrives: the subscription of a client that
        /// has reconnected comes after the connection.
        private func exchange(
            _ text: String, send: @escaping @Sendable () async throws -> Void, next: () async throws -> String?
        ) async throws {
            let sender = Task {
                while !Task.isCancelled {
                    try? await send()
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            defer { sender.cancel() }
            while let received = try await next(), received != text {}
        }

        @Test(.requires(.rabbitMQ)) func `RabbitMQ over wss with both clients, before and after it was killed`()
            async throws
        {
            let certificates = Certificates()
            let broker = try await RabbitMQ.start { $0.tls = certificates.brokerTLS() }
            let mqtt = mqtt("wss://guest:guest@localhost:\(try #require(broker.webMQTTTLSPort))/ws", certificates)
            let stomp = stomp("wss://guest:guest@localhost:\(try #require(broker.webStompTLSPort))/ws", certificates)
            try await mqtt.connect()
            try await stomp.connect()
            var topics = try await mqtt.subscribe(to: "network/#", qos: .atLeastOnce).makeAsyncIterator()
            var orders = try await stomp.subscribe(to: "/topic/network").makeAsyncIterator()
            for round in ["before", "after"] {
                try await exchange(round) {
                    try await mqtt.publish(round, to: "network/1", qos: .atLeastOnce)
                } next: {
                    try await topics.next()?.text
                }
                try await exchange(round) {
                    try await stomp.send(round, to: "/topic/network")
                } next: {
                    try await orders.next()?.text
                }
                guard round == "before" else { break }
                await broker.kill()
                try await broker.restart()
            }
            await mqtt.disconnect()
            await stomp.disconnect()
            await broker.stop()
        }

        @Test(.requires(.mosquitto)) func `Mosquitto over mqtts, before and after it was killed`() async throws {
            let certificates = Certificates()
            let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS() }
            let client = mqtt("mqtts://localhost:\(try #require(broker.tlsPort))", certificates)
            try await client.connect()
            var messages = try await client.subscribe(to: "network", qos: .exactlyOnce).makeAsyncIterator()
            for round in ["before", "after"] {
                try await exchange(round) {
                    try await client.publish(round, to: "network", qos: .exactlyOnce)
                } next: {
                    try await messages.next()?.text
                }
                guard round == "before" else { break }
                await broker.kill()
                try await broker.restart()
            }
            await client.disconnect()
            await broker.stop()
        }

        @Test(.requires(.mosquitto)) func `a slow reader of ten megabytes holds no more than its bounds`() async throws
        {
            let certificates = Certificates()
            let broker = try await Mosquitto.start {
                $0.tls = certificates.brokerTLS()
                $0.extraLines = ["max_queued_messages 0"]
            }
            let url = "mqtts://localhost:\(try #require(broker.tlsPort))"
            let bound = 1 << 20
            let reader = mqtt(url, certificates) { $0.maximumUnreadBytes = bound }
            let writer = mqtt(url, certificates)
            try await reader.connect()
            try await writer.connect()
            let subscription = try await reader.subscribe(
                to: "large", qos: .atLeastOnce, buffer: BufferPolicy(overflow: .pauseReading))
            let block = [UInt8](repeating: 7, count: 1 << 16)
            for _ in 0..<160 { try await writer.publish(block, to: "large", qos: .atLeastOnce) }
            // All are at the broker. What waits is counted with the unused room of its memory. A read of the loop may go
            // beyond the bound, and the stream holds 256 KiB.
            #expect(await eventually { reader.core.unread.isFull })
            #expect(reader.core.link.traffic.bytesReceived > bound / 2)
            #expect(reader.core.link.traffic.bytesReceived < 3 * bound)
            var count = 0
            for try await message in subscription {
                #expect(message.bytes.count == block.count)
                count += 1
                if count == 160 { break }
            }
            await reader.disconnect()
            await writer.disconnect()
            await broker.stop()
        }

        @Test func `both clients refuse every mistake of a server's TLS`() async throws {
            let certificates = Certificates()
            let rows: [(Certificates.Pair, TLSTestServer.Version?, TransportError.Code)] = [
                (certificates.expired, nil, .certificateExpired),
                (certificates.selfSigned, nil, .certificateSelfSigned),
                (certificates.otherServer, nil, .certificateUntrusted),
                (certificates.wrongHost, nil, .certificateNameMismatch),
                (certificates.nameless, nil, .certificateNameMismatch),
                (certificates.server, .tls11, .tlsVersion),
                (certificates.server, .tls12, .clientCertificateRefused),
            ]
            for (pair, version, code) in rows {
                let server = try TLSTestServer.start(pair) {
                    $0.version = version
                    if code == .clientCertificateRefused { $0.clientAuthority = certificates.authority.certificate }
                }
                let mqttCode = await failure(
                    mqtt("mqtts://localhost:\(server.port)", certificates) { $0.reconnect = .never })
                #expect(mqttCode == code)
                let stompCode = await failure(
                    stomp("wss://localhost:\(server.port)", certificates) { $0.reconnect = .never })
                #expect(stompCode == code)
            }
        }

        @Test(.requires(.mosquitto), .requires(program: "tinyproxy", "microsocks"), arguments: TestProxy.Kind.allCases)
        func `a proxy is used, with its login, and never left out`(kind: TestProxy.Kind) async throws {
            let certificates = Certificates()
            let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS() }
            let url = "mqtts://localhost:\(try #require(broker.tlsPort))"
            let user = BrokerUser("ann", password: "pass")
            let proxy = try await TestProxy.start(kind, user: user)
            func client(as user: BrokerUser) -> MQTTClient {
                mqtt(url, certificates) {
                    let address = proxy.url(as: user)
                    $0.proxy = kind == .tinyproxy ? .http(address) : .socks5(address)
                    $0.reconnect = .never
                }
            }
            let accepted = client(as: user)
            try await accepted.connect()
            try await accepted.publish("x", to: "proxy", qos: .atLeastOnce)
            await accepted.disconnect()
            #expect(await failure(client(as: BrokerUser("ann", password: "guess"))) != nil)
            await proxy.stop()
            #expect(await failure(client(as: user)) == .connectionRefused)
            await broker.stop()
        }

        @Test func `clients of servers beyond this machine follow the system's network, unless told otherwise`() {
            func monitor(_ urls: String..., change: (inout MQTTConfiguration) -> Void = { _ in }) -> NetworkMonitor? {
                var configuration = MQTTConfiguration()
                change(&configuration)
                return MQTTClient(urls, configuration: configuration).core.supervisor.network
            }
            #expect(NetworkMonitor.system != nil)
            #expect(monitor("mqtts://broker.example", "wss://10.0.0.1") === NetworkMonitor.system)
            #expect(monitor("mqtt://[2001:db8::1]") === NetworkMonitor.system)
            #expect(monitor("mqtts://broker.example") { $0.usesNetworkMonitor = false } == nil)
            for url in ["mqtt://localhost", "mqtt://127.0.0.2", "mqtt://[::1]", "unix:/tmp/socket"] {
                #expect(monitor("mqtts://broker.example", url) == nil, "\(url)")
            }
        }

        private func failure(_ client: MQTTClient) async -> TransportError.Code? {
            do throws(MQTTError) { try await client.connect() } catch { return code(error.underlying) }
            await client.disconnect()
            return nil
        }

        private func failure(_ client: STOMPClient) async -> TransportError.Code? {
            do throws(STOMPError) { try await client.connect() } catch { return code(error.underlying) }
            await client.disconnect()
            return nil
        }

        private func code(_ error: (any Error)?) -> TransportError.Code? { (error as? TransportError)?.code }
    }
#endif
