import Foundation
import Inspector
import MQTT
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// The inspector's page in a browser, with clients of the embedded broker.
    @Suite(.serialized)
    struct InspectorPageTests {
        /// An MQTT and a STOMP client whose frames the page shows.
        private struct Bench {
            let log: FrameLog
            let mqtt: MQTTClient
            let stomp: STOMPClient
            let tab: BrowserTab
        }

        /// With the embedded broker, or with Mosquitto and RabbitMQ.
        private func withBench(_ broker: PageBroker = .embedded, _ body: (Bench) async throws -> Void) async throws {
            try await broker.run(for: .motions) { meter in
                try await (broker == .embedded ? broker : .rabbitMQ).run(for: .locations) { shop in
                    try await withBench(meter.mqttClient(clientID: "meter"), shop.stompClient(), body)
                }
            }
        }

        private func withBench(
            _ mqtt: MQTTClient, _ stomp: STOMPClient, _ body: (Bench) async throws -> Void
        ) async throws {
            let log = FrameLog()
            mqtt.inspect(into: log)
            stomp.inspect(into: log, as: "shop")
            let page = try await InspectorPage.start(log) { topic, payload in
                guard topic != "refused" else { throw Refusal() }
                try await mqtt.publish(payload, to: topic, qos: .atLeastOnce)
            }
            try await mqtt.connect()
            try await stomp.connect()
            let tab = try await SharedBrokers.browser().open(page.address)
            try await tab.wait(until: "document.getElementById('state').textContent === 'Live'")
            try await body(Bench(log: log, mqtt: mqtt, stomp: stomp, tab: tab))
            // The page that was refused to publish heard it with a status.
            #expect(tab.problems.filter { !$0.contains("status of 500") } == [])
            try await tab.navigate(to: "data:text/html,gone")
            await mqtt.disconnect()
            await stomp.disconnect()
            await page.stop()
        }

        private struct Refusal: Error, CustomStringConvertible {
            var description: String { "This topic is not for you." }
        }

        /// The rows of the tree: their indentation, names and values.
        private static let tree = """
            [...document.querySelectorAll('.topic:not([hidden])')].sort((a, b) => a.getBoundingClientRect().y - b.getBoundingClientRect().y)
                .map((row) => '>'.repeat(row.ariaLevel - 1) + row.querySelector('.name').textContent
                    + ' ' + row.querySelector('.value').textContent).join(', ')
            """

        @Test(arguments: PageBroker.most(for: .motions, usual: .embedded))
        func `shows the topics as a tree with their last values, and the frames of one`(broker: PageBroker) async throws
        {
            try await withBench(broker) { bench in
                let tab = bench.tab
                for (payload, topic) in [
                    ("20", "home/kitchen"), ("21.5", "home/kitchen"), ("18", "home/cellar"), ("x", "logs"),
                ] {
                    try await bench.mqtt.publish(payload, to: topic, qos: .atLeastOnce)
                }
                try await bench.stomp.sendAndConfirm("pizza", to: "/queue/shop.orders")
                let expected = """
                    /queue , >/shop , >>.orders "pizza", home , >/cellar "18", >/kitchen "21.5", logs "x"
                    """
                try await tab.wait(until: "\(Self.tree) === \(BrowserTab.quoted(expected))")
                #expect(try await tab.text(of: "#topic-count") == "7")
                #expect(try await tab.text(of: "#chart-about").hasPrefix("5 messages · "))
                // One level: its frames, and what it has counted.
                try await tab.evaluate(
                    "[...document.querySelectorAll('.topic')].find((row) => row.title.startsWith('home\\n')).click()")
                try await tab.wait(until: "document.getElementById('chart-title').textContent === 'home'")
                #expect(
                    try await tab.evaluate("Inspector.shown.map(({ destination }) => destination).join()")
                        == "home/kitchen,home/kitchen,home/cellar")
                #expect(try await tab.text(of: "#chart-about").hasPrefix("3 messages · "))
                #expect(try await tab.text(of: "#topic-facts").contains("longest"))
                // Blue bars for what was sent.
                let blue = """
                    ((canvas) => { const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
                    copy.drawImage(canvas, 0, 0); const d = copy.getImageData(0, 0, canvas.width, canvas.height).data;
                    let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] < 60 && d[i + 2] > 150 && d[i + 3] > 200) n += 1;
                    return n; })(document.getElementById('chart'))
                    """
                // The chart is drawn with the next frame.
                try await tab.wait(until: "(\(blue)) > 10")
                // With the keyboard: to the first child, back, and closed.
                let focused = "document.activeElement.querySelector?.('.name')?.textContent"
                func press(_ key: String) async throws {
                    try await tab.evaluate(
                        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '\(key)', bubbles: true }))"
                    )
                }
                try await tab.evaluate("document.querySelector('.topic[aria-selected=true]').focus()")
                for (key, name) in [("ArrowDown", "/cellar"), ("ArrowLeft", "home"), ("End", "logs")] {
                    try await press(key)
                    #expect(try await tab.evaluate(focused) == name, "\(key)")
                }
                try await press("Escape")
                #expect(try await tab.evaluate("Inspector.shown === Inspector.frames") == "true")
                #expect(try await tab.text(of: "#chart-title") == "All topics")
            }
        }

        @Test(arguments: PageBroker.most(for: .motions, usual: .embedded))
        func `shows how long acknowledgements and receipts took`(broker: PageBroker) async throws {
            try await withBench(broker) { bench in
                let tab = bench.tab
                try await bench.mqtt.publish("1", to: "a", qos: .atMostOnce)
                try await bench.mqtt.publish("2", to: "b", qos: .exactlyOnce)
                try await bench.stomp.sendAndConfirm("3", to: "/queue/c")
                try await tab.wait(
                    until:
                        "Inspector.frames.some(({ destination, answer }) => destination === '/queue/c' && answer >= 0)")
                let answers =
                    "Inspector.frames.filter(({ message }) => message).map(({ destination, answer }) => destination + (answer >= 0)).join()"
                #expect(try await tab.evaluate(answers) == "afalse,btrue,/queue/ctrue")
                // CONNECT, too; and what is answered says so in the table and in the details.
                #expect(
                    try await tab.evaluate(
                        "Inspector.frames.filter(({ type }) => type === 'CONNECT').every(({ answer }) => answer >= 0)")
                        == "true")
                try await tab.fill("#search", "queue/c")
                try await tab.wait(
                    until: "document.querySelector('#rows tr:not([hidden]) .answer').textContent.endsWith(' ms')")
                try await tab.click("#rows tr:not([hidden])")
                try await tab.wait(until: "document.getElementById('about').textContent.includes(' · answered after ')")
                #expect(try await tab.text(of: "#details-title") == "SEND")
            }
        }

        @Test(arguments: PageBroker.most(for: .motions, usual: .embedded))
        func `marks a reconnect in the table and in the chart`(broker: PageBroker) async throws {
            try await withBench(broker) { bench in
                let tab = bench.tab
                #expect(try await tab.evaluate("Inspector.reconnects.length") == "0")
                await bench.mqtt.disconnect()
                try await bench.mqtt.connect()
                try await bench.mqtt.publish("1", to: "a", qos: .atLeastOnce)
                try await tab.wait(until: "Inspector.reconnects.length === 1")
                try await tab.wait(until: "document.querySelectorAll('#rows tr.reconnect:not([hidden])').length === 1")
                #expect(try await tab.text(of: "#rows tr.reconnect:not([hidden]) .type") == "CONNECT")
                #expect(try await tab.text(of: "#rows tr.reconnect:not([hidden]) .destination") == "reconnected")
                let brown = """
                    ((canvas) => { const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
                    copy.drawImage(canvas, 0, 0); const d = copy.getImageData(0, 0, canvas.width, canvas.height).data;
                    let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] > 130 && d[i + 2] < 60 && d[i + 3] > 150) n += 1;
                    return n; })(document.getElementById('chart'))
                    """
                try await tab.wait(until: "\(brown) > 10")
            }
        }

        @Test(arguments: PageBroker.most(for: .motions, usual: .embedded))
        func `publishes what is typed, and shows why it was not`(broker: PageBroker) async throws {
            try await withBench(broker) { bench in
                let tab = bench.tab
                let messages = try await bench.mqtt.subscribe(to: "home/#", qos: .atLeastOnce)
                try await tab.fill("#topic", "home/küche")
                try await tab.fill("#message", "21.5 °C\nand rising")
                try await tab.click("#publish button")
                for try await message in messages {
                    #expect(message.topic == "home/küche")
                    #expect(message.text == "21.5 °C\nand rising")
                    break
                }
                try await tab.wait(until: "document.getElementById('published').textContent.startsWith('✓ after ')")
                // A chosen topic is the one to publish to.
                try await tab.wait(until: "document.querySelector('.topic[aria-level=\"2\"]')")
                try await tab.click(".topic[aria-level=\"2\"]")
                #expect(try await tab.evaluate("document.getElementById('topic').value") == "home/küche")
                try await tab.fill("#topic", "refused")
                try await tab.click("#publish button")
                try await tab.wait(
                    until: "document.getElementById('published').textContent === 'This topic is not for you.'")
            }
        }

        @Test func `remembers no more requests without an answer than frames`() async throws {
            try await withBench { bench in
                // As many as one update may hold, again and again.
                let size = """
                    (() => {
                        for (let cursor = 1000500; cursor <= 1006000; cursor += 500) {
                            const frames = Array.from({ length: 500 }, (_, index) => ({
                                number: cursor - 499 + index, time: Date.now(), sent: true, type: 'SUBSCRIBE', size: 9,
                                client: 'c', note: '', asks: true,
                            }));
                            Inspector.take({ frames, cursor, clears: 0, missed: 0, dropped: 0, paused: false });
                        }
                        return Inspector.unanswered;
                    })()
                    """
                let number = try await bench.tab.number(size)
                #expect(number == 5000)
            }
        }

        @Test func `shows what is hostile as text, on a phone and in the dark as well`() async throws {
            try await withBench { bench in
                let tab = bench.tab
                let name = "<img src=x onerror=alert(1)>"
                try await bench.mqtt.publish(name, to: "a/\(name)", qos: .atLeastOnce)
                try await bench.stomp.sendAndConfirm(name, to: "/queue/\(name)")
                try await tab.wait(
                    until: "Inspector.frames.some(({ destination }) => destination?.startsWith('/queue/<'))")
                try await tab.wait(until: "document.querySelectorAll('.topic:not([hidden])').length >= 4")
                try await tab.click("#rows tr.sent:not([hidden])")
                try await tab.wait(until: "document.getElementById('fields').children.length > 0")
                #expect(try await tab.evaluate("document.querySelectorAll('img').length") == "0")
                let faintTexts = try await Contrast.faintTexts(in: tab)
                #expect(faintTexts == [])
                for (width, isDark) in [(390, false), (390, true), (1280, true)] {
                    try await tab.setDark(isDark)
                    try await tab.resize(width: width, height: 844, isPhone: width < 1000)
                    for view in ["topics", "frames"] {
                        try await tab.evaluate("document.querySelector('.views [data-view=\(view)]').click()")
                        #expect(try await tab.evaluate("document.documentElement.scrollWidth <= innerWidth") == "true")
                    }
                }
                try await tab.setDark(false)
                try await tab.resize(width: 1280, height: 800)
            }
        }
    }
}
