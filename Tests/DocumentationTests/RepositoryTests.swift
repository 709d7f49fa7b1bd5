import Foundation
import Testing

/// Files that describe the repository to people and to hosts of documentation.
@Suite struct RepositoryTests {
    static func text(_ path: String) throws -> String {
        try String(contentsOf: DocumentationPage.root.appending(path: path), encoding: .utf8)
    }

    @Test func `The hosted documentation covers every library product`() throws {
        let products = try Self.text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        let line = try #require(
            try Self.text(".spi.yml").split(separator: "\n").first { $0.contains("documentation_targets") })
        let targets = line.matches(of: /\w+/).map { String($0.0) }
        #expect(products.count >= 6)
        for product in products { #expect(targets.contains(product), "\(product)") }
    }

    @Test func `The commands of the page for contributors name steps, scripts and folders that exist`() throws {
        let page = try Self.text(".github/CONTRIBUTING.md")
        let script = try Self.text(".ci/run")
        let steps = page.matches(of: /\.ci\/run((?: [a-z]+)+)/).flatMap { $0.1.split(separator: " ") }
        #expect(steps.count >= 5)
        for step in steps { #expect(script.contains("\n        \(step))"), "\(step)") }
        for path in page.matches(of: /`(?:Sources|Tests)\/\w+`/) {
            let folder = String(path.0.dropFirst().dropLast())
            #expect(
                FileManager.default.fileExists(atPath: DocumentationPage.root.appending(path: folder).path), "\(folder)"
            )
        }
    }
}
