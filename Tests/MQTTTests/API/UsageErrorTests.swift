import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// Every mistake of a user is thrown before a byte of it leaves.
@Suite("Client: mistakes", .turns)
struct UsageErrorTests {
    @Test(arguments: ["", "a/#", "a/+/b", "nul\u{0}", String(repeating: "x", count: 65_536)], QoS.allCases)
    func `a topic that is none`(topic: String, qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let error = await error { () throws(MQTTError) in try await client.publish("x", to: topic, qos: qos) }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("1 to 65,535 bytes without +, #") == true)
        #expect(error?.message.unicodeScalars.contains { $0.value < 0x20 } == false)
        #expect(client.counters.messagesSent == 0)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [
        ("", "1 to 65,535"), ("a#", "# must be the whole last level"), ("#/a", "# must be the whole last level"),
        ("a+/b", "+ must be a whole level"), ("$share//x", "$share/"), ("$share/g/", "share name"),
        ("$share/+/x", "share name"), ("nul\u{0}", "U+0000"), (String(repeating: "x", count: 65_536), "65536 bytes"),
    ])
    func `a filter that is none is told the rule that it breaks`(filter: String, rule: String) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let subscribing = await error { () throws(MQTTError) in _ = try await client.subscribe(to: filter) }
        let unsubscribing = await error { () throws(MQTTError) in _ = try await client.unsubscribe(from: [filter]) }
        for error in [subscribing, unsubscribing] {
            #expect(error?.code == .invalidRequest)
            #expect(error?.message.contains(rule) == true, "\(error?.message ?? "")")
            #expect(error?.message.unicodeScalars.contains { $0.value < 0x20 } == false)
            #expect((error?.message.count ?? 0) < 400)
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a QoS above the server's maximum, and retained messages that it does not keep`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            var properties = MQTTProperties()
            properties.maximumQoS = .atLeastOnce
            properties.retainAvailable = false
            step.accept(properties: properties)
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let high = await error { () throws(MQTTError) in try await client.publish("x", to: "a", qos: .exactlyOnce) }
        #expect(high?.code == .notAllowed)
        #expect(high?.message.contains("QoS 1") == true)
        let kept = await error { () throws(MQTTError) in try await client.publish("x", to: "a", retain: true) }
        #expect(kept?.code == .notAllowed)
        #expect(client.counters.messagesSent == 0)
        await client.disconnect()
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1])
    func `a client identifier that the version does not allow`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = bench.client("") {
            $0.version = version
            $0.cleanStart = version == .v3_1
        }
        let error = await error { () throws(MQTTError) in try await client.connect() }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("client identifier") == true)
        await bench.stop()
    }

    @Test func `a will whose delay the server could not keep names both values, and nothing is sent`() async throws {
        let bench = try await Bench()
        func connecting(
            _ version: MQTTVersion, expiry: Duration, delay: Duration?
        ) async throws -> MQTTError? {
            let client = bench.client("will") {
                $0.version = version
                $0.sessionExpiry = expiry
                $0.will = MQTTWill("gone", to: "wills", delay: delay)
                $0.reconnect.firstConnectAttempts = nil
            }
            let failure = await error { () throws(MQTTError) in try await client.connect() }
            await client.disconnect()
            return failure
        }
        for (expiry, text) in [(Duration.zero, "after 0 s"), (.seconds(4), "after 4 s")] {
            let late = try await connecting(.v5_0, expiry: expiry, delay: .seconds(5))
            #expect(late?.code == .invalidRequest)
            #expect(late?.message.contains("a delay of 5 s") == true && late?.message.contains(text) == true)
        }
        let old = try await connecting(.v3_1_1, expiry: .seconds(60), delay: .seconds(5))
        #expect(old?.code == .invalidRequest)
        #expect(old?.message.contains("a delay of 5 s, but MQTT 3.1.1") == true)
        #expect(bench.broker.statistics.connections == 0)
        for version in [MQTTVersion.v3_1_1, .v5_0] {
            #expect(try await connecting(version, expiry: .zero, delay: nil) == nil)
            #expect(try await connecting(version, expiry: .zero, delay: .zero) == nil)
        }
        #expect(try await connecting(.v5_0, expiry: .seconds(5), delay: .seconds(5)) == nil)
        // Both are rounded up to whole seconds.
        #expect(try await connecting(.v5_0, expiry: .milliseconds(1500), delay: .milliseconds(1500)) == nil)
        #expect(try await connecting(.v5_0, expiry: .milliseconds(1), delay: .seconds(1)) == nil)
        #expect(try await connecting(.v5_0, expiry: .seconds(1), delay: .milliseconds(1001))?.code == .invalidRequest)
        await bench.stop()
    }

    @Test func `properties before 5.0`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v3_1_1 }
        var properties = MQTTProperties()
        properties.contentType = "x"
        let error = await error { () throws(MQTTError) in
            try await client.publish("x", to: "a", properties: properties)
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("5.0") == true)
        await client.disconnect()
        await bench.stop()
    }
}
