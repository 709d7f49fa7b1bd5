import Foundation
import TestSupport
import Testing

/// The code of the README and of the articles is compiled as a part of this target, letter by letter.
@Suite struct SnippetTests {
    /// The conditions under which a block may be left out: what it shows needs a framework of Apple's systems or a
    /// package that this one does not depend on.
    static let conditions: Set = [
        "#if canImport(SwiftUI)", "#if canImport(UIKit)", "#if canImport(ServiceLifecycle)", "#if canImport(Logging)",
        "#if canImport(Metrics)", "#if canImport(SwiftProtobuf)",
    ]

    @Test func `Each block of Swift code in the documentation is compiled with these tests`() throws {
        if Campaign.environment("WRITE_SNIPPETS") == "1" { try SnippetFile.writeAll() }
        let root = DocumentationPage.root
        #expect(SnippetFile.all.count > 10)
        for file in SnippetFile.all {
            let compiled = try? String(contentsOf: root.appending(path: file.path), encoding: .utf8)
            #expect(
                compiled == file.content,
                "\(file.path) does not hold the code of \(file.page.path). Run: WRITE_SNIPPETS=1 swift test --filter SnippetTests"
            )
        }
        let expected = Set(SnippetFile.all.filter { $0.content != nil }.map(\.path))
        let present = try FileManager.default.contentsOfDirectory(atPath: root.path + "/" + SnippetFile.folder)
        #expect(Set(present.map { "\(SnippetFile.folder)/\($0)" }) == expected)
    }

    @Test func `Only code for other packages and for Apple's frameworks is exempt`() {
        for page in DocumentationPage.all {
            for snippet in page.snippets {
                if let condition = snippet.condition {
                    #expect(Self.conditions.contains(condition), "\(page.path)")
                } else if let marker = snippet.marker {
                    #expect(marker.hasPrefix("func "), "\(page.path): \(marker)")
                }
            }
        }
    }

    @Test func `A block becomes a function's body, declarations, or code under a condition`() {
        let body = Snippet(code: ["import MQTT", "", "await client.disconnect()"], marker: "func end() async")
        #expect(body.compiled == ["func end() async {", "    await client.disconnect()", "}"])
        #expect(body.imports == ["import MQTT"])
        let declaration = Snippet(code: ["import MQTT", "", "func a() {}"], marker: nil)
        #expect(declaration.compiled == ["func a() {}"])
        #expect(Snippet(code: [], marker: "#if canImport(SwiftUI)").condition == "#if canImport(SwiftUI)")
    }
}
