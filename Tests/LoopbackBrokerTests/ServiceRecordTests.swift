import ClientTestSupport

#if canImport(Glibc)
    import Dispatch
    import LoopbackBroker
    import MQTT
    import MessagingShell
    import STOMP
    import TestSupport
    import Testing

    /// Clients whose servers a domain names in DNS, through the system's resolver and a name server of the tests.
    @Suite("Service records: whole clients") struct ServiceRecordTests {
        private func servers(
            _ server: NameServer, scheme: BrokerURL.Scheme = .mqtt, domain: String = "example.test"
        ) async throws(TransportError) -> [String] {
            try await BrokerURL.servers(of: domain, scheme: scheme, service: nil) { name in
                server.serveThisThread()
                return ServiceRecord.ask(name)
            }
        }

        /// The answer names the server that listens first, and as the second to try.
        private func records(_ port: Int?) throws -> [(priority: UInt8, port: Int, target: String)] {
            [(20, try #require(port), "localhost"), (10, FreePort.next(), "localhost")]
        }

        @Test(arguments: [false, true])
        func `an MQTT client connects to the server of the second priority when the first refuses`(
            isTruncated: Bool
        ) async throws {
            let broker = try await LoopbackBroker.judged()
            let records = try records(broker.ports.mqtt)
            let names = try NameServer(isTruncated ? .truncated(records) : .servers(records))
            let urls = try await servers(names)
            #expect(urls == ["mqtt://localhost:\(records[1].port)", "mqtt://localhost:\(records[0].port)"])
            let question = "_mqtt._tcp.example.test"
            #expect(names.asked == (isTruncated ? ["udp \(question)", "tcp \(question)"] : ["udp \(question)"]))

            let client = MQTTClient(urls, clientID: "found-%%%%")
            try await client.connect()
            #expect(client.server?.endpoint == .host("localhost", port: UInt16(records[0].port)))
            try await client.publish("x", to: "a", qos: .atLeastOnce)
            await client.disconnect()
            await broker.stop()
        }

        @Test func `a STOMP client too`() async throws {
            let broker = try await LoopbackBroker.judged()
            let records = try records(broker.ports.stomp)
            let names = try NameServer(.servers(records))
            let client = STOMPClient(try await servers(names, scheme: .stomp))
            try await client.connect()
            #expect(client.server?.endpoint == .host("localhost", port: UInt16(records[0].port)))
            #expect(names.asked == ["udp _stomp._tcp.example.test"])
            await client.disconnect()
            await broker.stop()
        }

        @Test(arguments: [
            (BrokerURL.Scheme.mqtt, "_mqtt"), (.mqtts, "_secure-mqtt"), (.stomp, "_stomp"), (.stomps, "_stomps"),
        ])
        func `each scheme has its service`(scheme: BrokerURL.Scheme, service: String) async throws {
            let names = try NameServer(.servers([(1, 7, "one.example.test")]))
            #expect(try await servers(names, scheme: scheme) == ["\(scheme.rawValue)://one.example.test:7"])
            #expect(names.asked == ["udp \(service)._tcp.example.test"])
        }

        @Test(arguments: [
            (NameServer.Answer.failure(3), "DNS has no server under"), (.servers([]), "DNS has no server under"),
            // The root as the target: there is no such service here (RFC 2782).
            (.servers([(1, 0, "")]), "DNS has no server under"),
            (.failure(2), "DNS could not answer"), (.failure(5), "DNS could not answer"),
            (.silence, "DNS did not answer"),
        ])
        func `an answer without servers, and none, are errors that tell which it was`(
            answer: NameServer.Answer, message: String
        ) async throws {
            let names = try NameServer(answer)
            let failure = await #expect(throws: TransportError.self) { try await servers(names) }
            #expect(failure?.code == .unknownHost)
            #expect(failure?.message.hasPrefix(message) == true, "\(failure?.message ?? "")")
            #expect(failure?.message.contains("_mqtt._tcp.example.test") == true)
            #expect(!names.asked.isEmpty)
        }

        @Test func `a cancelled task does not wait for a silent name server`() async throws {
            let (asking, asked) = AsyncStream.makeStream(of: Void.self)
            let isOver = DispatchSemaphore(value: 0)
            let task = Task {
                try await BrokerURL.servers(of: "example.test", scheme: .mqtt, service: nil) { _ in
                    asked.finish()
                    // Until the task has ended, or for longer than anybody should wait.
                    _ = isOver.wait(timeout: .now() + 10)
                    return []
                }
            }
            for await _ in asking {}
            task.cancel()
            let failure = await #expect(throws: TransportError.self) { try await task.value }
            isOver.signal()
            #expect(failure?.code == .cancelled)
        }
    }
#endif
