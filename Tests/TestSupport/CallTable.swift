import Foundation
import Synchronization
public import Testing

/// A state of a client in which a call is made.
public enum CallState: Int, CaseIterable, Sendable {
    case notStarted, starting, reconnecting, suspended, disconnected, stopped

    /// The column of the table, behind the call's name: starting and reconnecting share one.
    var column: Int { max(0, rawValue - (self == .notStarted || self == .starting ? 0 : 1)) }
    /// Whether the client was connected before, so that it has a subscription and a message.
    public var followsConnection: Bool { self != .notStarted && self != .starting }
}

/// A table of an article about both clients.
public enum ArticleTable {
    /// The cells of each row of the first table of `article` whose head begins with `name`.
    public static func rows(_ name: String, in article: String) throws -> [[String]] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/MessagingShell/MessagingShell.docc/\(article).md").standardized
        let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        let rows = lines.drop { !$0.hasPrefix("| \(name) |") }.dropFirst(2).prefix { $0.hasPrefix("| ") }
        return rows.map { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}

/// A table that shows what each call of a client does, for example in each state.
public struct CallTable: Sendable {
    /// The cells by the call, which is the first one of a row.
    public let cells: [String: [String]]

    /// Reads the table whose head begins with `name`.
    public init(_ name: String, in article: String = "Reconnecting") throws {
        let rows = try ArticleTable.rows(name, in: article)
        cells = Dictionary(rows.map { ($0[0], Array($0[1...])) }) { first, _ in first }
    }
}

/// A client in some state.
public protocol CallSubject: Sendable {
    /// How often the client has been connected.
    var connections: Int { get }
    /// Restores the network and returns when the client is connected.
    func connect() async throws
    /// Returns when the broker has received what the call has queued.
    func callArrives() async
    func close() async
}

/// What a row throws when a sequence has ended.
public struct SequenceEnd: Error {
    public init() {}
}

/// A row of the table, and the call that it is about.
public struct CallRow<Subject: CallSubject>: Sendable, CustomTestStringConvertible {
    public let name: String
    /// Whether the call needs a subscription or a message, and so a connection in the past.
    let needsConnection: Bool
    let body: @Sendable (Subject) async throws -> Void

    public init(
        _ name: String, needsConnection: Bool = false, _ body: @escaping @Sendable (Subject) async throws -> Void
    ) {
        self.name = name
        self.needsConnection = needsConnection
        self.body = body
    }

    public var testDescription: String { name }

    /// Makes the call in each state, with a client for each, and compares what it does with the table.
    ///
    /// - Parameter code: the code of an error that the client throws.
    public func check(
        against table: CallTable, code: @escaping @Sendable (any Error) -> String?,
        in make: (CallState) async throws -> Subject
    ) async throws {
        let cells = try #require(table.cells[name])
        try #require(cells.count == 5)
        if needsConnection { #expect(cells[0] == "–") }
        for state in CallState.allCases where state.followsConnection || !needsConnection {
            let expected = cells[state.column]
            let subject = try await make(state)
            var seen = try await outcome(subject, waits: expected == "waits", code)
            if expected == "queued", seen == "returns" {
                try await subject.connect()
                try await withTimeout(.patience, "the arrival of what was queued") { await subject.callArrives() }
                seen = expected
            }
            #expect(seen == expected, "\(state)")
            await subject.close()
        }
    }

    /// - Parameter waits: whether a connection is needed to end the call.
    private func outcome(
        _ subject: Subject, waits: Bool, _ code: @escaping @Sendable (any Error) -> String?
    ) async throws -> String {
        let before = subject.connections
        let hasBegun = Atomic(false)
        let call = Task {
            hasBegun.store(true, ordering: .releasing)
            let end: String
            do {
                try await body(subject)
                end = "returns"
            } catch is SequenceEnd {
                end = "ends"
            } catch {
                end = code(error).map { "`\($0)`" } ?? "\(error)"
            }
            return (end: end, connections: subject.connections)
        }
        if waits {
            while !hasBegun.load(ordering: .acquiring) { await Task.yield() }
            // A call that does not wait has ended before the connection.
            for _ in 0..<10 { await Task.yield() }
            try await subject.connect()
        }
        let result = try await withTimeout(.patience, name) {
            await withTaskCancellationHandler {
                await call.value
            } onCancel: {
                call.cancel()
            }
        }
        guard result.end == "returns", result.connections > before else { return result.end }
        return waits ? "waits" : "connects"
    }
}
