public import Foundation
import Synchronization

/// Clients of other people, written in Python: stomp.py, paho-mqtt and websockets in a virtual environment whose path
/// stands in `PYTHON_CLIENTS`.
public enum PythonClients {
    /// The interpreter of the environment; nil when there is none.
    public static var interpreter: String? {
        Campaign.environment("PYTHON_CLIENTS").flatMap { Command.path(of: $0 + "/bin/python3") }
    }

    /// Why there are none, and how to get them; nil when there are.
    public static var missing: String? {
        guard interpreter == nil else { return nil }
        return """
            PYTHON_CLIENTS names no virtual environment (python3 -m venv DIR && \
            DIR/bin/pip install stomp.py paho-mqtt websockets)
            """
    }

    /// Starts a script with arguments; its input is a pipe and its output unbuffered.
    public static func start(_ script: String, _ arguments: [String] = []) async throws -> ChildProcess {
        guard let interpreter else { throw MissingRequirement(description: missing ?? "") }
        return try await ChildProcess.start(
            Command(interpreter, ["-u", "-c", script] + arguments, input: .pipe))
    }

    /// Connects stomp.py (STOMP 1.2) to a loopback port.
    public static func stomp(port: Int, host: String = "/", user: BrokerUser? = nil) async throws -> PythonClient {
        let child = try await start(
            PythonScripts.stomp, ["\(port)", host, user?.name ?? "", user?.password ?? ""])
        let client = PythonClient(child)
        try await client.next("connected")
        return client
    }

    /// Connects paho-mqtt to a loopback port.
    ///
    /// - Parameter version: the protocol level: 3 (MQTT 3.1), 4 (3.1.1) or 5.
    public static func mqtt(
        port: Int, version: Int = 5, clientID: String, user: BrokerUser? = nil
    ) async throws -> PythonClient {
        let child = try await start(
            PythonScripts.mqtt, ["\(port)", "\(version)", clientID, user?.name ?? "", user?.password ?? ""])
        let client = PythonClient(child)
        try await client.next("connected")
        return client
    }
}

/// One connection of a Python client: commands to it, events from it.
public final class PythonClient: Sendable {
    /// What the client was told by the broker; absent members do not concern the event.
    public struct Event: Sendable, Decodable {
        public var event: String
        public var headers: [String: String]?
        public var topic: String?
        public var qos: Int?
        public var retain: Bool?
        public var reason: String?
        public var body: Data?

        public var bytes: [UInt8] { Array(body ?? Data()) }
        public var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    private struct Request: Encodable {
        var operation: String
        var destination: String?
        var id: String?
        var ack: String?
        var qos: Int?
        var retain: Bool?
        var headers: [String: String]?
        var body: Data?
    }

    public let process: ChildProcess
    private let last = Mutex<ChildProcess.Line?>(nil)

    init(_ process: ChildProcess) {
        self.process = process
    }

    /// Waits for the next event of a kind (`message`, `receipt`, `subscribed`, `published`, `error`, `disconnected`),
    /// passing over others.
    @discardableResult
    public func next(_ kind: String, timeout: Duration = .patience) async throws -> Event {
        let line = try await process.waitForLine(
            containing: "{\"event\": \"\(kind)\"", after: last.withLock { $0 }, timeout: timeout)
        last.withLock { $0 = line }
        return try JSONDecoder().decode(Event.self, from: Data(line.text.utf8))
    }

    /// Subscribes over STOMP and waits for the receipt.
    public func subscribe(
        to destination: String, id: String, ack: String = "auto", headers: [String: String] = [:]
    ) async throws {
        let receipt = ["receipt": "subscribed-\(id)"]
        try await request(
            Request(
                operation: "subscribe", destination: destination, id: id, ack: ack,
                headers: headers.merging(receipt) { $1 }))
        try await next("receipt")
    }

    /// Subscribes over MQTT and waits for the SUBACK; the event's `reason` tells what was granted.
    @discardableResult
    public func subscribe(to filter: String, qos: Int) async throws -> Event {
        try await request(Request(operation: "subscribe", destination: filter, qos: qos))
        return try await next("subscribed")
    }

    /// Sends over STOMP; a `receipt` header is answered by an event.
    public func send(_ body: [UInt8], to destination: String, headers: [String: String] = [:]) async throws {
        try await request(
            Request(operation: "send", destination: destination, headers: headers, body: Data(body)))
    }

    /// Publishes over MQTT and waits until that is done.
    public func publish(_ body: [UInt8], to topic: String, qos: Int = 0, retain: Bool = false) async throws {
        try await request(
            Request(operation: "publish", destination: topic, qos: qos, retain: retain, body: Data(body)))
        try await next("published")
    }

    /// Acknowledges a STOMP message by the value of its `ack` header.
    public func ack(_ id: String) async throws { try await request(Request(operation: "ack", id: id)) }

    /// Refuses a STOMP message.
    public func nack(_ id: String) async throws { try await request(Request(operation: "nack", id: id)) }

    /// Disconnects in the protocol's own way and waits until the program has ended.
    public func close() async throws {
        process.closeInput()
        _ = try await process.waitForExit()
    }

    private func request(_ request: Request) async throws {
        let line = try JSONEncoder().encode(request)
        try await process.write(Array(line) + [UInt8(ascii: "\n")])
    }
}
