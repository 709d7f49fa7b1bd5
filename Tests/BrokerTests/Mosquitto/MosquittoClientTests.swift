import MQTT
import TestSupport
import Testing

/// The MQTT client against a real Mosquitto.
@Suite(.serialized, .requires(.mosquitto), .turns)
struct MosquittoClientTests {
    private func client(_ broker: Mosquitto, _ change: (inout MQTTConfiguration) -> Void = { _ in }) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "test-%%%%")
        configuration.allowSlowBrokers()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(200)
        change(&configuration)
        return MQTTClient("mqtt://127.0.0.1:\(broker.port)", configuration: configuration)
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0], QoS.allCases)
    func `delivers what it publishes, in order`(version: MQTTVersion, qos: QoS) async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker) { $0.version = version }
        try await client.connect()
        let messages = try await client.subscribe(to: "orders/+/state", qos: qos)
        #expect(messages.grantedQoS == qos)
        for number in 0..<100 {
            try await client.publish("message \(number)", to: "orders/7/state", qos: qos)
        }
        var received: [String] = []
        for try await message in messages {
            #expect(message.topic == "orders/7/state")
            #expect(message.qos == qos)
            received.append(try #require(message.text))
            if received.count == 100 { break }
        }
        #expect(received == (0..<100).map { "message \($0)" })
        await client.disconnect()
        await broker.stop()
    }

    @Test(arguments: QoS.allCases)
    func `a subscription of overlapping filters delivers each message once`(qos: QoS) async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker) { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(
            to: ["a/+", "a/#", "+/b"].map { MQTTSubscriptionRequest(filter: $0, qos: qos) })
        for number in 0..<50 { try await client.publish("\(number)", to: "a/b", qos: qos) }
        try await client.publish("end", to: "a", qos: qos)
        var received: [String] = []
        for try await message in messages {
            received.append(message.text ?? "?")
            if received.last == "end" { break }
        }
        #expect(received == (0..<50).map { "\($0)" } + ["end"])
        await client.disconnect()
        await broker.stop()
    }

    private func texts(_ count: Int, of messages: MQTTSubscription) async throws -> [String] {
        try await withTimeout(.patience, "\(count) messages") {
            var texts: [String] = []
            for try await message in messages {
                texts.append(message.text ?? "?")
                if texts.count == count { break }
            }
            return texts
        }
    }

    @Test(arguments: QoS.allCases)
    func `sequences of overlapping filters get each message once`(qos: QoS) async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker) { $0.version = .v5_0 }
        try await client.connect()
        var sequences: [MQTTSubscription] = []
        for filter in ["a/+", "a/#", "+/b"] { sequences.append(try await client.subscribe(to: filter, qos: qos)) }
        let shared = try await client.subscribe(to: "$share/group/#", qos: qos)
        for number in 0..<50 { try await client.publish("\(number)", to: "a/b", qos: qos) }
        for messages in sequences + [shared] {
            #expect(try await texts(50, of: messages) == (0..<50).map { "\($0)" })
        }
        // Nothing is left, in any of them.
        try await client.publish("end", to: "a/b", qos: qos)
        for messages in sequences + [shared] { #expect(try await texts(1, of: messages) == ["end"]) }
        await client.disconnect()
        await broker.stop()
    }

    /// The other worker's jobs come to neither.
    @Test func `a worker that also has the topic of its jobs gets its share only`() async throws {
        let broker = try await Mosquitto.start()
        let (worker, colleague) = (client(broker) { $0.version = .v5_0 }, client(broker) { $0.version = .v5_0 })
        try await worker.connect()
        try await colleague.connect()
        let all = try await worker.subscribe(to: "jobs/#", qos: .atLeastOnce)
        let own = try await worker.subscribe(to: "$share/g/jobs/+", qos: .atLeastOnce)
        let others = try await colleague.subscribe(to: "$share/g/jobs/+", qos: .atLeastOnce)
        for number in 0..<20 { try await colleague.publish("\(number)", to: "jobs/x", qos: .atLeastOnce) }
        #expect(try await texts(20, of: all) == (0..<20).map { "\($0)" })
        try await own.unsubscribe()
        try await others.unsubscribe()
        var received: [String] = []
        for messages in [own, others] { for try await message in messages { received.append(message.text ?? "?") } }
        #expect(received.sorted() == (0..<20).map { "\($0)" }.sorted())
        await worker.disconnect()
        await colleague.disconnect()
        await broker.stop()
    }

    /// The first one asks for QoS 1, the others for that and less.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `each sequence of a filter begins with its retained messages`(version: MQTTVersion) async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker) { $0.version = version }
        try await client.connect()
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        var sequences: [MQTTSubscription] = []
        for qos in [QoS.atLeastOnce, .atLeastOnce, .atMostOnce] {
            let doors = try await client.subscribe(to: "house/+", qos: qos)
            sequences.append(doors)
            for try await door in doors {
                #expect(door.text == "closed" && door.isRetained && door.qos == .atLeastOnce)
                break
            }
        }
        try await client.publish("open", to: "house/door", qos: .atLeastOnce)
        for doors in sequences {
            for try await door in doors where door.text == "open" {
                #expect(door.qos == .atLeastOnce)
                break
            }
        }
        await client.disconnect()
        await broker.stop()
    }

    @Test func `publishes arrays with one wait`() async throws {
        let broker = try await Mosquitto.start { $0.extraLines = ["max_queued_messages 0"] }
        let client = client(broker)
        try await client.connect()
        for qos in QoS.allCases {
            let messages = try await client.subscribe(to: "bulk/\(qos.rawValue)", qos: qos)
            let array = (0..<2000).map {
                MQTTOutgoingMessage(Array("\($0)".utf8), to: "bulk/\(qos.rawValue)", qos: qos)
            }
            async let published: Void = client.publish(array).check()
            var received: [String] = []
            for try await message in messages {
                received.append(message.text ?? "?")
                if received.count == 2000 { break }
            }
            try await published
            try await published
            #expect(received == (0..<2000).map { "\($0)" })
        }
        await client.disconnect()
        await broker.stop()
    }

    @Test func `comes back by itself after the broker was killed, and subscribes again`() async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker)
        let listener = self.client(broker)
        try await client.connect()
        try await listener.connect()
        let messages = try await listener.subscribe(to: "healed", qos: .atLeastOnce)
        await broker.kill()
        try await broker.restart()
        #expect(await eventually { client.state.isConnected && listener.state.isConnected })
        // The listener's SUBSCRIBE may still be under way: repeat until one gets through.
        let sender = Task {
            while !Task.isCancelled {
                try await client.publish("again", to: "healed", qos: .atLeastOnce)
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        for try await message in messages {
            #expect(message.text == "again")
            break
        }
        sender.cancel()
        await client.disconnect()
        await listener.disconnect()
        await broker.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `what is published while suspended comes to the client's own subscription`(version: MQTTVersion) async throws {
        let broker = try await Mosquitto.start()
        let client = client(broker) { $0.version = version }
        try await client.connect()
        let messages = try await client.subscribe(to: "own", qos: .exactlyOnce)
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            await client.suspend()
            let publishing = Task { try await client.publish("\(qos.rawValue)", to: "own", qos: qos) }
            try await client.enqueue(MQTTOutgoingMessage(Array("enqueued".utf8), to: "own", qos: qos))
            client.resume()
            #expect(try await publishing.value == .success)
            let received = try await withTimeout(.patience, "receiving what was published") {
                var received: Set<String?> = []
                for try await message in messages {
                    received.insert(message.text)
                    if received.count == 2 { break }
                }
                return received
            }
            #expect(received == ["\(qos.rawValue)", "enqueued"])
        }
        await client.disconnect()
        await broker.stop()
    }

    @Test func `says that the password is wrong, and does not try again`() async throws {
        let broker = try await Mosquitto.start { $0.users = [BrokerUser("ann", password: "right")] }
        let refused = client(broker) {
            $0.credentials = Credentials(userName: "ann", password: "wrong")
            $0.reconnect.firstConnectAttempts = nil
        }
        await #expect { try await refused.connect() } throws: { ($0 as? MQTTError)?.code == .badCredentials }
        let accepted = client(broker) { $0.credentials = Credentials(userName: "ann", password: "right") }
        try await accepted.connect()
        await accepted.disconnect()
        await broker.stop()
    }

    @Test func `a will arrives when a client vanishes, and not when it leaves in order`() async throws {
        let broker = try await Mosquitto.start()
        let watcher = client(broker)
        try await watcher.connect()
        let wills = try await watcher.subscribe(to: "wills/#", qos: .exactlyOnce)
        let leaving = client(broker) { $0.will = MQTTWill(Array("leaving".utf8), to: "wills/1") }
        try await leaving.connect()
        await leaving.disconnect()
        var vanishing: MQTTClient? = client(broker) {
            $0.will = MQTTWill(Array("vanished".utf8), to: "wills/2", qos: .exactlyOnce)
        }
        try await vanishing?.connect()
        vanishing = nil
        for try await message in wills {
            #expect(message.text == "vanished")
            break
        }
        await watcher.disconnect()
        await broker.stop()
    }
}
