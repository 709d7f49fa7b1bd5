import Foundation
import LoopbackBroker
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// What the Locations page tells about each device: speed, heading, track, and whether it is still there.
    @Suite(.serialized)
    struct DeviceListTests {
        /// The page and a client of the same broker.
        private struct Station {
            let page: Headquarters
            let client: STOMPClient

            var tab: BrowserTab { page.tab }

            /// Sends the place of a device at a second of its recording.
            func locate(_ id: String, _ latitude: Double, _ longitude: Double, second: Int = 0) async throws {
                let time = "2014-03-13T17:\(second / 600)\(second / 60 % 10):\(second / 10 % 6)\(second % 10)+01:00"
                let body = #"{"deviceID":"\#(id)","lat":\#(latitude),"lng":\#(longitude),"ts":"\#(time)"}"#
                try await client.sendAndConfirm(
                    Array(body.utf8), to: "/topic/device.\(id).location",
                    options: STOMPSendOptions(contentType: "application/json;charset=utf-8"))
            }

            func press(_ key: String, on selector: String? = nil) async throws {
                let target =
                    selector.map { "document.querySelector(\(BrowserTab.quoted($0)))" } ?? "document.activeElement"
                try await tab.evaluate(
                    "\(target).dispatchEvent(new KeyboardEvent('keydown', { key: '\(key)', bubbles: true, cancelable: true }))"
                )
            }

            /// Waits until the list shows that many fixes of a device.
            func wait(for id: String, fixes: Int) async throws {
                try await tab.wait(
                    until: "Locations.devices.get('\(id)')?.fixes === \(fixes) && Locations.devices.get('\(id)').row")
            }
        }

        private func withStation(
            _ broker: PageBroker = .embedded, _ body: (Station) async throws -> Void
        ) async throws {
            try await broker.withPage(.locations) { page, addresses in
                let client = addresses.stompClient()
                try await client.connect()
                try await body(Station(page: page, client: client))
                await client.disconnect()
            }
        }

        private func withStation(
            _ url: String, _ client: STOMPClient, _ body: (Station) async throws -> Void
        ) async throws {
            try await client.connect()
            let page = try await Headquarters.open(.locations, url)
            try await page.waitForSubscription()
            try await body(Station(page: page, client: client))
            #expect(page.tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test func `a device that the list has no room for is reported, once`() async throws {
            try await withStation { station in
                try await station.tab.evaluate("Object.defineProperty(Locations.devices, 'size', { value: 2000 })")
                try await station.tab.collectNotices()
                for second in 0..<3 { try await station.locate("late-\(second)", 37, -122, second: second) }
                try await station.client.sendAndConfirm("no location", to: "/topic/device.x.location")
                try await station.tab.wait(until: "Locations.ignored === 1")
                #expect(
                    try await station.tab.evaluate("notices.filter((text) => text.includes('first 2000')).length")
                        == "1")
                #expect(try await station.tab.evaluate("Locations.devices.has('late-0')") == "false")
            }
        }

        private static func hundredMetres(_ count: Int) -> Double { 37 + Double(count) * 100 / 111_195 }

        @Test(arguments: PageBroker.all(for: .locations))
        func `shows speed, heading, length of the track and the age of the last fix`(broker: PageBroker) async throws {
            try await withStation(broker) { station in
                for second in 0...6 {
                    try await station.locate("car", Self.hundredMetres(second), -122, second: second)
                }
                try await station.wait(for: "car", fixes: 7)
                try await station.tab.wait(until: "document.querySelector('.device .speed').textContent === '360 km/h'")
                #expect(
                    try await station.tab.evaluate("document.querySelector('.device .drive i').style.rotate") == "0deg")
                try await station.tab.wait(until: "document.querySelector('.device .length').textContent === '600 m'")
                #expect(
                    try await station.tab.evaluate("document.querySelector('.marker').dataset.heads !== undefined")
                        == "true")
                let later =
                    "Locations.age(Locations.devices.get('car').heard + 75e3), document.querySelector('.device .ago').textContent"
                #expect(try await station.tab.evaluate(later).hasSuffix("75 s ago"))
                // East, slower.
                for second in 7...16 {
                    let longitude = -122 + Double(second - 6) * 10 / 88_800
                    try await station.locate("car", Self.hundredMetres(6), longitude, second: second)
                }
                try await station.tab.wait(until: "document.querySelector('.device .speed').textContent === '36 km/h'")
                #expect(
                    try await station.tab.evaluate("document.querySelector('.device .drive i').style.rotate") == "90deg"
                )
            }
        }

        @Test(arguments: PageBroker.most(for: .locations, usual: .embedded))
        func `greys a device after three intervals without a fix, and marks it as gone after ten`(broker: PageBroker)
            async throws
        {
            try await withStation(broker) { station in
                for second in 0...3 {
                    try await station.locate("car", Self.hundredMetres(second), -122, second: second)
                }
                try await station.wait(for: "car", fixes: 4)
                /// What is shown when the last fix is so many intervals old.
                func presence(after intervals: Double) async throws -> String {
                    try await station.tab.evaluate(
                        """
                        (({ heard, interval }) => {
                            Locations.age(heard + \(intervals) * interval);
                            const marker = document.querySelector('.marker');
                            return [document.querySelector('#devices li').dataset.presence, marker.dataset.presence, marker.title,
                                document.getElementById('presence').textContent].join(' | ');
                        })(Locations.devices.get('car'))
                        """)
                }
                #expect(try await presence(after: 2.9) == "here | here | car is here | ")
                #expect(try await presence(after: 3.1) == "silent | silent | car is here | 1 silent")
                #expect(try await presence(after: 9.9) == "silent | silent | car is here | 1 silent")
                #expect(try await presence(after: 10.1) == "gone | gone | car was last here | 1 gone")
                // Another fix brings it back, a click removes those that are gone. The next interval is so long that the
                // device does not fall silent before the test has seen it.
                try await station.tab.evaluate("Locations.devices.get('car').interval = 1e6")
                try await station.locate("car", Self.hundredMetres(4), -122, second: 4)
                try await station.tab.wait(until: "document.querySelector('#devices li').dataset.presence === 'here'")
                // In one script, since the page's own timer would find it here again.
                try await station.tab.evaluate(
                    """
                    (({ heard, interval }) => {
                        Locations.age(heard + 11 * interval);
                        document.getElementById('forget').click();
                    })(Locations.devices.get('car'))
                    """)
                #expect(
                    try await station.tab.evaluate("document.querySelectorAll('.marker, #devices li').length") == "0")
            }
        }

        @Test func `misses no device while the page itself is away from the broker`() async throws {
            var options = LoopbackBrokerOptions()
            // Ports that the system gives to no connection while the broker is away.
            options.wsPort = .exactly(FreePort.next())
            options.stompPort = .exactly(FreePort.next())
            let first = try await LoopbackBroker.start(options)
            try await withStation(first.urls.ws ?? "", STOMPClient(first.urls.stomp ?? "")) { station in
                try await station.locate("car", 37, -122)
                try await station.wait(for: "car", fixes: 1)
                await first.stop()
                try await station.page.waitForState("waiting")
                let presence = """
                    Locations.age(Locations.devices.get('car').heard + 1e6),
                        document.querySelector('#devices li').dataset.presence
                    """
                #expect(try await station.tab.evaluate(presence) == "here")
                let second = try await LoopbackBroker.start(options)
                try await station.page.waitForState("on")
                #expect(try await station.tab.evaluate(presence) == "gone")
                await second.stop()
            }
        }

        @Test func `lists devices in the order of their whole identifiers`() async throws {
            let ids = [
                "van-10", "van-2", "2262EC25-E9FD-4578-BADE-4E113DE45934", "van-1",
                "a long identifier, written by hand, of a device",
            ]
            try await withStation { station in
                for (index, id) in ids.enumerated() { try await station.locate(id, 37 + Double(index) / 100, -122) }
                try await station.tab.wait(until: "document.querySelectorAll('#devices li').length === \(ids.count)")
                let list = "[...document.querySelectorAll('#devices .id')].map((id) => id.textContent).join('|')"
                let expected = [ids[2], ids[4], "van-1", "van-2", "van-10"].joined(separator: "|")
                #expect(try await station.tab.evaluate(list) == expected)
                // More fixes change nothing about the order, and nothing is cut off, on a phone neither.
                try await station.locate("van-10", 37.2, -122.1)
                try await station.tab.wait(until: "Locations.devices.get('van-10').fixes === 2")
                #expect(try await station.tab.evaluate(list) == expected)
                for width in [1280, 390] {
                    try await station.tab.resize(width: width, height: 844, isPhone: width < 1000)
                    let isWhole =
                        "[...document.querySelectorAll('#devices .id')].every((id) => id.scrollWidth <= id.clientWidth)"
                    #expect(try await station.tab.evaluate(isWhole) == "true")
                }
                try await station.tab.resize(width: 1280, height: 800)
            }
        }

        @Test(arguments: PageBroker.most(for: .locations, usual: .embedded))
        func `does not draw or count the jump from the end of a recording to its start`(broker: PageBroker) async throws
        {
            try await withStation(broker) { station in
                for second in 0...5 {
                    try await station.locate("car", Self.hundredMetres(second), -122, second: second)
                }
                // Fifty kilometres back, a second later, and on from there.
                for second in 6...9 {
                    try await station.locate("car", Self.hundredMetres(second - 506), -122, second: second)
                }
                try await station.wait(for: "car", fixes: 10)
                #expect(try await station.tab.evaluate("Locations.map.pieces('car').length") == "2")
                try await station.tab.wait(until: "document.querySelector('.device .length').textContent === '800 m'")
                // A tunnel is no jump: half a minute without a fix, and on at the same speed.
                try await station.locate("car", Self.hundredMetres(-467), -122, second: 39)
                try await station.wait(for: "car", fixes: 11)
                #expect(try await station.tab.evaluate("Locations.map.pieces('car').length") == "2")
                try await station.tab.wait(until: "document.querySelector('.device .length').textContent === '3.8 km'")
            }
        }

        @Test func `does not draw the way back of a fast replay, whose steps are a good part of its way`() async throws
        {
            try await withStation(.embedded) { station in
                // At 25 times its speed, one fix a second: seven hundred metres a step, five steps, and over again.
                for second in 0...12 {
                    try await station.locate("car", Self.hundredMetres(7 * (second % 5)), -122, second: second)
                }
                try await station.wait(for: "car", fixes: 13)
                #expect(try await station.tab.evaluate("Locations.map.pieces('car').length") == "3")
                try await station.tab.wait(until: "document.querySelector('.device .length').textContent === '7.0 km'")
            }
        }

        @Test func `a track goes through every fix, also those that come while no frame is drawn`() async throws {
            try await withStation(.embedded) { station in
                let tab = station.tab
                let painted = """
                    (() => {
                        const canvas = document.querySelector('canvas.tracks');
                        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
                        copy.drawImage(canvas, 0, 0);
                        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
                        return data.filter((value, index) => index % 4 === 3 && value > 0).length;
                    })()
                    """
                // A tab in the background draws nothing, and nothing is drawn within one turn of a page.
                func drive(_ way: String) async throws {
                    try await tab.evaluate(
                        """
                        \(way).forEach(([north, east]) =>
                            Locations.map.move('car', 37 + north / 1000, -122 + east / 1000, { colour: 'red', heading: null }))
                        """)
                }
                let square = "[[0, 0], [0, 9], [9, 9], [9, 0], [0, 0]]"
                try await drive(square)
                #expect(
                    try await tab.evaluate(
                        "JSON.stringify(Locations.map.pieces('car')[0].map((place) => place.map((degrees) => degrees.toFixed(3))))"
                    )
                        == #"[["37.000","-122.000"],["37.000","-121.991"],["37.009","-121.991"],["37.009","-122.000"]]"#
                )
                // Once the view shows the square, a way inside of it is added to what is drawn.
                try await tab.evaluate("new Promise((done) => setTimeout(done, 1500))")
                let before = try await tab.number(painted)
                try await drive("[[5, 5], [0, 0]]")
                try await tab.evaluate(
                    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                #expect(try await tab.number(painted) > before + 50)
            }
        }

        @Test(arguments: PageBroker.most(for: .locations, usual: .embedded))
        func `follows one device until the map is moved`(broker: PageBroker) async throws {
            try await withStation(broker) { station in
                for second in 0...3 {
                    try await station.locate("car", Self.hundredMetres(second), -122, second: second)
                    try await station.locate("van", 38, -122.5 + Double(second) / 1000, second: second)
                }
                try await station.wait(for: "van", fixes: 4)
                #expect(try await station.tab.evaluate("document.getElementById('follow').disabled") == "true")
                try await station.tab.click("#devices li button")
                try await station.tab.click("#follow")
                #expect(
                    try await station.tab.evaluate("document.getElementById('follow').getAttribute('aria-pressed')")
                        == "true")
                #expect(
                    try await station.tab.evaluate("document.getElementById('fit').getAttribute('aria-pressed')")
                        == "false")
                try await station.locate("car", 37.4, -121.9, second: 600)
                let isCentred = """
                    ((place, { clientWidth, clientHeight }) => Math.abs(place.latitude - 37.4) < 1e-6
                        && Math.hypot(place.x - clientWidth / 2, place.y - clientHeight / 2) < 1)(
                        Locations.map.position('car'), document.getElementById('map'))
                    """
                try await station.tab.wait(until: isCentred)
                // Zooming keeps it in the middle, another device takes its place, moving the map ends it.
                try await station.press("+", on: "#map")
                try await station.tab.wait(until: isCentred)
                try await station.tab.click("#devices li:nth-child(2) button")
                #expect(try await station.tab.evaluate("Locations.map.followed") == "van")
                try await station.press("ArrowLeft", on: "#map")
                #expect(try await station.tab.evaluate("Locations.map.followed") == "null")
                #expect(
                    try await station.tab.evaluate("document.getElementById('follow').getAttribute('aria-pressed')")
                        == "false")
            }
        }

        @Test(arguments: PageBroker.most(for: .locations, usual: .embedded))
        func `is used with the keyboard alone`(broker: PageBroker) async throws {
            try await withStation(broker) { station in
                for id in ["car-1", "car-2", "car-3"] { try await station.locate(id, 37, -122) }
                try await station.tab.wait(until: "document.querySelectorAll('#devices li').length === 3")
                // One stop of the Tab key for the whole list.
                let stops = "document.querySelectorAll('#devices button[tabindex=\"0\"]').length"
                #expect(try await station.tab.evaluate(stops) == "1")
                try await station.tab.evaluate("document.querySelector('#devices button[tabindex=\"0\"]').focus()")
                let focused = "document.activeElement.querySelector('.id')?.textContent"
                for (key, id) in [
                    ("ArrowDown", "car-2"), ("End", "car-3"), ("ArrowDown", "car-3"), ("ArrowUp", "car-2"),
                    ("Home", "car-1"),
                ] {
                    try await station.press(key)
                    #expect(try await station.tab.evaluate(focused) == id, "\(key)")
                }
                #expect(try await station.tab.evaluate(stops) == "1")
                try await station.press("f")
                #expect(try await station.tab.evaluate("Locations.map.followed") == "car-1")
                try await station.press("f")
                #expect(try await station.tab.evaluate("Locations.map.followed") == "null")
                #expect(try await station.tab.evaluate("Locations.selected") == "car-1")
                try await station.press("Escape")
                #expect(try await station.tab.evaluate("Locations.selected") == "null")
            }
        }
    }
}
