import Foundation

/// A page of the documentation: the README, a page for contributors, or an article of one of the catalogues below
/// `Sources`.
struct DocumentationPage {
    /// The package's folder.
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// All pages, sorted by path, but for those that only group the members of a type: `.ci/docs` checks them.
    static let all: [DocumentationPage] = {
        let sources = root.appending(path: "Sources").resolvingSymlinksInPath()
        let catalogues = (try? FileManager.default.subpathsOfDirectory(atPath: sources.path)) ?? []
        let articles = catalogues.filter { $0.contains(".docc/") && !$0.contains("/Members/") && $0.hasSuffix(".md") }
            .map { "Sources/\($0)" }
        let github = (try? FileManager.default.contentsOfDirectory(atPath: root.path + "/.github")) ?? []
        let others = github.filter { $0.hasSuffix(".md") }.map { ".github/\($0)" } + ["README.md"]
        return (articles + others).sorted().map(DocumentationPage.init)
    }()

    /// The READMEs of the examples, sorted by path. Their code belongs to other packages.
    static let examples: [DocumentationPage] = {
        let files = (try? FileManager.default.subpathsOfDirectory(atPath: root.path + "/Examples")) ?? []
        return files.filter { $0.hasSuffix("README.md") && !$0.contains(".build/") }.sorted()
            .map { DocumentationPage("Examples/\($0)") }
    }()

    /// Relative to ``root``.
    let path: String
    /// Without line ends.
    let lines: [String]

    init(_ path: String) {
        self.path = path
        let text = (try? String(contentsOf: Self.root.appending(path: path), encoding: .utf8)) ?? ""
        lines = text.components(separatedBy: "\n")
    }

    /// The file's name without its ending.
    var name: String { URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent }

    /// The module whose catalogue the page is in, if it is in one.
    var module: String? {
        path.components(separatedBy: "/").first { $0.hasSuffix(".docc") }.map { String($0.dropLast(".docc".count)) }
    }

    /// The Swift code of the page in its order.
    var snippets: [Snippet] {
        var found: [Snippet] = []
        var comment: String?
        var open: (language: String, code: [String])?
        for line in lines {
            if let (language, code) = open {
                if line.hasPrefix("```") {
                    if language == "swift" { found.append(Snippet(code: code, marker: comment)) }
                    (open, comment) = (nil, nil)
                } else {
                    open = (language, code + [line])
                }
            } else if line.hasPrefix("```") {
                open = (String(line.dropFirst(3)), [])
            } else if line.hasPrefix("<!-- "), line.hasSuffix(" -->") {
                comment = String(line.dropFirst(5).dropLast(4))
            } else if !line.isEmpty {
                comment = nil
            }
        }
        return found
    }

    /// The lines outside code blocks.
    var prose: [String] {
        var isCode = false
        return lines.filter { line in
            if line.hasPrefix("```") {
                isCode.toggle()
                return false
            }
            return !isCode
        }
    }

    /// The headings as the links to them are written: in lower case, with hyphens and without punctuation.
    var anchors: Set<String> {
        Set(
            prose.filter { $0.hasPrefix("#") }.map { heading in
                let text = heading.drop { $0 == "#" || $0 == " " }.lowercased()
                return String(text.filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_" })
                    .replacing(" ", with: "-")
            })
    }
}

/// A block of Swift code.
struct Snippet {
    let code: [String]
    /// The HTML comment above the block, which no reader sees: `func name(client: MQTTClient) async throws` makes the
    /// block the body of that function, `#if canImport(SwiftUI)` compiles it where that holds. A block without one
    /// consists of declarations.
    let marker: String?

    /// The condition under which the block is compiled.
    var condition: String? { marker.flatMap { $0.hasPrefix("#if ") ? $0 : nil } }

    var imports: [String] { code.filter { $0.hasPrefix("import ") } }

    /// The block as it is compiled, without its imports.
    var compiled: [String] {
        let body = code.filter { !$0.hasPrefix("import ") }.drop { $0.isEmpty }
        guard let marker, marker.hasPrefix("func ") else { return Array(body) }
        return ["\(marker) {"] + body.map { $0.isEmpty ? "" : "    \($0)" } + ["}"]
    }
}
