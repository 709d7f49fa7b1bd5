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
        let known = Set(script.matches(of: /(?m)^ +([a-z]+)\)/).map { $0.1 })
        for step in steps { #expect(known.contains(step), "\(step)") }
        for path in page.matches(of: /`(?:Sources|Tests)\/\w+`/) {
            let folder = String(path.0.dropFirst().dropLast())
            #expect(
                FileManager.default.fileExists(atPath: DocumentationPage.root.appending(path: folder).path), "\(folder)"
            )
        }
    }

    /// `.ci/run` compares the date with the clock, which no test does.
    @Test func `The comparison with other clients has a date, and a version of each client`() throws {
        let page = try Self.text("README.md")
        let months = "January February March April May June July August September October November December"
        let date = try #require(page.firstMatch(of: #/\nAs of (\w+) 20\d\d, /#)?.output.1)
        #expect(months.split(separator: " ").contains(date))
        let heading = try #require(page.split(separator: "\n").first { $0.hasPrefix("| | this |") })
        let clients = heading.split(separator: "|").dropFirst(2)
        #expect(clients.count == 5)
        for client in clients { #expect(client.contains(#/ \d+\.\d+/#), "\(client)") }
    }
}
