// The code of Sources/MQTT/MQTT.docc/WillsAndRequests.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func makeLampClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "lamp-1")
    configuration.version = .v5_0
    configuration.sessionExpiry = .seconds(60)
    configuration.will = MQTTWill("offline", to: "lamps/1/status", qos: .atLeastOnce, retain: true, delay: .seconds(5))
    return MQTTClient("mqtt://localhost", configuration: configuration)
}

func announce(_ client: MQTTClient) async throws {
    try await client.connect()
    try await client.publish("online", to: "lamps/1/status", qos: .atLeastOnce, retain: true)
}

func stayOnline(client: MQTTClient) async throws {
    for await state in client.states where state.isConnected {
        try await client.publish("online", to: "lamps/1/status", qos: .atLeastOnce, retain: true)
    }
}

func retainTheDoor(client: MQTTClient) async throws {
    try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
    let door = try await client.subscribe(to: "house/door")
    for try await state in door {
        print(state.isRetained ? "was" : "is now", state.text ?? "")
        break
    }
    try await client.publish([], to: "house/door", qos: .atLeastOnce, retain: true)
}

func workInAGroup(client: MQTTClient) async throws {
    let jobs = try await client.subscribe(
        to: "$share/workers/jobs/#", qos: .atLeastOnce, acknowledgement: .manual)
    for try await job in jobs {
        print("working on \(job.topic)")
        job.acknowledge()
    }
}

func subscribeToSeveral(client: MQTTClient) async throws {
    let updates = try await client.subscribe(to: [
        MQTTSubscriptionRequest(filter: "house/+/temperature", qos: .atMostOnce),
        MQTTSubscriptionRequest(filter: "house/+/alarm", qos: .exactlyOnce),
    ])
    for (filter, code) in zip(updates.filters, updates.reasonCodes) where code.isError {
        print("The server refused \(filter): \(code).")
    }
}

func askForTheTime(client: MQTTClient) async throws -> String? {
    let answer = try await client.request("now", to: "clock/requests", timeout: .seconds(5))
    return answer.text
}

func tellTheTime(client: MQTTClient) async throws {
    for try await request in try await client.subscribe(to: "clock/requests") {
        do {
            try await client.reply(to: request, with: "12:00")
        } catch {
            guard [.invalidRequest, .notAllowed, .refused].contains(error.code) else { throw error }
            print("No response to \(request.topic): \(error.message)")
        }
    }
}

func readTheRelay(client: MQTTClient) async throws -> String? {
    let state = try await client.request(
        "state", to: "relay/7/request/{id}", responseTopic: "relay/7/response/{id}", timeout: .seconds(5))
    return state.text
}

func answerForTheRelay(client: MQTTClient) async throws {
    for try await request in try await client.subscribe(to: "relay/7/request/+") {
        try await client.publish("on", to: "relay/7/response/\(request.captures[0])", qos: .atLeastOnce)
    }
}

func publishWithProperties(client: MQTTClient) async throws {
    try await client.publish(
        "21.5", to: "house/kitchen/temperature", qos: .atLeastOnce,
        properties: [.contentType("text/plain"), .messageExpiryInterval(60), .userProperty("sensor", "k-7")])
}

func readProperties(message: MQTTMessage) {
    let properties = message.properties
    print(properties.contentType ?? "no type", properties.userProperty("sensor") ?? "no sensor")
    for property in properties.userProperties { print(property.name, property.value) }
}
