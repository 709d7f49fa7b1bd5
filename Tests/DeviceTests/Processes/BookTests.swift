import ClientTestSupport
import Foundation
import LoopbackBroker
import TestSupport
import Testing

/// The commands of the page for the readers of the book.
@Suite(.turns)
struct BookTests {
    /// A row of the page's first table: a command, and what it prints.
    struct Row: Sendable, CustomTestStringConvertible {
        let chapter: String
        let command: String
        let prints: String

        var testDescription: String { chapter }
    }

    static let rows: [Row] = {
        let file = URL(fileURLWithPath: #filePath).appending(path: "../../../../.github/FROM-THE-BOOK.md").standardized
        let page = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return page.matches(of: /(?m)^\| ([1-8AB]) [^|]*\|[^|]*\| `([^`]+)` \| `([^`]+)` \|$/).map { match in
            Row(chapter: String(match.1), command: String(match.2), prints: String(match.3))
        }
    }()

    @Test func `the page has a command for each chapter and each appendix`() {
        #expect(Self.rows.map(\.chapter).joined() == "12345678AB")
    }

    @Test(arguments: rows) func `a command of the page prints what the page says`(row: Row) async throws {
        let words = row.command.split(separator: " ").map(String.init)
        try #require(words.starts(with: ["swift", "run"]) && words.count >= 3)
        let program = try #require(DeviceProgram(rawValue: words[2]))
        // A browser is not opened here, and the recording is replayed faster.
        var arguments = words.dropFirst(3).filter { $0 != "--open" } + ["--speed", "600"]
        // The loopback broker stands in for the brokers of the appendices.
        let broker = try await LoopbackBroker.judged()
        if let position = arguments.firstIndex(where: { $0.contains("://localhost:") }) {
            arguments[position] = try program == .locations ? broker.stompURL : broker.mqttURL
        }
        let (status, output, errors) = try await program.run(Array(arguments))
        await broker.stop()
        #expect(status == .exited(0) && errors == [])
        #expect(output.contains { $0.contains(row.prints) }, "\(output.prefix(40))")
    }
}
