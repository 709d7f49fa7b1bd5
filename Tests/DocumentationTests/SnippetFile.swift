import Foundation

/// A file of this target that holds the code of one page, so that the compiler checks it together with the tests.
struct SnippetFile {
    static let folder = "Tests/DocumentationTests/Snippets"

    let page: DocumentationPage

    var path: String { "\(Self.folder)/\(page.module ?? "")\(page.name).swift" }

    /// What the file has to hold; nil for a page without code.
    var content: String? {
        let snippets = page.snippets
        guard !snippets.isEmpty else { return nil }
        var lines = ["// The code of \(page.path), written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`."]
        lines += Set(snippets.filter { $0.condition == nil }.flatMap(\.imports)).sorted()
        for snippet in snippets {
            lines.append("")
            if let condition = snippet.condition {
                lines.append(condition)
                lines += (snippet.imports + [""] + snippet.compiled).map { $0.isEmpty ? "" : "    \($0)" }
                lines.append("#endif")
            } else {
                lines += snippet.compiled
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    static let all = DocumentationPage.all.map(SnippetFile.init)

    /// Writes every file anew and removes those whose page is gone.
    static func writeAll() throws {
        let folder = DocumentationPage.root.appending(path: folder)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".swift") {
            try FileManager.default.removeItem(at: folder.appending(path: name))
        }
        for file in all {
            try file.content?.write(
                to: DocumentationPage.root.appending(path: file.path), atomically: true, encoding: .utf8)
        }
    }
}
