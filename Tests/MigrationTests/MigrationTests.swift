import Foundation
import Testing

/// The articles "Moving from …" cover every public call of the library that they name, with names of ours that exist.
struct MigrationTests {
    static let names = Result { try PublicNames(below: MigrationGuide.sources) }

    @Test(arguments: MigrationGuide.all)
    func `a table has one row for each call of the library that somebody looks up`(_ guide: MigrationGuide) throws {
        let calls = try guide.calls()
        let rows = try guide.rows().map(\.call)
        #expect(try guide.heading().hasPrefix("# "), "the list does not name the library and its version")
        #expect(calls.count > 20)
        let others = try guide.callsWithoutRow()
        #expect(Set(calls).subtracting(rows).subtracting(others).sorted() == [], "calls without a row")
        #expect(Set(rows).intersection(others).sorted() == [], "calls that are listed as without a row have one")
        #expect(Set(rows).subtracting(calls).sorted() == [], "rows without a call in the list")
        #expect(rows.count == Set(rows).count, "a call has two rows")
        #expect(calls.count == Set(calls).count, "the list has a call twice")
    }

    @Test(arguments: MigrationGuide.all)
    func `every name of ours in a table is public`(_ guide: MigrationGuide) throws {
        let names = try Self.names.get()
        let missing = try guide.rows().flatMap { row in
            MigrationGuide.names(in: row.ours).filter { !names.contains($0) }.map { "\(row.call): \($0)" }
        }
        #expect(missing == [], "names that are not public")
    }

    /// Notes also name calls of the other library and plain code, so that only names that begin with a type of ours count.
    @Test(arguments: MigrationGuide.all)
    func `every name in the notes and the text that begins with a type of ours is public`(
        _ guide: MigrationGuide
    ) throws {
        let names = try Self.names.get()
        let prose = try guide.text().split(separator: "\n").filter { !$0.hasPrefix("| `") }
        let cells = try guide.rows().map(\.notes) + prose.map(String.init)
        let missing = cells.flatMap(MigrationGuide.names(in:)).filter { name in
            guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return false }
            return names.contains(String(name[..<dot])) && !names.contains(name)
        }
        #expect(missing == [], "names that are not public")
    }

    @Test func `the page for the readers of the book names what is public`() throws {
        let file = MigrationGuide.sources.deletingLastPathComponent().appendingPathComponent(".github/FROM-THE-BOOK.md")
        let names = try Self.names.get()
        let ours = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .flatMap { MigrationGuide.names(in: String($0)) }
            .filter { $0.wholeMatch(of: /[A-Z]\w+\.\w+(\([\w:]*\))?/) != nil }
        #expect(ours.count > 20)
        #expect(ours.filter { !names.contains($0) } == [], "names that are not public")
    }

    @Test(arguments: MigrationGuide.all)
    func `a call without a counterpart has a note that says what to do instead`(_ guide: MigrationGuide) throws {
        for row in try guide.rows() where MigrationGuide.names(in: row.ours).isEmpty {
            #expect(row.ours == "no counterpart", "\(row.call)")
            #expect(!row.notes.isEmpty, "\(row.call)")
        }
    }
}

struct PublicNamesTests {
    @Test func `members are found with their labels`() {
        let names = PublicNames(
            #"""
            public struct Client: Sendable { // struct Hidden
                public let id = "public var fake: Int { \(3) }"
                public private(set) var count = 1 << 3
                public init?(_ text: some StringProtocol, named name: String = "a, b") {}
                public nonisolated(nonsending) func send<T: Sendable>(
                    _ body: [UInt8], to topic: [String: Int], then: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
                ) async throws(Failure) -> T { let inner = 1 }
                public subscript(position: Int) -> Int { 0 }
                public enum State: Sendable {
                    case idle, waiting(Duration, attempt: Int)
                    indirect case failed([Int]), ended = 3
                }
            }
            extension Client.State { public static var first: Self { .idle } }
            public protocol Coding { func encode(_ value: Int) }
            public typealias Alias = Client
            extension Client { public typealias Phase = State }
            extension Client.Phase { public static let last = 1 }
            """#)
        let expected = [
            "Client", "Client.id", "Client.count", "Client.init(_:named:)", "Client.send(_:to:then:)",
            "Client.subscript(_:)", "Client.State.idle", "Client.State.waiting(_:attempt:)", "Client.State.failed(_:)",
            "Client.State.ended", "Client.State.first", "Coding.encode(_:)", "Alias", "Alias.id", "Client.Phase.last",
            "Client.Phase",
        ]
        #expect(expected.filter { !names.contains($0) } == [])
        #expect(names.names.count == 17)
    }

    @Test func `members of a protocol and of its extensions are members of what conforms to it`() {
        let names = PublicNames(
            """
            public protocol Shared { func required() }
            extension Shared { public var offered: Int { 1 } }
            public protocol Further: Actor, Shared {}
            public actor Client<Element>: Other.Thing<Unrelated>, Further where Element: Sendable { let hidden = 1 }
            public struct Unrelated { public let value = 1 }
            """)
        #expect(names.contains("Client.required()"))
        #expect(names.contains("Client.offered"))
        #expect(names.contains("Further.offered"))
        #expect(!names.contains("Client.hidden"))
        #expect(!names.contains("Client.value"))
        #expect(!names.contains("Unrelated.offered"))
    }

    @Test func `what is not public is not found`() {
        let names = PublicNames(
            """
            public import struct Other.Thing
            public struct Client {
                let hidden = 1
                package func inner() {}
                struct Secret { public let value = 1 }
                enum Kind { case one }
            }
            struct Internal { public let value = 1 }
            extension String { public var text: String { self } }
            """)
        #expect(names.names == ["Client"])
    }
}
