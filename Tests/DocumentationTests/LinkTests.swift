import Foundation
import Testing

/// Links between the pages of the documentation, and from them to files. `docc` checks the links to symbols.
@Suite struct LinkTests {
    @Test func `Relative links lead to files and headings that exist`() throws {
        var count = 0
        for page in DocumentationPage.all {
            let folder = DocumentationPage.root.appending(path: page.path).deletingLastPathComponent()
            for target in Self.targets(in: page) where !target.contains("://") && !target.hasPrefix("mailto:") {
                count += 1
                let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let file = parts[0].isEmpty ? nil : folder.appending(path: String(parts[0])).standardizedFileURL
                if let file {
                    #expect(
                        FileManager.default.fileExists(atPath: file.path), "\(page.path) links to \(target)")
                }
                if parts.count == 2 {
                    let root = DocumentationPage.root.standardizedFileURL.path + "/"
                    let path = file.map { String($0.path.dropFirst(root.count)) } ?? page.path
                    #expect(
                        DocumentationPage(path).anchors.contains(String(parts[1])), "\(page.path) links to \(target)")
                }
            }
        }
        #expect(count > 20)
    }

    @Test func `Links to articles lead to articles`() throws {
        var count = 0
        for page in DocumentationPage.all {
            for link in Self.articleLinks(in: page) {
                count += 1
                let article = DocumentationPage("Sources/\(link.module)/\(link.module).docc/\(link.article).md")
                #expect(!article.lines.joined().isEmpty, "\(page.path) links to \(link)")
                if let heading = link.heading {
                    #expect(
                        article.anchors.contains { $0.caseInsensitiveCompare(heading) == .orderedSame },
                        "\(page.path) links to \(link)")
                }
            }
        }
        #expect(count > 20)
    }

    @Test func `Each article is listed on its module's landing page`() throws {
        for page in DocumentationPage.all {
            guard let module = page.module, page.name != module else { continue }
            let landing = DocumentationPage("Sources/\(module)/\(module).docc/\(module).md")
            #expect(
                landing.lines.contains("- <doc:\(page.name)>"), "\(landing.path) does not list \(page.name)")
        }
    }

    @Test(arguments: ["MQTT", "STOMP", "Inspector"])
    func `Each type that a module re-exports is listed on its landing page`(module: String) throws {
        let sources = DocumentationPage.root.appending(path: "Sources/\(module)").resolvingSymlinksInPath()
        let files = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        let exports = try #require(files.first { $0.hasSuffix("Exports.swift") })
        let text = try String(contentsOf: sources.appending(path: exports), encoding: .utf8)
        let landing = DocumentationPage("Sources/\(module)/\(module).docc/\(module).md")
        let names = text.matches(of: /@_exported public import \w+ \w+\.(\w+)/).map { String($0.output.1) }
        #expect(!names.isEmpty)
        for name in names {
            #expect(landing.lines.contains("- ``\(name)``"), "\(landing.path) does not list \(name)")
        }
    }

    /// The targets of `[text](target)` and `![text](target)` outside code.
    static func targets(in page: DocumentationPage) -> [String] {
        page.prose.flatMap { line in
            Self.withoutCode(line).matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
        }
    }

    struct ArticleLink {
        var module: String
        var article: String
        var heading: String?
    }

    /// `<doc:Article>` in the page's own catalogue and `<doc:/Module/Article>` in another one.
    static func articleLinks(in page: DocumentationPage) -> [ArticleLink] {
        page.prose.flatMap { line in
            Self.withoutCode(line).matches(of: /<doc:([^>]+)>/).map { match in
                let parts = match.output.1.split(separator: "#", maxSplits: 1)
                let steps = parts[0].split(separator: "/")
                return ArticleLink(
                    module: steps.count == 2 ? String(steps[0]) : page.module ?? "", article: String(steps.last ?? ""),
                    heading: parts.count == 2 ? String(parts[1]) : nil)
            }
        }
    }

    /// A line without what stands between single backquotes.
    private static func withoutCode(_ line: String) -> String {
        line.replacing(/`[^`]*`/, with: "")
    }
}
