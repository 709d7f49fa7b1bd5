// The code of README.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT
import STOMP
import Testing

func watchTheRooms() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen-%%%%")
    try await client.withConnection { client in
        let readings = try await client.subscribe(to: "home/+/temperature")
        try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
        for try await reading in readings { print(reading.captures[0], reading.text ?? "") }
    }
}

struct Temperature: Codable, Sendable {
    var celsius: Double
}

extension MQTTTopic<Temperature> {
    static let temperatures = MQTTTopic("home/+/temperature", as: .json, retain: true)
}

func watchTheKitchen() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen-%%%%")
    try await client.withConnection { client in
        let temperatures = try await client.subscribe(to: .temperatures)
        try await client.publish(Temperature(celsius: 21.5), to: .temperatures.at("kitchen"))
        for try await element in temperatures {
            print(element.captures[0], try element.value.celsius)
        }
    }
}

struct KitchenOrder: Codable, Sendable {
    var pizza: Int
}

func workOffOrders() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        try await client.sendAndConfirm(KitchenOrder(pizza: 1), to: "/queue/orders")
        let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
        for try await message in orders {
            let order = try message.value(KitchenOrder.self, as: .json)
            print("pizza", order.pizza)
            try message.acknowledge()
        }
    }
}

@Test func `A greeting arrives exactly once`() async throws {
    let broker = try await LoopbackBroker.start()
    let client = try MQTTClient(broker.mqttURL)
    try await client.withConnection { client in
        let greetings = try await client.subscribe(to: "greetings")
        try await client.publish("hello", to: "greetings", qos: .exactlyOnce)
        for try await greeting in greetings {
            #expect(greeting.text == "hello")
            break
        }
    }
    await broker.stop()
}
