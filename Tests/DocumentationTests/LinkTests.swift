import Foundation
import Testing

/// Links between the pages of the documentation, and from them to files. `docc` checks the links to symbols.
@Suite struct LinkTests {
    @Test func `Relative links lead to files and headings that exist`() throws {
        var count = 0
        for page in DocumentationPage.all + DocumentationPage.examples {
            for link in Self.relativeLinks(in: page) {
                count += 1
                let file = DocumentationPage.root.appending(path: link.path)
                #expect(FileManager.default.fileExists(atPath: file.path), "\(page.path) links to \(link.path)")
                if let heading = link.heading {
                    #expect(
                        DocumentationPage(link.path).anchors.contains(heading),
                        "\(page.path) links to \(link.path)#\(heading)")
                }
            }
        }
        #expect(count > 100)
    }

    @Test func `The index by question has every article and every example`() {
        let index = DocumentationPage(".github/DOCUMENTATION.md")
        let linked = Set(Self.relativeLinks(in: index).map(\.path))
        let pages = Self.articles + DocumentationPage.examples
        #expect(Self.articles.count > 40 && DocumentationPage.examples.count >= 4)
        #expect(Set(pages.map(\.path)).subtracting(linked).sorted() == [], "pages that \(index.path) does not link to")
    }

    @Test func `The README leads to every article and every example in at most two steps`() {
        var reached: Set = ["README.md"]
        for _ in 1...2 {
            for page in reached.map(DocumentationPage.init) {
                reached.formUnion(Self.relativeLinks(in: page).map(\.path).filter { $0.hasSuffix(".md") })
            }
        }
        let pages = Self.articles + DocumentationPage.examples
        #expect(Set(pages.map(\.path)).subtracting(reached).sorted() == [])
    }

    @Test func `The README has the words that people search for, each beside a link`() {
        let words = [
            "AWS", "Azure", "HiveMQ", "EMQX", "Mosquitto", "RabbitMQ", "ActiveMQ", "Spring", "Home Assistant",
            "WebAssembly", "embedded", "WebSocket", "pinning", "client certificate", "self-signed", "transaction",
            "selector", "durable", "retained", "last will", "SwiftUI", "swift-log", "OpenTelemetry", "Wireshark",
            "Codable", "SIGTERM",
        ]
        let texts = DocumentationPage("README.md").prose.joined(separator: " ").matches(of: /\[([^\]]+)\]\(/)
            .map { String($0.output.1) }
        for word in words { #expect(texts.contains { $0.contains(word) }, "\(word)") }
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

    /// The pages of the catalogues: articles and landing pages. Pages of topic groups are read in the reference alone.
    static let articles = DocumentationPage.all.filter { $0.module != nil }

    struct RelativeLink {
        /// Relative to the package's folder.
        var path: String
        var heading: String?
    }

    /// The links to files and headings of the repository, which work where it is read.
    static func relativeLinks(in page: DocumentationPage) -> [RelativeLink] {
        let folder = DocumentationPage.root.appending(path: page.path).deletingLastPathComponent()
        let root = DocumentationPage.root.standardizedFileURL.path + "/"
        return targets(in: page).filter { !$0.contains("://") && !$0.hasPrefix("mailto:") }.map { target in
            let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            let file = folder.appending(path: String(parts[0])).standardizedFileURL.path
            return RelativeLink(
                path: parts[0].isEmpty ? page.path : String(file.dropFirst(root.count)),
                heading: parts.count == 2 ? String(parts[1]) : nil)
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
