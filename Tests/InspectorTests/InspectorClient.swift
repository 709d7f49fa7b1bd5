import Foundation
import Inspector
import TestSupport

/// What a browser would send to an inspector page, byte for byte.
struct InspectorClient {
    let page: InspectorPage

    /// The address without scheme and host: `/TOKEN/`.
    var root: String { "/" + page.address.split(separator: "/")[2] + "/" }
    var host: String { "127.0.0.1:\(page.port)" }

    /// Sends a request with these header fields and no others, and returns all that comes back.
    func exchange(_ line: String, _ fields: [String], body: String = "") async throws -> String {
        let connection = try await RawConnection.open(port: page.port)
        try await connection.send(head(line, fields) + body)
        return String(decoding: try await connection.receive { _ in false }, as: UTF8.self)
    }

    /// Asks for something below the token, as the page itself does.
    func get(_ path: String) async throws -> String {
        try await exchange("GET \(root)\(path)", ["Host: \(host)"])
    }

    func post(_ path: String, body: String = "") async throws -> String {
        let fields = ["Host: \(host)", "Origin: http://\(host)", "Content-Length: \(body.utf8.count)"]
        return try await exchange("POST \(root)\(path)", fields, body: body)
    }

    /// Opens the stream of updates.
    func events(since cursor: UInt64 = 0) async throws -> EventStream {
        let connection = try await RawConnection.open(port: page.port)
        try await connection.send(head("GET \(root)events?since=\(cursor)", ["Host: \(host)"]))
        let stream = EventStream(connection: connection)
        let head = try await stream.block()
        guard head.hasPrefix("HTTP/1.1 200 OK") else { throw StreamRefused(head: head) }
        return stream
    }

    private func head(_ line: String, _ fields: [String]) -> String {
        (["\(line) HTTP/1.1"] + fields + ["", ""]).joined(separator: "\r\n")
    }
}

struct StreamRefused: Error {
    var head: String
}

/// Server-sent events.
struct EventStream {
    let connection: RawConnection

    /// An update as the page reads it.
    struct Update {
        var cursor: Int
        var missed: Int
        var isPaused: Bool
        var frames: [[String: Any]]
    }

    /// Lines up to the next empty one.
    func block() async throws -> String {
        var lines: [String] = []
        while true {
            let bytes = try await connection.receive(through: 0x0A)
            guard !bytes.isEmpty else { throw StreamEnded() }
            let line = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
            if line.isEmpty { return lines.joined(separator: "\n") }
            lines.append(line)
        }
    }

    /// The next update; greetings and comments are passed over.
    func update() async throws -> Update {
        while true {
            let block = try await block()
            guard block.hasPrefix("id: "), let data = block.components(separatedBy: "\ndata: ").last else { continue }
            let parsed = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any] ?? [:]
            return Update(
                cursor: parsed["cursor"] as? Int ?? -1, missed: parsed["missed"] as? Int ?? -1,
                isPaused: parsed["paused"] as? Bool ?? false, frames: parsed["frames"] as? [[String: Any]] ?? [])
        }
    }

    /// The frames of the next updates up to the one with this number.
    func frames(upTo number: Int) async throws -> [[String: Any]] {
        var frames: [[String: Any]] = []
        while true {
            let update = try await update()
            frames += update.frames
            if update.cursor >= number { return frames }
        }
    }
}

struct StreamEnded: Error {}
