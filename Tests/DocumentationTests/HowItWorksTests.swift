import Foundation
import Testing

/// The article on how the clients work names the files that a message passes through.
@Suite struct HowItWorksTests {
    static let page = DocumentationPage("Sources/MQTT/MQTT.docc/HowItWorks.md")

    @Test func `Each file and folder that it names exists`() {
        var count = 0
        for line in Self.page.lines {
            for match in line.matches(of: /`([A-Za-z0-9+\/.]+)`/) {
                let name = String(match.output.1)
                guard name.contains("/") || name.hasSuffix(".swift") else { continue }
                count += 1
                let path = name.hasPrefix("Sources/") || name.hasPrefix("Tests/") ? name : "Sources/\(name)"
                let file = DocumentationPage.root.appending(path: path)
                #expect(FileManager.default.fileExists(atPath: file.path), "there is no \(path)")
            }
        }
        #expect(count > 50)
    }

    @Test func `Each module is in its table`() throws {
        let modules = try FileManager.default.contentsOfDirectory(
            atPath: DocumentationPage.root.appending(path: "Sources").resolvingSymlinksInPath().path)
        for module in modules where module != "CMessagingPosix" && !module.hasPrefix(".") {
            #expect(Self.page.lines.contains { $0.hasPrefix("| ") && $0.contains("`\(module)`") }, "\(module)")
        }
    }
}
