import MQTT
import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// The phones on the Motions page and its strip of events.
    @Suite(.serialized)
    struct MotionsViewTests {
        private func payload(_ degrees: Double...) -> [UInt8] {
            degrees.flatMap { value in
                (0..<8).map { UInt8(truncatingIfNeeded: (value * .pi / 180).bitPattern >> (56 - 8 * $0)) }
            }
        }

        private func withPage(
            _ broker: PageBroker, _ body: (BrowserTab, MQTTClient) async throws -> Void
        ) async throws {
            try await broker.withPage(.motions) { page, addresses in
                let client = addresses.mqttClient()
                try await client.connect()
                try await body(page.tab, client)
                await client.disconnect()
            }
        }

        @Test(arguments: PageBroker.all(for: .motions))
        func `the phone on the page lies as the device does`(broker: PageBroker) async throws {
            try await withPage(broker) { tab, client in
                func turn(_ pitch: Double, _ roll: Double, _ yaw: Double) async throws {
                    try await client.publish(
                        payload(pitch, roll, yaw), to: "/mwm/phone/motion", qos: .atLeastOnce, retain: true)
                }
                let posture = "document.querySelector('.phone')?.style.transform"
                try await turn(12, -3, 45)
                try await tab.wait(until: "\(posture) === 'rotateZ(-45deg) rotateX(-12deg) rotateY(-3deg)'")
                // Over the back: the short way, and not once around.
                try await turn(0, 0, 170)
                try await tab.wait(until: "\(posture).startsWith('rotateZ(-170deg)')")
                try await turn(0, 0, -170)
                try await tab.wait(until: "\(posture).startsWith('rotateZ(-190deg)')")
                try await turn(0, 179, -170)
                try await tab.wait(until: "\(posture).endsWith('rotateY(179deg)')")
                // The screen is seen from above, but not when the phone lies on it.
                #expect(
                    try await tab.evaluate(
                        "getComputedStyle(document.querySelector('.phone .front')).backfaceVisibility")
                        == "hidden")
            }
        }

        @Test func `a first motion that is no attitude does not spoil the picture`() async throws {
            try await withPage(.embedded) { tab, client in
                for pitch in [1e300, 1001 * 180 / .pi, .nan, 0.5 * 180 / .pi] {
                    try await client.publish(payload(pitch, 0, 0), to: "/mwm/phone/motion", qos: .atLeastOnce)
                }
                try await tab.wait(until: "Motions.ignored >= 1 && document.querySelector('.phone')?.style.transform")
                try await tab.wait(
                    until: "document.querySelector('.phone').style.transform.includes('rotateX(-28.6deg)')")
                #expect(try await tab.evaluate("Motions.ignored") == "3")
            }
        }

        /// RabbitMQ sends no retained message to a filter with a wildcard.
        @Test(arguments: PageBroker.all(for: .motions).filter { $0 != .rabbitMQ })
        func `a message that is too large is ignored, and the page stays connected`(broker: PageBroker) async throws {
            try await broker.run(for: .motions) { addresses in
                let client = addresses.mqttClient()
                try await client.connect()
                try await client.publish(
                    [UInt8](repeating: 7, count: 1_500_000), to: "/mwm/x/motion", qos: .atLeastOnce, retain: true)
                let page = try await Headquarters.open(.motions, addresses.page)
                try await page.waitForSubscription()
                try await page.tab.wait(until: "Motions.ignored === 1")
                try await client.publish(payload(1, 2, 3), to: "/mwm/phone/motion", qos: .atLeastOnce)
                try await page.tab.wait(until: "document.querySelector('.card h3')?.textContent === 'phone'")
                #expect(try await page.tab.evaluate("Motions.ignored") == "1")
                #expect(try await page.tab.evaluate("document.documentElement.dataset.state") == "on")
                try await page.close()
                try await client.publish([UInt8](), to: "/mwm/x/motion", qos: .atLeastOnce, retain: true)
                await client.disconnect()
            }
        }

        @Test func `a device that the page has no room for is reported, once`() async throws {
            try await withPage(.embedded) { tab, client in
                try await tab.evaluate("Object.defineProperty(Motions.devices, 'size', { value: 2000 })")
                try await tab.collectNotices()
                for number in 0..<3 {
                    try await client.publish(payload(1, 2, 3), to: "/mwm/late-\(number)/motion", qos: .atLeastOnce)
                }
                try await client.publish("no motion", to: "/mwm/x/motion", qos: .atLeastOnce)
                try await tab.wait(until: "Motions.ignored === 1")
                #expect(try await tab.evaluate("notices.filter((text) => text.includes('first 2000')).length") == "1")
                #expect(try await tab.evaluate("Motions.devices.has('late-0')") == "false")
            }
        }

        @Test func `one unit everywhere, and charts that begin with what there is`() async throws {
            try await withPage(.embedded) { tab, client in
                #expect(try await tab.text(of: ".legend .faint") == "last 50 values, ±180°")
                // The columns of the chart that are more than the zero lines and the background.
                let columns = """
                    ((canvas) => {
                        // The card is laid out a frame after its first message.
                        const { width = 0, height = 0 } = canvas ?? {};
                        if (width * height === 0) return 0;
                        const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
                        copy.drawImage(canvas, 0, 0);
                        const d = copy.getImageData(0, 0, width, height).data;
                        let n = 0;
                        for (let x = 0; x < width; x += 1) {
                            for (let y = 0; y < height / 3; y += 1) {
                                const i = 4 * (y * width + x);
                                if (d[i] > 150 && d[i + 2] < 90 && d[i + 3] > 200) { n += 1; break; }
                            }
                        }
                        return n / width;
                    })(document.querySelector('.card canvas'))
                    """
                for count in 1...3 {
                    try await client.publish(payload(60, 0, 0), to: "/mwm/phone/motion", qos: .atLeastOnce)
                    try await tab.wait(until: "Motions.devices.get('phone')?.sparkline.count === \(count)")
                    try await tab.wait(until: "\(columns) > 0.9")
                }
                // Half a turn is at the edge of its lane, and not beyond.
                try await client.publish(payload(180, 0, 0), to: "/mwm/phone/motion", qos: .atLeastOnce)
                try await tab.wait(until: "document.querySelector('.card dd').textContent === '180°'")
            }
        }

        @Test func `cards are in the order of their names, as people count, whatever order devices come in`()
            async throws
        {
            try await withPage(.embedded) { tab, client in
                for id in ["phone-10", "phone-2", "phone-1", "tablet", "phone-9"] {
                    try await client.publish(payload(0, 0, 0), to: "/mwm/\(id)/motion", qos: .atLeastOnce)
                    try await tab.wait(until: "document.querySelector('.card[data-device=\(id)]')")
                }
                let names = "[...document.querySelectorAll('.card h3')].map((name) => name.textContent).join()"
                #expect(try await tab.evaluate(names) == "phone-1,phone-2,phone-9,phone-10,tablet")
            }
        }

        @Test(arguments: PageBroker.all(for: .motions))
        func `lists last wills, and says of an alert once when it was acknowledged`(broker: PageBroker) async throws {
            try await withPage(broker) { tab, client in
                for id in ["phone-1", "phone-2"] {
                    try await client.publish(payload(0, 0, 0), to: "/mwm/\(id)/motion", qos: .atLeastOnce, retain: true)
                }
                try await tab.wait(until: "document.querySelectorAll('.card').length === 2")
                try await tab.resize(width: 400, height: 844, isPhone: true)
                let bottom = "((card) => card.offsetTop + card.offsetHeight)(document.querySelector('.card'))"
                let before = try await tab.number(bottom)
                let newest = """
                    [...document.querySelectorAll('#events li span')].map((line) => line.textContent)
                        .filter((text) => !text.startsWith('Web client web-'))[0]
                    """
                try await tab.fill(".card select", "green")
                try await tab.click(".card button")
                try await tab.wait(until: "document.querySelector('.card output').textContent.includes('acknowledged')")
                #expect(try await tab.evaluate("\(newest) ?? ''") == "")
                #expect(
                    try await tab.text(of: ".card output").contains(/^green acknowledged at \d\d:\d\d:\d\d, \d+ ms$/))
                // The phone's screen shows the colour as the device's does.
                #expect(
                    try await tab.evaluate("document.querySelector('.phone').style.getPropertyValue('--screen')")
                        == "green")
                // However long it took, its line is no higher than the button beside it.
                try await tab.resize(width: 1280, height: 800)
                try await tab.evaluate(
                    "document.querySelector('.card output').textContent = 'green acknowledged at 23:59:59, 9999 ms'")
                #expect(
                    try await tab.evaluate(
                        "new Set([...document.querySelectorAll('.card form')].map((form) => form.offsetHeight)).size")
                        == "1")
                try await tab.resize(width: 400, height: 844, isPhone: true)
                try await client.publish(#"{"deviceID":"phone-2"}"#, to: "/mwm/lastWill", qos: .exactlyOnce)
                try await tab.wait(until: "document.querySelectorAll('.card').length === 1")
                #expect(try await tab.evaluate(newest) == "phone-2 is gone: its last will arrived")
                // Neither the alert nor the event has moved the cards.
                let after = try await tab.number(bottom)
                #expect(after == before)
                try await client.publish(
                    "Web client 7 has unexpectedly died", to: "/mwm/lastWill/web", qos: .exactlyOnce)
                try await tab.wait(until: "\(newest)?.startsWith('Web client 7')")
                // What strangers send is shown as text, and never more than fifty lines.
                for number in 0..<60 {
                    try await client.publish("<img src=x> \(number)", to: "/mwm/lastWill/web", qos: .atLeastOnce)
                }
                try await tab.wait(until: "\(newest) === '<img src=x> 59'")
                #expect(try await tab.evaluate("document.querySelectorAll('#events li').length") == "50")
                #expect(try await tab.evaluate("document.querySelectorAll('#events img').length") == "0")
            }
        }
    }
}
