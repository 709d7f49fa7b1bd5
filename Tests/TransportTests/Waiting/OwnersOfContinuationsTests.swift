import Foundation
import Testing

/// Rules that the compiler cannot check, because the standard library is open to every file.
@Suite("Waiters: owners in the sources")
struct OwnersOfContinuationsTests {
    @Test(
        arguments: [
            // Anyone else could resume a task twice, or never.
            ("UnsafeContinuation", "Transport/Waiting/Waiters.swift"),
            ("CheckedContinuation", nil),
            // In a function that inherits its caller's actor it leaves the actor: `waiting` does not.
            ("withTaskCancellationHandler", "Transport/Waiting/Waiters.swift"),
        ] as [(String, String?)])
    func `what one file owns appears in no other file`(_ name: String, owner: String?) throws {
        let files = try Self.sources()
        // The folder is the right one.
        #expect(files.count > 100)
        let users = files.filter { Self.code(of: $0.text).contains(name) }.map(\.path)
        #expect(users == (owner.map { [$0] } ?? []))
    }

    /// All files of `Sources`, by their paths in there.
    private static func sources() throws -> [(path: String, text: String)] {
        let folder = URL(filePath: #filePath).appending(path: "../../../../Sources").standardized
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        return try paths.filter { $0.hasSuffix(".swift") }.sorted().map { path in
            (path, try String(contentsOf: folder.appending(path: path), encoding: .utf8))
        }
    }

    /// Lines that are not comments.
    private static func code(of text: String) -> String {
        text.split(separator: "\n").filter { !$0.drop(while: { $0 == " " }).hasPrefix("//") }.joined(separator: "\n")
    }
}
