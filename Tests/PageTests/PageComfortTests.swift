import Inspector
import LoopbackBroker
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// What makes the pages pleasant: colours that stay, a map that can be read without streets, and notices that are in
    /// nobody's way.
    @Suite(.serialized, .turns)
    struct PageComfortTests {
        /// Sends one fix of each device, in this order, and waits until the page has them.
        private func send(_ ids: [String], with client: STOMPClient, to page: Headquarters) async throws {
            for (index, id) in ids.enumerated() {
                try await client.sendAndConfirm(
                    #"{"deviceID":"\#(id)","lat":\#(37 + index),"lng":-122}"#, to: "/topic/device.\(id).location")
            }
            try await page.tab.wait(until: "document.querySelectorAll('#devices li').length === \(ids.count)")
        }

        private func colours(_ page: Headquarters) async throws -> String {
            try await page.tab.evaluate(
                """
                [...document.querySelectorAll('#devices li')].map((row) => row.querySelector('.id').textContent + ' '
                    + row.querySelector('button').style.getPropertyValue('--device')).sort().join(', ')
                """)
        }

        @Test func `the colour of a device is that of its name, in whatever order devices come`() async throws {
            let broker = try await LoopbackBroker.start()
            let client = STOMPClient(broker.urls.stomp ?? "")
            try await client.connect()
            let page = try await Headquarters.open(.locations, broker.urls.ws ?? "")
            try await page.waitForSubscription()
            let ids = ["van-1", "van-2", "van-3", "2262EC25-E9FD-4578-BADE-4E113DE45934", "Zoë"]
            try await send(ids, with: client, to: page)
            let first = try await colours(page)
            try await page.tab.evaluate("location.reload()")
            try await page.tab.wait(until: "document.querySelectorAll('#devices li').length === 0")
            try await page.waitForSubscription()
            try await send(ids.reversed(), with: client, to: page)
            #expect(try await colours(page) == first)
            // Neighbours of a fleet are far apart on the circle of hues.
            let nearest = try await page.tab.number(
                """
                ((hues) => Math.min(...hues.flatMap((a, i) => hues.slice(i + 1).map((b) => {
                    const way = Math.abs(a - b) % 360;
                    return Math.min(way, 360 - way);
                }))))(Array.from({ length: 8 }, (_, i) => Number(Fleet.colour(`van-${i + 1}`).split(' ')[2].slice(0, -1))))
                """)
            #expect(nearest > 20)
            #expect(page.tab.problems == [])
            try await page.close()
            await client.disconnect()
            await broker.stop()
        }

        @Test func `the map shows north, a scale and what the place is called`() async throws {
            let server = try await PageServer.start(
                PageSite(
                    first: .locations, brokers: [.locations: "ws://127.0.0.1:9"], place: "Val d’Aoste & <b>more</b>"))
            let tab = try await SharedBrokers.browser().open(server.address)
            try await tab.wait(until: "document.querySelector('#map .scale').textContent.endsWith('m')")
            #expect(try await tab.text(of: "#map .where") == "Val d’Aoste & <b>more</b>")
            #expect(try await tab.text(of: "#map .north") == "N")
            let corner = "document.querySelector('#map .corner').getBoundingClientRect()"
            let map = "document.getElementById('map').getBoundingClientRect()"
            #expect(
                try await tab.evaluate("\(corner).bottom <= \(map).bottom && \(corner).right <= \(map).right") == "true"
            )
            #expect(try await tab.number("document.querySelector('#map .scale').offsetWidth") > 30)
            // The first devices are where they belong with the next frame: the map does not fly to them.
            try await tab.evaluate(
                """
                (async () => {
                    Locations.map.move('a', 45.70, 7.30, { colour: 'red', heading: null, jumps: false });
                    Locations.map.move('b', 45.72, 7.32, { colour: 'red', heading: null, jumps: false });
                    for (let i = 0; i < 2; i += 1) await new Promise((done) => requestAnimationFrame(done));
                    const [a, b] = ['a', 'b'].map((id) => Locations.map.position(id));
                    window.distance = Math.hypot(a.x - b.x, a.y - b.y);
                })()
                """)
            #expect(try await tab.number("window.distance") > 200)
            try await tab.navigate(to: "data:text/html,gone")
            await server.stop()
        }

        @Test(arguments: [Device.locations, .motions], [390, 400, 1200])
        func `a notice lies on no control and no text, and moves nothing`(app: Device, width: Int) async throws {
            try await PageBroker.embedded.withPage(app) { page, _ in
                let tab = page.tab
                try await tab.resize(width: width, height: 800, isPhone: width < 1000)
                let panel = app == .locations ? "Locations" : "Motions"
                try await tab.evaluate("\(panel).notice('')")
                let heights =
                    "[document.querySelector('header'), document.querySelector('main')]"
                    + ".map((part) => `${part.offsetTop} ${part.offsetHeight}`).join()"
                let before = try await tab.evaluate(heights)
                for words in ["Subscribed to /topic/device.*.location", String(repeating: "word ", count: 60)] {
                    try await tab.evaluate("\(panel).notice(\(BrowserTab.quoted(words)))")
                    let covered = try await tab.evaluate(
                        """
                        ((box) => [...document.querySelectorAll('a, button, input, select, canvas, #state')].filter((control) => {
                            if (!control.checkVisibility({ visibilityProperty: true })) return false;
                            const other = control.getBoundingClientRect();
                            return other.width > 0 && other.left < box.right && other.right > box.left
                                && other.top < box.bottom && other.bottom > box.top;
                        }).map((control) => control.outerHTML.slice(0, 60)).join())(
                            document.querySelector('#notices p').getBoundingClientRect())
                        """)
                    #expect(covered == "")
                    #expect(try await tab.evaluate(heights) == before)
                    #expect(try await tab.evaluate("document.documentElement.scrollWidth <= innerWidth") == "true")
                }
            }
        }

        @Test(arguments: [390, 850, 1200])
        func `the tabs are in the same place on every page`(width: Int) async throws {
            let server = try await PageServer.start(
                PageSite(
                    first: .locations, brokers: [.locations: "ws://127.0.0.1:9", .motions: "ws://127.0.0.1:9"],
                    frames: FrameLog()))
            let tab = try await SharedBrokers.browser().open(server.address)
            try await tab.resize(width: width, height: 800, isPhone: width < 700)
            var places: [String] = []
            for page in ["Locations", "Motions", "Inspector"] {
                let link = "[...document.querySelectorAll('nav a')].find((link) => link.textContent === '\(page)')"
                let isComplete =
                    "document.readyState === 'complete' && [...document.querySelectorAll('nav a')].filter((link) => link.checkVisibility()).length === 3"
                try await tab.wait(until: isComplete)
                if page != "Locations" { try await tab.evaluate("\(link).click()") }
                try await tab.wait(until: "document.title.startsWith('\(page)') && \(isComplete)")
                places.append(
                    try await tab.evaluate(
                        """
                        [...document.querySelectorAll('nav a')].map((link) => {
                            const box = link.getBoundingClientRect();
                            return [box.left, box.top, box.width, box.height].map((side) => side.toFixed(1)).join(' ');
                        }).join()
                        """))
            }
            #expect(Set(places).count == 1, "\(places)")
            try await tab.navigate(to: "data:text/html,gone")
            await server.stop()
        }

        @Test(arguments: DeviceProgram.allCases)
        func `the address that a program prints leads to pages with a tab for the inspector`(
            program: DeviceProgram
        ) async throws {
            let device = try await program.start(["--loop", "--interval", "0.2"])
            let line = try await device.waitForLine(containing: "headquarters page: ").text
            let tab = try await SharedBrokers.browser().open(String(line.dropFirst("headquarters page: ".count)))
            for page in ["Locations", "Motions"] {
                try await tab.wait(until: "document.title.startsWith('\(page)') || document.readyState === 'complete'")
                try await tab.click("nav a[href='\(page.lowercased()).html']")
                try await tab.wait(until: "document.title.startsWith('\(page)') && document.readyState === 'complete'")
                #expect(try await tab.evaluate("document.querySelector('nav .served').checkVisibility()") == "true")
            }
            try await tab.click("nav .served")
            try await tab.wait(until: "typeof Inspector !== 'undefined' && Inspector.frames.length > 0")
            #expect(tab.problems == [])
            try await tab.navigate(to: "data:text/html,gone")
            #expect(try await device.end() == .exited(0))
        }
    }
}
