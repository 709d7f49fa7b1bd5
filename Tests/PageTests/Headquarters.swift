import DeviceSupport
import Foundation
import TestSupport

/// A headquarters page in a real browser, as a device serves it.
struct Headquarters {
    let tab: BrowserTab
    private let server: PageServer

    /// Opens a page that connects to `url` by itself, or with an empty one to nothing.
    static func open(_ page: Device, _ url: String, in browser: Browser? = nil) async throws -> Headquarters {
        let server = try await PageServer.start(PageSite(first: page, brokers: url.isEmpty ? [:] : [page: url]))
        let chosen: Browser = if let browser { browser } else { try await SharedBrokers.browser() }
        return Headquarters(tab: try await chosen.open(server.address), server: server)
    }

    /// The page closes with its server.
    func close() async throws {
        try await tab.navigate(to: "data:text/html,gone")
        await server.stop()
    }

    func waitForState(_ state: String, timeout: Duration = .seconds(20)) async throws {
        try await tab.wait(until: "document.documentElement.dataset.state === '\(state)'", timeout: timeout)
    }

    func connect(user: String, password: String) async throws {
        try await tab.fill("#user", user)
        try await tab.fill("#password", password)
        try await tab.click("#connect")
    }

    /// Takes a picture into the folder that the environment names as `SCREENSHOTS`.
    func picture(_ name: String) async throws {
        guard let folder = Campaign.environment("SCREENSHOTS") else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try await tab.screenshot(to: "\(folder)/\(name).png")
    }
}
