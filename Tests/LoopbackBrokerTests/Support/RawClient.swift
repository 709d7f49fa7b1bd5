import ClientTestSupport
import LoopbackBroker
import MessagingJudge
import TestSupport

/// A client of bytes: what is sent and what is expected are written out in the test.
final class RawClient {
    let connection: RawConnection
    /// What was read and not yet expected.
    private var buffer: [UInt8] = []

    init(connection: RawConnection) {
        self.connection = connection
    }

    static func open(_ port: Int?) async throws -> RawClient {
        RawClient(connection: try await RawConnection.open(port: port ?? 0))
    }

    /// An MQTT client that is connected: CONNACK with success is read already.
    static func mqtt(_ broker: LoopbackBroker, _ connect: [UInt8], present: UInt8 = 0) async throws -> RawClient {
        let client = try await open(broker.ports.mqtt)
        try await client.send(connect)
        try await client.expect([0x20, 2, present, 0])
        return client
    }

    func send(_ bytes: [UInt8]) async throws { try await connection.send(bytes) }
    func send(_ text: String) async throws { try await connection.send(text) }

    /// The next bytes.
    func read(_ count: Int) async throws -> [UInt8] {
        if buffer.count < count { buffer += try await connection.receive(atLeast: count - buffer.count) }
        defer { buffer.removeFirst(min(count, buffer.count)) }
        return Array(buffer.prefix(count))
    }

    /// Reads as many bytes as are expected and compares them.
    func expect(_ bytes: [UInt8]) async throws {
        let got = try await read(bytes.count)
        guard got == bytes else { throw Unexpected(description: "got \(got), expected \(bytes)") }
    }

    /// Reads as much text as is expected and compares it.
    func expect(_ text: String) async throws {
        let got = try await read(text.utf8.count)
        guard got == Array(text.utf8) else {
            throw Unexpected(description: "got \(String(decoding: got, as: UTF8.self)), expected \(text)")
        }
    }

    /// Nothing has come before the answer to something that is always answered.
    func expectNothing(before question: [UInt8], _ answer: [UInt8]) async throws {
        try await send(question)
        try await expect(answer)
    }

    /// The broker closes.
    func expectEnd() async throws {
        let rest = try await buffer + connection.receive { _ in false }
        guard rest.isEmpty else { throw Unexpected(description: "got \(rest), expected the end") }
    }

    struct Unexpected: Error, CustomStringConvertible {
        let description: String
    }
}

/// A broker that is stopped when the test is over, however it ends. Its clients may break these rules and no others.
func withBroker(
    _ options: LoopbackBrokerOptions = LoopbackBrokerOptions(), mayBreak: Set<Clause> = [],
    _ body: (LoopbackBroker) async throws -> Void
) async throws {
    let broker = try await LoopbackBroker.judged(options, judgesPromises: false, mayBreak: mayBreak)
    do {
        try await body(broker)
    } catch {
        await broker.stop()
        throw error
    }
    await broker.stop()
}

extension RawClient {
    /// A STOMP client of 1.2 that is connected: CONNECTED is read already.
    static func stomp(_ broker: LoopbackBroker, _ more: String = "") async throws -> RawClient {
        let client = try await open(broker.ports.stomp)
        try await client.send("CONNECT\naccept-version:1.2\nhost:x\n\(more)\n\0")
        let connected = try await client.readFrame()
        guard connected.hasPrefix("CONNECTED\n"), connected.contains("version:1.2\n") else {
            throw Unexpected(description: connected)
        }
        return client
    }

    /// The next frame as text, without its NUL and the line ends before it.
    func readFrame() async throws -> String {
        var frame: [UInt8] = []
        while true {
            let byte = try await read(1)
            guard let byte = byte.first else { throw Unexpected(description: "the end, after \(frame)") }
            if byte == 0 { return String(decoding: frame, as: UTF8.self) }
            if !frame.isEmpty || byte != UInt8(ascii: "\n") { frame.append(byte) }
        }
    }

    /// Sends a frame with a receipt and waits for it, so that it has been processed.
    func sendAndWait(_ frame: String, body: String = "") async throws {
        try await send("\(frame)\nreceipt:done\n\n\(body)\0")
        let answer = try await readFrame()
        guard answer == "RECEIPT\nreceipt-id:done\n\n" else { throw Unexpected(description: answer) }
    }

    /// Reads a MESSAGE and compares its body; returns its headers.
    @discardableResult
    func expectMessage(_ body: String) async throws -> [String: String] {
        let frame = try await readFrame()
        var lines = frame.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
        guard lines.popFirst() == "MESSAGE" else { throw Unexpected(description: "\(frame), expected a MESSAGE") }
        var headers: [String: String] = [:]
        while let line = lines.popFirst(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            headers[parts[0]] = headers[parts[0]] ?? parts[1]
        }
        let got = lines.joined(separator: "\n")
        guard got == body else { throw Unexpected(description: "got \(got), expected \(body)") }
        return headers
    }
}
