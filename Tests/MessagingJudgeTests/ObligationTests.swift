import Foundation
import Testing

@testable import MessagingJudge

/// The table of what clients must do, and the checks that it names.
@Suite struct ObligationTests {
    private struct Row {
        let place: String
        let check: String

        /// The rules that it names; nil if a judge cannot see it, with the reason.
        var clauses: [Substring]? {
            check.hasPrefix("not seen: ") ? nil : check.matches(of: /`(\w+)`/).map(\.1)
        }
    }

    private static func sections() throws -> [String: (text: String, rows: [Row])] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appending(path: "Sources/MessagingJudge/ClientObligations.md")
        let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n## ").dropFirst()
        var sections: [String: (text: String, rows: [Row])] = [:]
        for part in parts {
            let lines = part.split(separator: "\n")
            let rows = lines.filter { $0.hasPrefix("| ") }.dropFirst().map { line in
                let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                return Row(place: cells.first ?? "", check: cells.count > 2 ? cells[2] : cells.first ?? "")
            }
            sections[lines.first.map(String.init) ?? ""] = (part, rows)
        }
        return sections
    }

    private static let protocols = ["MQTT 5.0", "MQTT 3.1.1", "STOMP 1.0 to 1.2"]

    @Test func `Each obligation names rules that exist, or why it cannot be seen`() throws {
        let sections = try Self.sections()
        for name in Self.protocols {
            let rows = try #require(sections[name]).rows
            for row in rows {
                guard let clauses = row.clauses else {
                    #expect(row.check.utf8.count > 20, "\(row.place) gives no reason")
                    continue
                }
                #expect(!clauses.isEmpty, "\(row.place)")
                for clause in clauses {
                    let found = Clause(rawValue: String(clause))
                    #expect(found?.isOfSTOMP == name.hasPrefix("STOMP"), "\(row.place): \(clause)")
                }
            }
            let seen = rows.count { $0.clauses != nil }
            let text = "\(rows.count) obligations, of which \(seen) are checked."
            #expect(try #require(sections[name]).text.contains(text), "\(name): \(text)")
        }
    }

    @Test func `Each rule is in the table, at the clauses that it names`() throws {
        let sections = try Self.sections()
        let promises = try #require(sections["Promises of our clients"]).rows.map(\.check)
        #expect(promises.sorted() == Clause.allCases.filter(\.isPromise).map { "`\($0)`" }.sorted())
        for clause in Clause.allCases where !clause.isPromise {
            let named = Self.protocols.flatMap { sections[$0]?.rows ?? [] }.filter { $0.check.contains("`\(clause)`") }
            #expect(!named.isEmpty, "\(clause)")
            for (version, name) in [("v5", "MQTT 5.0"), ("v3", "MQTT 3.1.1")] {
                let rows = sections[name]?.rows ?? []
                for id in Self.ids(of: clause, version) {
                    let row = rows.first { $0.place == id }
                    #expect(row?.check.contains("`\(clause)`") == true, "\(clause) names \(id) of \(name)")
                }
            }
        }
    }

    /// The ids of one version in the reference of a rule, which are those of both behind "v5 and v3".
    private static func ids(of clause: Clause, _ version: String) -> [String] {
        let parts = clause.reference.components(separatedBy: ", v3 ")
        let isBoth = parts[0].hasPrefix("v5 and v3 ")
        let text = version == "v5" ? parts[0] : isBoth ? parts[0] : parts.count > 1 ? parts[1] : ""
        return text.matches(of: /MQTT-[0-9.]+-[0-9]+/).map { String($0.0) }
    }
}
