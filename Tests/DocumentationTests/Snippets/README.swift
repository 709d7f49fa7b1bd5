// The code of README.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import Inspector
import LoopbackBroker
import MQTT
import STOMP
import Testing

func watchTheRooms() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen-%%%%")
    let log = FrameLog()
    client.inspect(into: log)
    let page = try await InspectorPage.start(log)
    print("The page is at", page.address)
    try await client.withConnection { client in
        let readings = try await client.subscribe(to: "home/+/temperature")
        try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
        for try await reading in readings { print(reading.captures[0], reading.text ?? "") }
    }
    await page.stop()
}

func workOffOrders() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        try await client.sendAndConfirm("one pizza", to: "/queue/orders")
        let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
        for try await order in orders where !order.isStale {
            print(order.text ?? "")
            try? order.acknowledge()  // Throws if the connection was lost meanwhile: the order comes again.
        }
    }
}

@Test func `Greetings arrive in their order`() async throws {
    let broker = try await LoopbackBroker.start()
    let client = try MQTTClient(broker.mqttURL)
    try await client.withConnection { client in
        let greetings = try await client.subscribe(to: "greetings", qos: .exactlyOnce)
        for text in ["hello", "bye"] { try await client.publish(text, to: "greetings", qos: .exactlyOnce) }
        var received: [String] = []
        for try await greeting in greetings {
            received.append(greeting.text ?? "")
            if greeting.text == "bye" { break }
        }
        #expect(received == ["hello", "bye"])
    }
    await broker.stop()
}
