import Foundation
import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// What people see on the pages while the programs run, over each broker that speaks the protocol.
    @Suite(.serialized, .turns)
    struct PageTourTests {
        private static let names = "['van-1','van-2','van-3']"

        @Test(arguments: PageBroker.most(for: .locations, usual: .embedded))
        func `the locations page shows a fleet, a live source and a wrong clock, and sends a text`(
            broker: PageBroker
        ) async throws {
            try await broker.withPage(.locations) { page, addresses in
                let tab = page.tab
                func start(_ id: [String], _ options: [String], input: Command.Input = .null) async throws
                    -> ChildProcess
                {
                    try await DeviceProgram.locations.start(
                        ["--broker", addresses.device, "--virtual-host", "/"] + id + options, user: addresses.user,
                        input: input)
                }
                // A fleet is apart and starts over at the end of its recording.
                let fleet = try await start(["--fleet", "3", "--name", "van"], ["--speed", "100", "--loop"])
                let places = "\(Self.names).map((id) => Locations.map.position(id)).filter(Boolean)"
                try await tab.wait(until: "new Set(\(places).map(({ latitude }) => latitude)).size === 3")
                try await fleet.waitForLine(containing: "the replay starts over: run 2")
                #expect(
                    try await tab.evaluate(
                        "[...document.querySelectorAll('#devices .id')].map((id) => id.textContent).join()")
                        == "van-1,van-2,van-3")
                try await tab.wait(until: "document.querySelector('.device .speed')?.textContent.endsWith(' km/h')")
                #expect(try await fleet.end() == .exited(0))

                // The line after an old one is on the map at once.
                let live = try await start(["--device-id", "live"], ["--track", "-"], input: .pipe)
                try await live.waitForLine(containing: "subscribed to")
                // Not old for as long as the test takes.
                let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: 600))
                try await live.write("1,2,2014-03-13T17:19:05+01:00\n3,4,\(now)\n")
                try await tab.wait(until: "Math.abs(Locations.map.position('live')?.latitude - 3) < 1e-6")
                #expect(try await tab.evaluate("Locations.devices.get('live').fixes") == "1")

                // Texts to the device that is chosen, with a receipt.
                try await tab.evaluate("Locations.select('live')")
                try await tab.fill("#text", "Où es-tu?")
                try await tab.click("#send")
                try await live.waitForLine(containing: "text: Où es-tu?")
                try await tab.wait(until: "document.querySelector('#sent li')?.dataset.receipt === 'received'")
                live.closeInput()
                #expect(try await live.waitForEnd() == .exited(0))

                // Years between two fixes are replayed as a second.
                let scratch = try ScratchDirectory("clock")
                let track = "5,6,1901-12-13T20:45:52Z\n5,7,1999-12-31T23:59:59Z\n5,8,2014-03-13T17:19:05Z\n"
                let file = try scratch.write(track, to: "clock.csv")
                let clock = try await start(["--device-id", "clock"], ["--track", file, "--speed", "10"])
                #expect(try await clock.waitForEnd() == .exited(0))
                try await tab.wait(until: "Locations.devices.get('clock')?.fixes === 3")
                try await tab.wait(until: "Math.abs(Locations.map.position('clock').longitude - 8) < 1e-6")
            }
        }

        @Test(.requires(.rabbitMQ), arguments: PageBroker.most(for: .motions, usual: .rabbitMQ))
        func `the motions page shows a fleet and a live source, sends an alert, and loses a device that is killed`(
            broker: PageBroker
        ) async throws {
            try await broker.withPage(.motions) { page, addresses in
                let tab = page.tab
                func start(_ id: [String], _ options: [String], input: Command.Input = .null) async throws
                    -> ChildProcess
                {
                    try await DeviceProgram.motions.start(
                        ["--broker", addresses.device] + id + options, user: addresses.user, input: input)
                }
                let fleet = try await start(["--fleet", "3", "--name", "van"], ["--interval", "0.2", "--loop"])
                try await tab.wait(
                    until: "\(Self.names).every((id) => (Motions.devices.get(id)?.sparkline.count ?? 0) > 2)")
                let postures = "[...document.querySelectorAll('.phone')].map((phone) => phone.style.transform)"
                try await tab.wait(until: "new Set(\(postures)).size === 3")
                #expect(try await fleet.end() == .exited(0))

                // The last rows before the end of the input are drawn, whatever their recorded times.
                let live = try await start(["--device-id", "live"], ["--motion", "-"], input: .pipe)
                try await live.waitForLine(containing: "subscribed to")
                try await live.write("time,pitch,roll,yaw\n0,0,0,0\n3600,0,0.5,0\n")
                try await tab.wait(
                    until:
                        "document.querySelector('[data-device=live] .phone')?.style.transform.endsWith('rotateY(28.6deg)')"
                )
                // An alert reaches the device, and the page shows when that was acknowledged.
                try await tab.click("[data-device=live] button")
                try await live.waitForLine(containing: "alert: red")
                try await tab.wait(
                    until: "document.querySelector('[data-device=live] output').textContent.includes('acknowledged')")
                #expect(
                    try await tab.text(of: "[data-device=live] output").contains(/^red acknowledged at \d.*, \d+ ms$/))

                // Its last will removes it, and is an event.
                await live.kill()
                try await tab.wait(until: "!Motions.devices.has('live')")
                try await tab.wait(
                    until: "document.getElementById('events').innerText.includes('live is gone: its last will arrived')"
                )
            }
        }
    }
}
