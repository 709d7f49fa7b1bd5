import Foundation
import Inspector
import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing

/// The code of the README and of the articles is compiled here, letter by letter, and a part of it runs.
@Suite(.turns)
struct ReadmeTests {
    @Test func `its snippets are those of this file`() throws {
        let here = URL(fileURLWithPath: #filePath)
        let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let code = try String(contentsOf: here, encoding: .utf8)
        let snippets = try ["README.md", "Sources/MQTT/MQTT.docc/Sessions.md"].flatMap { page in
            try String(contentsOf: root.appendingPathComponent(page), encoding: .utf8)
                .components(separatedBy: "```swift\n").dropFirst()
                .compactMap { $0.components(separatedBy: "```").first }
        }
        #expect(snippets.count == 7)
        for snippet in snippets {
            let body = snippet.split(separator: "\n", omittingEmptySubsequences: false)
                .drop { $0.hasPrefix("import ") || $0.isEmpty }.joined(separator: "\n")
            #expect(code.contains(body), "the README shows code that this file does not compile:\n\(body)")
        }
    }

    @Test func `the broker inside a test works as shown`() async throws {
        try await testWithoutInstallingAnything()
    }

    @Test func `the inspector's page is served as shown`() async throws {
        let broker = try await LoopbackBroker.start()
        let client = MQTTClient(broker.urls.mqtt ?? "")
        let page = try await inspect(client)
        #expect(page.address.hasPrefix("http://127.0.0.1:\(page.port)/"))
        await page.stop()
        await broker.stop()
    }

    @Test func `frames are recorded as shown`() async throws {
        let scratch = try ScratchDirectory("readme")
        let file = URL(fileURLWithPath: "\(scratch.path)/kitchen.pcapng")
        let broker = try await LoopbackBroker.start()
        try await recordFrames(of: MQTTClient(broker.urls.mqtt ?? ""), into: file)
        await broker.stop()
        let capture = try Data(contentsOf: file)
        #expect(capture.starts(with: [0x0A, 0x0D, 0x0D, 0x0A]))
        for comment in ["CONNECT", "PUBLISH home/kitchen/temperature QoS 1", "PUBACK", "DISCONNECT"] {
            #expect(capture.range(of: Data(comment.utf8)) != nil, "\(comment)")
        }
    }
}

func keepTheSession() -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "meter-%%%%")
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(86_400)
    configuration.sessionStore = FileSessionStore(directory: "/var/lib/meter/session")
    return configuration
}

func recordFrames(of client: MQTTClient, into file: URL) async throws {
    let log = FrameLog(limit: 10_000)
    client.inspect(into: log)
    try await client.connect()
    try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
    await client.disconnect()
    for frame in log.frames(containing: "kitchen") { print(frame.direction, frame.type, frame.destination ?? "") }
    try Data(log.pcapng()).write(to: file)
}

func inspect(_ client: MQTTClient) async throws -> InspectorPage {
    let log = FrameLog()
    client.inspect(into: log)
    return try await InspectorPage.start(log) { topic, payload in
        try await client.publish(payload, to: topic, qos: .atLeastOnce)
    }
}

func watchTheKitchen() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen-%%%%")
    try await client.withConnection { client in
        let alerts = try await client.subscribe(to: "home/+/alert", qos: .atLeastOnce)
        try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce, retain: true)
        for try await alert in alerts {
            print(alert.topic, alert.text ?? "\(alert.payload.count) bytes")
        }
    }
}

func workOffOrders() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        try await client.sendAndConfirm("{\"pizza\":1}", to: "/queue/orders")
        for try await order in try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual) {
            print(order.text ?? "")
            try order.acknowledge()
        }
    }
}

func sendOrdersToTheCluster() async throws {
    var configuration = STOMPConfiguration()
    configuration.serverOrder = .shuffled
    configuration.proxy = .environment
    let nodes = ["stomps://one.example.com", "stomps://two.example.com", "stomps://three.example.com"]
    let client = STOMPClient(nodes, configuration: configuration)
    let quorum: STOMPHeaders = ["x-queue-type": "quorum", "durable": "true", "auto-delete": "false"]
    try await client.withConnection { client in
        try await client.sendAndConfirm(
            "{\"pizza\":1}", to: "/queue/orders", options: STOMPSendOptions(persistent: true, headers: quorum))
    }
}

func testWithoutInstallingAnything() async throws {
    let broker = try await LoopbackBroker.start()
    let client = MQTTClient(broker.urls.mqtt ?? "")
    try await client.connect()
    try await client.publish("hello", to: "greetings", qos: .exactlyOnce)
    await client.disconnect()
    await broker.stop()
}
