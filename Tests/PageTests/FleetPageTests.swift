import DeviceSupport
import Foundation
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
                ["--fleet", "5", "--name", "van", "--speed", "60"],
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
            try await device.waitForLine(containing: "the replay starts over: run 2")
            let fixes = "[...Locations.devices.values()].reduce((sum, { fixes }) => sum + fixes, 0)"
            let count = try await tab.number(fixes)
            try await tab.wait(until: "\(fixes) > \(count) + 20")
            #expect(try await tab.evaluate("document.documentElement.dataset.state") == "on")
            #expect(tab.problems == [])
            try await tab.navigate(to: "data:text/html,gone")
            #expect(try await device.end(by: SIGINT) == .exited(0))
        }

        @Test(.requires(.mosquitto)) func `motions of a fleet with a name differ, over Mosquitto`() async throws {
            let broker = try await SharedBrokers.mosquitto()
            let page = try await Headquarters.open(.motions, "ws://127.0.0.1:\(broker.webSocketPort ?? 0)")
            try await page.waitForState("on")
            let device = try await DeviceProgram.motions.start([
                "--broker", "mqtt://127.0.0.1:\(broker.port)", "--fleet", "3", "--name", "spread", "--interval", "0.2",
                "--loop",
            ])
            let ids = "['spread-1','spread-2','spread-3']"
            try await page.tab.wait(until: "\(ids).every((id) => (Motions.devices.get(id)?.sparkline.count ?? 0) > 2)")
            let shown = device.lines().filter { $0.contains("pitch: ") }.map { $0.dropFirst(3) }
            #expect(Set(shown).count > 3)
            #expect(page.tab.problems == [])
            try await page.close()
            #expect(try await device.end() == .exited(0))
        }

        @Test(.requires(.rabbitMQ)) func `every fix reaches the page although the link to RabbitMQ is cut`()
            async throws
        {
            let broker = try await SharedBrokers.rabbitMQ()
            let scratch = try ScratchDirectory("cut")
            let track = (0..<40).map { "\(Double(10_000 + $0) / 1000),7.25\n" }.joined()
            let path = try scratch.write(track, to: "track.csv")
            let relay = try TCPRelay.start(to: broker.stompPort)
            let page = try await Headquarters.open(.locations, "ws://127.0.0.1:\(broker.webStompPort)/ws")
            try await page.tab.wait(until: "document.getElementById('notices').textContent.startsWith('Subscribed to')")
            let device = try await DeviceProgram.locations.start(
                [
                    "--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "cut", "--track", path, "--speed",
                    "20",
                    "--heart-beat", "0,500",
                ], user: broker.user)
            try await device.waitForLine(containing: "φ:10.0100")
            relay.swallow()
            let lost = try await device.waitForLine(containing: "connection lost: ")
            relay.cut()
            try await device.waitForLine(containing: "cannot connect: ", after: lost)
            relay.restore()
            #expect(try await device.waitForEnd(timeout: .seconds(60)) == .exited(0))
            #expect(
                device.lines().last?.hasPrefix("summary: 40 fixes sent, 0 unconfirmed, ") == true, "\(device.report)")
            try await page.tab.wait(until: "(Locations.devices.get('cut')?.fixes ?? 0) >= 40")
            try await page.tab.wait(until: "Math.abs(Locations.map.position('cut').latitude - 10.039) < 1e-6")
            #expect(page.tab.problems == [])
            try await page.close()
        }
    }
}
