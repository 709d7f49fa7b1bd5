// The code of Sources/MessagingShell/MessagingShell.docc/Payloads.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
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
        do {
            try await client.reply(to: question.message, with: Route(stops: ["Harbour"]))
        } catch {
            // A message that names no place to reply to must not end the service, nor a connection that is opened again.
            guard [.invalidRequest, .notConnected].contains(error.code) else { throw error }
        }
    }
}

func readBothFormats(client: MQTTClient) async throws {
    let positions = try await client.subscribe(
        to: "vehicles/+/position", as: Position.self, coding: .anyOf(.json, .propertyList))
    for try await position in positions {
        if let value = try? position.value { print(value) }
    }
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
