import Foundation
import LoopbackBroker
import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// The pages as the programs serve them, with devices that are processes.
    @Suite(.serialized)
    struct ProgramPageTests {
        /// Opens the page whose address the program prints.
        private func page(of program: ChildProcess) async throws -> BrowserTab {
            let line = try await program.waitForLine(containing: "headquarters page: ").text
            return try await SharedBrokers.browser().open(String(line.dropFirst("headquarters page: ".count)))
        }

        private func leave(_ tab: BrowserTab) async throws {
            #expect(tab.problems == [])
            try await tab.navigate(to: "data:text/html,gone")
        }

        @Test func `a drive is seen, and a text reaches the driver`() async throws {
            let device = try await DeviceProgram.locations.start(
                ["--device-id", "car", "--speed", "20", "--loop"])
            let tab = try await page(of: device)
            try await tab.wait(until: "document.querySelector('.marker')?.title === 'car is here'")
            let latitude = "Locations.map.position('car').latitude"
            let start = try await tab.number(latitude)
            try await tab.wait(until: "Math.abs(\(latitude) - \(start)) > 1e-5")
            try await tab.wait(until: "document.querySelector('#devices li button, #devices li') !== null")
            try await tab.click("#devices li button, #devices li")
            try await tab.fill("#text", "come home, naïve driver")
            try await tab.click("#send")
            try await device.waitForLine(containing: "text: come home, naïve driver")
            try await tab.wait(until: "document.querySelector('#sent li')?.dataset.receipt === 'received'")
            try await leave(tab)
            #expect(try await device.end() == .exited(0))
        }

        /// Types into the publish pane of the inspector beside the program's page.
        @Test(arguments: DeviceProgram.allCases)
        func `the publish pane of the inspector reaches the device`(program: DeviceProgram) async throws {
            let isMotions = program == .motions
            let device = try await program.start(["--device-id", "pane", "--loop"])
            let line = try await device.waitForLine(containing: "headquarters page: ").text
            let address = String(line.dropFirst("headquarters page: ".count))
            try await device.waitForLine(containing: "subscribed to")
            let tab = try await SharedBrokers.browser().open(address + "inspector.html")
            try await tab.wait(until: "document.getElementById('state').textContent === 'Live'")
            try await tab.fill("#topic", isMotions ? "/mwm/pane/alert" : "/queue/device.pane.text")
            try await tab.fill("#message", "green")
            try await tab.click("#publish button")
            try await device.waitForLine(containing: isMotions ? "alert: green" : "text: green")
            try await tab.wait(until: "document.getElementById('published').textContent.startsWith('✓ after ')")
            try await leave(tab)
            #expect(try await device.end() == .exited(0))
        }

        @Test func `motions are drawn, an alert reaches the device, and one that is killed vanishes`() async throws {
            let device = try await DeviceProgram.motions.start(
                ["--device-id", "kept", "--speed", "5", "--interval", "0.5", "--loop"])
            let tab = try await page(of: device)
            try await tab.wait(until: "(Motions.devices.get('kept')?.sparkline.count ?? 0) > 3")
            try await tab.click(".card button")
            try await device.waitForLine(containing: "alert: red")
            let victim = try await DeviceProgram.motions.start(
                [
                    "--device-id", "victim", "--loop", "--broker",
                    "mqtt://127.0.0.1:\(try await device.embeddedPort("mqtt"))",
                ])
            try await tab.wait(until: "Motions.devices.has('victim')")
            await victim.kill()
            try await tab.wait(until: "!Motions.devices.has('victim')")
            #expect(try await tab.text(of: ".card h3") == "kept")
            try await leave(tab)
            #expect(try await device.end() == .exited(0))
        }

        @Test func `heals when the broker comes back, and the devices with it`() async throws {
            var options = LoopbackBrokerOptions()
            options.stompPort = .none
            // Ports that the system gives to no connection while the broker is away.
            options.mqttPort = .exactly(FreePort.next())
            options.wsPort = .exactly(FreePort.next())
            let first = try await LoopbackBroker.start(options)
            let page = try await Headquarters.open(.motions, first.urls.ws ?? "")
            let device = try await DeviceProgram.motions.start(
                ["--device-id", "phone", "--loop", "--broker", first.urls.mqtt ?? ""])
            try await page.tab.wait(until: "Motions.devices.has('phone')")
            await first.stop()
            try await page.waitForState("waiting")
            try await device.waitForLine(containing: "connection lost: ")
            let second = try await LoopbackBroker.start(options)
            try await page.waitForState("on")
            let again = try await device.waitForLine(containing: "connected again")
            try await device.waitForLine(containing: "pitch: ", after: again)
            try await page.tab.wait(until: "Motions.devices.has('phone')")
            #expect(page.tab.problems == [])
            try await page.close()
            #expect(try await device.end() == .exited(0))
            await second.stop()
        }

        /// Starts a program whose embedded broker has the port that browsers connect to by default. Other tests' programs
        /// may have it for a while.
        private func startAtUsualPort(_ program: DeviceProgram, _ arguments: [String]) async throws -> ChildProcess {
            let usual = 61614
            for _ in 0..<3_000 {
                if (try? await RawConnection.open(port: usual)) == nil {
                    let device = try await program.start(arguments)
                    if try await device.embeddedPort("ws") == usual { return device }
                    _ = await device.kill()
                }
                try await Task.sleep(for: .milliseconds(100))
            }
            throw TimeoutError("port \(usual) was not free for five minutes")
        }

        @Test(arguments: DeviceProgram.allCases)
        func `heals when the program is killed and started again`(program: DeviceProgram) async throws {
            let isMotions = program == .motions
            let arguments = ["--device-id", "phoenix", "--speed", isMotions ? "5" : "20", "--loop"]
            let first = try await startAtUsualPort(program, arguments)
            let tab = try await page(of: first)
            /// How many messages of the device have come.
            let heard =
                isMotions
                ? "(Motions.devices.get('phoenix')?.sparkline.count ?? 0)"
                : "(Locations.devices.get('phoenix')?.fixes ?? 0)"
            let state = "document.documentElement.dataset.state"
            try await tab.wait(until: "\(state) === 'on' && \(heard) > 0")
            await first.kill()
            try await tab.wait(until: "\(state) === 'waiting'")
            let before = try await tab.number(heard)
            let second = try await startAtUsualPort(program, arguments)
            try await tab.wait(until: "\(state) === 'on' && \(heard) > \(before)")
            // The other way heals too, and nobody has touched the page.
            if isMotions {
                try await tab.click(".card button")
                try await second.waitForLine(containing: "alert: red")
            } else {
                #expect(try await tab.evaluate("document.querySelector('.marker').title") == "phoenix is here")
                try await tab.click("#devices li button")
                try await tab.fill("#text", "welcome back")
                try await tab.click("#send")
                try await second.waitForLine(containing: "text: welcome back")
            }
            try await leave(tab)
            #expect(try await second.end() == .exited(0))
        }

        @Test(arguments: [false, true])
        func `a page from a file gets in only if that is allowed`(isAllowed: Bool) async throws {
            var options = LoopbackBrokerOptions()
            if isAllowed { options.allowedOrigins = ["null"] }
            let broker = try await LoopbackBroker.start(options)
            let folder = URL(fileURLWithPath: #filePath).appending(path: "../../../Examples/Pages/Files").standardized
                .path
            for page in ["locations", "motions"] {
                let tab = try await SharedBrokers.browser().open(
                    "file://\(folder)/\(page).html?url=\(broker.urls.ws ?? "")")
                let state = isAllowed ? "on" : "waiting"
                try await tab.wait(until: "document.documentElement.dataset.state === '\(state)'")
                try await tab.navigate(to: "data:text/html,gone")
            }
            #expect(broker.statistics.connections >= 2)
            await broker.stop()
        }
    }
}
