import Foundation
import TestSupport
import Testing

extension BrowserTests {
    /// The two programs as people start them, each with its own broker and pages.
    @Suite(.serialized, .turns)
    struct PicturesTests {
        private struct Served {
            let program: ChildProcess
            let address: String

            static func start(_ name: String, _ arguments: [String]) async throws -> Served {
                let program = try await ChildProcess.start(
                    Command(BuiltProgram.path(name), arguments, input: .null))
                let prefix = "headquarters page: "
                let line = try await program.waitForLine(containing: prefix).text
                return Served(program: program, address: String(line.dropFirst(prefix.count)))
            }
        }

        private func picture(_ name: String, _ tab: BrowserTab, _ scratch: ScratchDirectory) async throws {
            #expect(tab.problems == [])
            let path = "\(Pictures.folder(scratch))/\(name).png"
            try await tab.screenshot(to: path)
            let look = try await Pictures.look(at: path, in: tab)
            #expect(look.width == 1280 && look.height == 800)
            #expect(look.colours > 100, "\(name): a picture of nothing")
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            // What is kept beside the pages is loaded with every clone.
            let most = Pictures.isWriting ? 200_000 : 300_000
            #expect((10_000..<most).contains(size), "\(name): \(size) bytes")
            try await Pictures.take(name, of: tab)
        }

        @Test func `devices on their page, and their frames in the inspector`() async throws {
            let scratch = try ScratchDirectory("pictures")
            let browser = try await SharedBrokers.browser()
            let drive = try await Served.start(
                "locations-device", ["--fleet", "5", "--name", "van", "--speed", "25", "--recorded-time", "--loop"])
            let locations = try await browser.open(drive.address)
            try await locations.wait(
                until: "[...Locations.devices.values()].filter(({ fixes }) => fixes > 60).length === 5")
            // A replay that is faster than the drive was does not make the vans faster.
            let speeds = try await locations.evaluate(
                "Math.max(...[...Locations.devices.values()].map(({ speed }) => speed * 3.6))")
            #expect((Double(speeds) ?? .infinity) < 200, "kilometres per hour")
            try await locations.click("#devices li:nth-child(2) button")
            try await locations.wait(until: "document.getElementById('text').disabled === false")
            try await locations.fill("#text", "Take the next exit")
            try await locations.click("#send")
            try await locations.wait(until: "document.querySelector('#sent li')?.dataset.receipt === 'received'")
            try await locations.wait(until: "document.getElementById('notices').textContent === ''")
            // The vans drive on: the moment of the picture is one in which no marker covers another.
            try await locations.wait(
                until: """
                    ((boxes) => boxes.every((box, index) => boxes.slice(index + 1).every((other) =>
                        box.right + 20 < other.left || other.right + 20 < box.left || box.bottom + 20 < other.top
                            || other.bottom + 20 < box.top)))(
                        [...document.querySelectorAll('#map .marker, #map .bubble')]
                            .filter((element) => element.getAttribute('aria-pressed') !== 'true')
                            .map((element) => element.getBoundingClientRect()))
                    """)
            try await picture("locations", locations, scratch)
            await drive.program.stop()

            let motion = try await Served.start(
                "motions-device",
                ["--device-id", "phone", "--fleet", "6", "--interval", "0.1", "--speed", "4", "--loop"])
            let motions = try await browser.open(motion.address)
            try await motions.wait(
                until: "[...Motions.devices.values()].filter(({ sparkline }) => sparkline.count === 50).length === 6")
            let inspector = try await browser.open(motion.address + "inspector.html")
            try await motions.fill(".card select", "green")
            try await motions.click(".card button")
            try await motions.wait(until: "document.querySelector('.card output').textContent.includes('acknowledged')")
            try await motions.wait(until: "document.getElementById('notices').textContent === ''")
            try await picture("motions", motions, scratch)

            try await inspector.wait(until: "Inspector.frames.some(({ type, sent }) => type === 'PUBLISH' && !sent)")
            try await inspector.click("#pause")
            try await inspector.wait(until: "document.getElementById('state').textContent === 'Paused'")
            let count = try await inspector.number("Inspector.frames.length")
            #expect(count > 50)
            try await inspector.evaluate(
                "document.querySelector('#scroller').dispatchEvent(new WheelEvent('wheel', { deltaY: -1 }))")
            try await inspector.click("#rows tr.sent:not([hidden])")
            try await inspector.wait(until: "document.getElementById('fields').children.length > 0")
            // The row is marked when the table is next drawn.
            try await inspector.wait(until: "document.querySelector('#rows tr[aria-selected=true] .type') !== null")
            #expect(
                try await inspector.text(of: "#details-title")
                    == inspector.text(of: "#rows tr[aria-selected=true] .type"))

            // The chosen frame stays chosen and in sight when the others come back.
            try await inspector.fill("#search", "ALERT")
            try await inspector.wait(until: "document.querySelector('#rows tr.received:not([hidden])')")
            try await inspector.click("#rows tr.received:not([hidden])")
            try await inspector.wait(until: "document.querySelector('#payload pre').textContent.includes('green')")
            try await inspector.fill("#search", "")
            try await inspector.wait(until: "document.querySelectorAll('#rows tr:not([hidden])').length > 20")
            try await inspector.wait(
                until: """
                    ((row, box) => row && row.top >= box.top + 34 && row.bottom <= box.bottom)(
                        document.querySelector('#rows tr[aria-selected=true]:not([hidden])')?.getBoundingClientRect(),
                        document.getElementById('scroller').getBoundingClientRect())
                    """)
            try await picture("inspector", inspector, scratch)

            // Searching, and clearing for all who look.
            try await inspector.fill("#search", "ALERT")
            try await inspector.wait(
                until: "Inspector.shown.length < Inspector.frames.length && Inspector.shown.length > 0")
            #expect(
                try await inspector.evaluate(
                    "Inspector.shown.every(({ destination }) => destination.endsWith('/alert'))") == "true")
            try await inspector.fill("#search", "")
            try await inspector.click("#clear")
            try await inspector.wait(until: "Inspector.frames.length === 0")
            try await inspector.click("#pause")
            try await inspector.wait(until: "Inspector.frames.length > 0")
            #expect(inspector.problems == [])
            await motion.program.stop()
            for tab in [locations, motions, inspector] { try await tab.navigate(to: "data:text/html,gone") }
        }
    }
}
