// The code of Sources/Messaging/Messaging.docc/Payloads.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import STOMP

struct Position: Codable, Sendable, Equatable {
    var latitude: Double
    var longitude: Double
}

func publishPosition(client: MQTTClient) async throws {
    let position = Position(latitude: 60.2, longitude: 24.9)
    try await client.publish(position, to: "vehicles/7/position", qos: .atLeastOnce, retain: true)
}

func sendPosition(client: STOMPClient) async throws {
    try await client.send(Position(latitude: 60.2, longitude: 24.9), to: "/topic/positions")
}

func readPositions(client: MQTTClient) async throws {
    for try await position in try await client.subscribe(to: "vehicles/+/position", as: Position.self) {
        do {
            print(position.captures[0], try position.value)
        } catch {
            print("\(position.topic): \(error)")
        }
        break
    }
}

func queuePosition(of position: Position, client: MQTTClient) async throws {
    try await client.enqueue(MQTTOutgoingMessage(position, to: "vehicles/7/position", retain: true))
}

struct Route: Codable, Sendable {
    var stops: [String]
}

func askForRoute(client: MQTTClient) async throws -> Route {
    try await client.request(Position(latitude: 60.2, longitude: 24.9), to: "routes").value
}

func answerWithRoutes(client: STOMPClient) async throws {
    for try await question in try await client.subscribe(to: "/queue/routes", as: Position.self) {
        try await client.reply(to: question.message, with: Route(stops: ["Harbour"]))
    }
}

func readBothFormats(client: MQTTClient) async throws {
    let positions = try await client.subscribe(
        to: "vehicles/+/position", as: Position.self, coding: .anyOf(.json, .propertyList))
    for try await position in positions { print(try position.value) }
}

extension MQTTTopic<Position> {
    static let positions = MQTTTopic("vehicles/+/position", as: .json, retain: true)
}

extension MQTTTopic<String> {
    static let names = MQTTTopic.text("vehicles/+/name", retain: true)
}

func followVehicles(client: MQTTClient) async throws {
    try await client.publish("Tram 7", to: .names.at("7"))
    let positions = try await client.subscribe(to: .positions)
    try await client.publish(Position(latitude: 60.2, longitude: 24.9), to: .positions.at("7"))
    for try await element in positions {
        print(element.captures[0], try element.value)
        break
    }
}

extension STOMPDestination<Position> {
    static let positions = STOMPDestination("/topic/positions", as: .json)
}

func copyOnePosition(client: STOMPClient) async throws -> Position? {
    let positions = try await client.subscribe(to: .positions)
    try await client.sendAndConfirm(Position(latitude: 60.2, longitude: 24.9), to: .positions)
    for try await element in positions { return try element.value }
    return nil
}

extension MQTTTopic<Position> {
    static let allDefaults = MQTTTopic("vehicles/+/position", as: .json, qos: .atLeastOnce, retain: false)
}

extension STOMPDestination<Position> {
    static let allDefaults = STOMPDestination("/topic/positions", as: .json, queue: STOMPQueueOptions())
}

func subscribeWithAllDefaults(mqtt: MQTTClient, stomp: STOMPClient) async throws {
    let fromTopic: MQTTDecodedMessages<Position> = try await mqtt.subscribe(
        to: .allDefaults, qos: .atLeastOnce, buffer: BufferPolicy(), acknowledgement: .automatic, noLocal: false,
        retainAsPublished: false, retainHandling: .sendAtSubscribe, properties: [])
    let fromFilter: MQTTDecodedMessages<Position> = try await mqtt.subscribe(
        to: "vehicles/#", as: Position.self, coding: .json, qos: .atLeastOnce, buffer: BufferPolicy(),
        acknowledgement: .automatic, noLocal: false, retainAsPublished: false, retainHandling: .sendAtSubscribe,
        properties: [])
    let fromDestination: STOMPDecodedMessages<Position> = try await stomp.subscribe(
        to: .allDefaults, acknowledgement: .auto, options: STOMPSubscribeOptions(), buffer: BufferPolicy())
    let fromName: STOMPDecodedMessages<Position> = try await stomp.subscribe(
        to: "/topic/positions", as: Position.self, coding: .json, acknowledgement: .auto,
        options: STOMPSubscribeOptions(), buffer: BufferPolicy())
    print(fromTopic, fromFilter, fromDestination, fromName)
}

func publishWithAllDefaults(client: MQTTClient, position: Position, question: MQTTMessage) async throws {
    try await client.publish(
        position, as: .json, to: "vehicles/7/position", qos: .atMostOnce, retain: false, properties: [])
    try await client.publish(position, to: .allDefaults.at("7"), properties: [])
    // Messages have the same parameters, but QoS 1.
    let message = try MQTTOutgoingMessage(
        position, as: .json, to: "vehicles/7/position", qos: .atLeastOnce, retain: false, properties: [])
    try await client.enqueue(message)
    let confirmation = try await client.publishForConfirmation(
        MQTTOutgoingMessage(position, to: .allDefaults.at("7"), properties: []))
    // `returning:` is the type of the response, and may be left out where the compiler knows it.
    let route: MQTTDecodedMessage<Route> = try await client.request(
        position, as: .json, to: "routes", returning: Route.self, qos: .atLeastOnce, timeout: .seconds(10),
        properties: [])
    let sameRoute: MQTTDecodedMessage<Route> = try await client.request(
        position, to: .allDefaults.at("7"), returning: Route.self, coding: .json, timeout: .seconds(10), properties: [])
    try await client.reply(to: question, with: route.value, as: .json, qos: .atLeastOnce, properties: [])
    print(try await confirmation.confirmed(), try sameRoute.value)
}

func sendWithAllDefaults(client: STOMPClient, position: Position, question: STOMPMessage) async throws {
    try await client.send(position, as: .json, to: "/topic/positions", options: STOMPSendOptions(), in: nil)
    try await client.send(position, to: .allDefaults, options: STOMPSendOptions(), in: nil)
    try await client.sendAndConfirm(position, as: .json, to: "/topic/positions", options: STOMPSendOptions(), in: nil)
    try await client.sendAndConfirm(position, to: .allDefaults, options: STOMPSendOptions(), in: nil)
    let message = try STOMPOutgoingMessage(
        position, as: .json, to: "/topic/positions", options: STOMPSendOptions())
    let receipt = try await client.sendForReceipt(message, in: nil)
    // `timeout: nil` is the configuration's `requestTimeout`, 30 seconds.
    let route: STOMPDecodedMessage<Route> = try await client.request(
        position, as: .json, to: "/queue/routes", returning: Route.self, options: STOMPSendOptions(), timeout: nil)
    let sameRoute: STOMPDecodedMessage<Route> = try await client.request(
        position, to: .allDefaults, returning: Route.self, coding: .json, options: STOMPSendOptions(), timeout: nil)
    try await client.reply(to: question, with: route.value, as: .json, options: STOMPSendOptions())
    try await receipt.confirmed()
    print(try sameRoute.value)
}

func makeOptionsWithAllDefaults() -> (STOMPSendOptions, STOMPSubscribeOptions, BufferPolicy) {
    (
        STOMPSendOptions(
            contentType: nil, persistent: nil, priority: nil, expiresAfter: nil, replyTo: nil, correlationID: nil,
            headers: [:]),
        STOMPSubscribeOptions(selector: nil, durableName: nil, prefetch: nil, headers: [:]),
        BufferPolicy(messages: 65_536, bytes: 16 * 1024 * 1024, overflow: .dropOldest)
    )
}

struct NumberPayload: PayloadCoding {
    struct NotANumber: Error {}

    var contentType: String { "text/plain" }

    func encode(_ value: some Encodable) throws -> [UInt8] {
        guard let number = value as? any BinaryInteger else { throw NotANumber() }
        return Array("\(number)".utf8)
    }

    func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
        guard let number = Int(String(decoding: payload, as: UTF8.self)) as? Value else { throw NotANumber() }
        return number
    }
}

func publishNumber(client: MQTTClient) async throws {
    try await client.publish(42, as: NumberPayload(), to: "counters/answer")
}

struct Sample: Sendable, Equatable {
    var value: UInt8

    init(value: UInt8) { self.value = value }
    init(serializedBytes: [UInt8]) throws { value = serializedBytes.first ?? 0 }
    func serializedBytes() throws -> [UInt8] { [value] }
}

extension MQTTTopic<Sample> {
    static let samples = MQTTTopic(
        "samples", contentType: "application/protobuf", encode: { try $0.serializedBytes() },
        decode: { try Sample(serializedBytes: $0) })
}

func copySample(client: MQTTClient) async throws -> Sample? {
    let samples = try await client.subscribe(to: .samples)
    try await client.publish(Sample(value: 7), to: .samples)
    for try await element in samples { return try element.value }
    return nil
}
