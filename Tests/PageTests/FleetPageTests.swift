import Foundation
import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// What the pages show of the programs: a page that stays, a fleet that is spread, and a link that is cut.
    @Suite(.serialized, .turns)
    struct FleetPageTests {
        private static let names = (1...5).map { "van-\($0)" }

        /// How many different places the vans of the page are at.
        private static let places = """
            new Set([\(names.map { "'\($0)'" }.joined(separator: ","))].map((id) => Locations.map.position(id))
                .filter(Boolean).map(({ latitude, longitude }) => `${latitude} ${longitude}`)).size
            """

        @Test func `on a terminal the page outlives a run, and shows a fleet with a name at five places`() async throws
        {
            let device = try await DeviceProgram.locations.start(
                ["--fleet", "5", "--speed", "60"],
                terminal: Command.TerminalSize(columns: 120, rows: 30))
            let prefix = "headquarters page: "
            let line = try await device.waitForLine(containing: prefix).text
            // On a terminal the line is bold.
            let address = try #require(line.firstMatch(of: /http:[0-9A-Za-z.:\/_-]+/))
            let tab = try await SharedBrokers.browser().open(String(address.0))
            try await tab.wait(until: "\(Self.places) === 5")
            #expect(
                try await tab.evaluate("[...Locations.devices.keys()].sort().join()")
                    == Self.names.joined(separator: ","))
            #expect(await eventually { device.text().contains("  run 2  ") }, "\(device.report)")
            let fixes = "[...Locations.devices.values()].reduce((sum, { fixes }) => sum + fixes, 0)"
            let count = try await tab.number(fixes)
            try await tab.wait(until: "\(fixes) > \(count) + 20")
            #expect(try await tab.evaluate("document.documentElement.dataset.state") == "on")
            #expect(tab.problems == [])
            try await tab.navigate(to: "data:text/html,gone")
            #expect(try await device.end(by: SIGINT) == .exited(0))
        }

        @Test(.requires(.rabbitMQ), arguments: PageBroker.most(for: .locations, usual: .rabbitMQ))
        func `every fix reaches the page although the link to the broker is cut`(broker: PageBroker) async throws {
            try await broker.withPage(.locations) { page, addresses in
                let scratch = try ScratchDirectory("cut")
                let track = (0..<40).map { "\(Double(10_000 + $0) / 1000),7.25\n" }.joined()
                let path = try scratch.write(track, to: "track.csv")
                let relay = try TCPRelay.start(
                    to: try #require(addresses.device.split(separator: ":").last.flatMap { Int($0) }),
                    swallowingAfter: #""lat":10.01,"#)
                let device = try await DeviceProgram.locations.start(
                    [
                        "--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "cut", "--track", path,
                        "--speed", "20",
                    ], user: addresses.user)
                #expect(await eventually { relay.swallowedCount > 0 })
                relay.cut()
                let lost = try await device.waitForLine(containing: "connection lost: ")
                try await device.waitForLine(containing: "cannot connect: ", after: lost)
                relay.restore()
                #expect(try await device.waitForEnd() == .exited(0))
                let summary = device.lines().last ?? ""
                #expect(summary.hasPrefix("summary: 40 fixes sent, 0 unconfirmed, "), "\(device.report)")
                try await page.tab.wait(until: "(Locations.devices.get('cut')?.fixes ?? 0) >= 40")
                try await page.tab.wait(until: "Math.abs(Locations.map.position('cut').latitude - 10.039) < 1e-6")
            }
        }
    }
}
