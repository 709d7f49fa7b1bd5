import LoopbackBroker
import MQTT
import TestSupport
import Testing

@Suite("Client: descriptions", .turns)
struct DescriptionTests {
    @Test func `a message shows topic, flags and the beginning of its payload in one line`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a/+", qos: .atLeastOnce)
        #expect("\(messages)" == "MQTTSubscription(a/+, QoS 1)")
        try await client.publish("line\nfeed", to: "a/b", qos: .atLeastOnce)
        try await client.publish(String(repeating: "é", count: 400), to: "a/b")
        try await client.publish([0xFF, 0, 1], to: "a/b")
        try await client.publish([UInt8](repeating: 0xFE, count: 100), to: "a/b")
        let received = try await messages.first(4).map(\.description)
        #expect(received[0] == #"MQTTMessage(a/b, QoS 1, "line\u{000A}feed")"# || received[0].contains(#"line\nfeed"#))
        #expect(received[1].hasPrefix("MQTTMessage(a/b, QoS 0, \"éé") && received[1].hasSuffix("\"… (800 bytes))"))
        #expect(received[1].count < 130)
        #expect(received[2] == "MQTTMessage(a/b, QoS 0, ff 00 01)")
        #expect(received[3].hasSuffix("fe fe… (100 bytes))"))
        #expect(received.allSatisfy { !$0.contains("\n") })
        let values = try await client.subscribe(to: "v", as: String.self)
        #expect("\(values)" == "MQTTSubscription(v, QoS 1) as String")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a declared subscription shows the QoS that the server has granted, once it has`() async throws {
        let bench = try await Bench()
        let client = bench.client()
        let messages = client.subscription(to: "a/+", qos: .exactlyOnce)
        #expect(messages.grantedQoS == nil)
        #expect("\(messages)" == "MQTTSubscription(a/+)")
        try await client.connect()
        #expect(await eventually { messages.grantedQoS == .exactlyOnce })
        #expect("\(messages)" == "MQTTSubscription(a/+, QoS 2)")
        // The filter is granted already, and the server is not asked again.
        let further = client.subscription(to: "a/+")
        #expect(await eventually { further.grantedQoS != nil })
        let unmatched = await client.unmatchedMessages()
        #expect(unmatched.grantedQoS == nil)
        #expect("\(unmatched)" == "MQTTSubscription(unmatched messages)")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `what is sent shows where, and a will hides its payload`() {
        let message = MQTTOutgoingMessage("text", to: "a", qos: .exactlyOnce, retain: true)
        #expect("\(message)" == #"MQTTOutgoingMessage(a, QoS 2, retained, "text")"#)
        #expect("\(MQTTWill("secret", to: "a"))" == "MQTTWill(a, QoS 0, 6 bytes)")
        #expect("\(MQTTTopic.text("a/+"))" == "MQTTTopic<String>(a/+)")
    }

    @Test func `states can be compared, and are shown with what belongs to them`() {
        let error = MQTTError(.refused, "Refused.")
        #expect(MQTTConnectionState.connected == .connected && MQTTConnectionState.connected != .suspended)
        #expect(MQTTConnectionState.disconnected(error) == .disconnected(error))
        #expect(MQTTConnectionState.disconnected(error) != .disconnected(MQTTError(.refused, "Not.")))
        #expect("\(MQTTConnectionState.disconnected(nil))" == "disconnected")
        #expect("\(MQTTConnectionState.disconnected(error))" == "disconnected: Refused.")
        #expect("\(MQTTConnectionState.connecting(attempt: 2))" == "connecting, attempt 2")
        #expect(
            "\(MQTTConnectionState.waiting(.milliseconds(500), attempt: 1, after: error))"
                == "waiting 0.5 seconds after attempt 1: Refused.")
        for (delay, text) in [
            (0.262_394_114, "0.262"), (31.234_567_89, "31.23"), (0.000_123_456, "0.000123"), (3599.999, "3600.0"),
        ] {
            #expect("\(MQTTConnectionState.waiting(.seconds(delay), attempt: 1, after: error))".contains(" \(text) s"))
            #expect("\(MQTTEvent.pingAnswered(.seconds(delay)))" == "pingAnswered(\(text) seconds)")
        }
        #expect("\(MQTTWill("1", to: "a"))".hasSuffix(", 1 byte)"))
    }

    @Test func `events and configurations are one line without secrets`() async throws {
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.credentials = Credentials(userName: "ann", password: "s3cret")
        configuration.will = MQTTWill("s3cret", to: "wills")
        configuration.webSocket.headers = [("Authorization", "s3cret")]
        #expect("\(configuration)".hasPrefix("MQTTConfiguration(clientID: meter, version: 3.1.1, "))
        #expect("\(configuration)".contains("keepAlive: 45.0 seconds"))

        let bench = try await Bench { $0.users = [.init(name: "ann", password: "s3cret")] }
        let client = bench.client { $0.credentials = configuration.credentials }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        await client.disconnect()
        var lines: [String] = ["\(configuration)"]
        while let event = await events.next() {
            lines.append("\(event)")
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(lines.contains("connecting(to: mqtt://bench:1883)") || lines.contains("connecting(to: mqtt://bench)"))
        #expect(lines.contains("stateChanged(connected)") && lines.contains("stateChanged(disconnected)"))
        for line in lines {
            #expect(!line.contains("s3cret") && !line.contains("ann,") && !line.contains("\n"), "\(line)")
        }
        #expect("\(MQTTEvent.exactlyOnceUnavailable)" == "exactlyOnceUnavailable")
        #expect(
            "\(MQTTEvent.sessionLost(republished: 1, possibleDuplicates: 2))"
                == "sessionLost(republished: 1, possibleDuplicates: 2)")
        await bench.stop()
    }

    @Test func `the kind of a failure of the network is the code of the error`() async throws {
        let closed = try BadServer.start(.closed)
        for (url, code) in [
            ("mqtt://127.0.0.1:\(closed.port)", MQTTError.Code.connectionRefused), ("mqtt://[::1", .badURL),
        ] {
            await #expect { try await MQTTClient(url).connect() } throws: { ($0 as? MQTTError)?.code == code }
        }
        _ = closed
    }
}
