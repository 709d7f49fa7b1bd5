import Foundation
import Testing

/// The rows that say "no counterpart" stay true: a file lists the names that would be counterparts.
struct NoCounterpartTests {
    private struct Entry {
        let call: String
        let names: [String]
    }

    private static func entries() throws -> [Entry] {
        let file = MigrationGuide.folder.appendingPathComponent("Calls/NoCounterpart.txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("# ") }
            .map { line in
                let parts = line.split(separator: ": ", maxSplits: 1)
                let names = parts.count == 2 ? parts[1].split(separator: " ").map(String.init) : []
                return Entry(call: String(parts[0]), names: names)
            }
    }

    @Test func `the file has each row without a counterpart, and no other`() throws {
        let rows = try MigrationGuide.all.flatMap { try $0.rows() }.filter { $0.ours == "no counterpart" }.map(\.call)
        // A row of CocoaMQTT serves CocoaMQTT5 too, if that has none of its own.
        let listed = try Self.entries().map(\.call)
        let missing = rows.filter { call in
            !listed.contains(call) && !listed.contains(call.replacing("CocoaMQTT5", with: "CocoaMQTT"))
        }
        #expect(missing == [], "rows that Tests/MigrationTests/Calls/NoCounterpart.txt does not list")
        #expect(Set(listed).subtracting(rows) == [], "entries of a row that has a counterpart, or is gone")
        #expect(listed.count == Set(listed).count, "a row is listed twice")
    }

    @Test func `no name exists that would be a counterpart`() throws {
        let names = try MigrationTests.names.get()
        let lists = try PublicLists()
        #expect(lists.names.contains("MQTTEvent.pingSent"), "the lists of .ci/public are not read")
        for entry in try Self.entries() {
            #expect(!entry.names.isEmpty, "\(entry.call)")
            let found = entry.names.filter { lists.names.contains($0) || names.containsAnyOverload(of: $0) }
            #expect(found == [], "\(entry.call) has a counterpart: say so in its table")
        }
    }
}

/// The names in the lists of `.ci/public`, as `Type.member` without labels. They lack what extensions of re-exported types
/// add, which the sources have.
private struct PublicLists {
    private(set) var names: Set<String> = []

    init() throws {
        // `Type: var name`, `Type: case name`, `-: struct Type` and so on.
        let declaration =
            /^([\w.\-]+): .*?\b(?:var|let|func|case|struct|enum|class|actor|protocol|typealias) (\w+)/
        let folder = MigrationGuide.sources.deletingLastPathComponent().appendingPathComponent(".ci/public")
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                guard let (_, type, member) = line.firstMatch(of: declaration)?.output else { continue }
                names.insert(type == "-" ? String(member) : "\(type).\(member)")
            }
        }
    }
}

extension PublicNames {
    /// Whether the name is public; without labels, whether one is with any.
    func containsAnyOverload(of name: String) -> Bool {
        contains(name) || (!name.contains("(") && names.contains { $0.hasPrefix("\(name)(") })
    }
}
