import Foundation
import MQTT
import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// The Motions page against Mosquitto's MQTT over WebSocket.
    @Suite(.serialized, .requires(.mosquitto))
    struct MotionsPageTests {
        private func url(_ broker: Mosquitto) -> String { "ws://127.0.0.1:\(broker.webSocketPort ?? 0)" }

        private func client(_ broker: Mosquitto) async throws -> MQTTClient {
            let client = MQTTClient("mqtt://127.0.0.1:\(broker.port)", clientID: "device-%%%%")
            try await client.connect()
            return client
        }

        private func payload(_ pitch: Double, _ roll: Double, _ yaw: Double) -> [UInt8] {
            [pitch, roll, yaw].flatMap { value in
                (0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> (56 - 8 * $0)) }
            }
        }

        @Test func `says that credentials are invalid, and connects with those that are not`() async throws {
            let broker = try await Mosquitto.start {
                $0.webSocket = true
                $0.users = [BrokerUser("headquarters", password: "s3cret")]
            }
            let page = try await Headquarters.open(.motions, url(broker))
            try await page.tab.wait(until: "document.getElementById('problem').textContent !== ''")
            #expect(try await page.tab.text(of: "#problem").hasPrefix("invalid user credentials"))
            try await page.connect(user: "headquarters", password: "wrong")
            try await page.tab.wait(until: "document.getElementById('problem').textContent !== ''")
            try await page.connect(user: "headquarters", password: "s3cret")
            try await page.waitForState("on")
            #expect(try await page.tab.text(of: "#problem") == "")
            #expect(page.tab.problems == [])
            try await page.close()
        }

        @Test func `shows retained motions at once, draws the next, and sends alerts`() async throws {
            let broker = try await Mosquitto.start { $0.webSocket = true }
            let client = try await client(broker)
            let alerts = try await client.subscribe(to: "/mwm/phone-1/alert", qos: .atLeastOnce)
            try await client.publish(payload(0.3, -0.5, 2), to: "/mwm/phone-1/motion", qos: .atLeastOnce, retain: true)
            let page = try await Headquarters.open(.motions, url(broker))
            let tab = page.tab
            try await tab.wait(
                until: "document.querySelector('.card dl')?.textContent.replace(/\\s+/g, ' ').includes('17°')")
            #expect(try await tab.text(of: ".card h3") == "phone-1")
            #expect(try await tab.text(of: ".card .note").hasPrefix("retained"))
            for step in 0..<60 {
                try await client.publish(
                    payload(Double(step) / 20, -1, 9), to: "/mwm/phone-1/motion", qos: .atLeastOnce, retain: true)
            }
            try await tab.wait(until: "Motions.devices.get('phone-1').sparkline.count === 50")
            try await tab.wait(until: "document.querySelector('.card .roll dd').textContent === '-57°'")
            #expect(try await tab.text(of: ".card .note") == "")
            // A red line, which is nearly all that is red there.
            let red = """
                ((canvas) => { const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] > 150 && d[i + 2] < 90 && d[i + 3] > 200) n += 1;
                return n; })(document.querySelector('.card canvas'))
                """
            #expect(try await tab.number(red) > 100)

            try await tab.fill(".card select", "green")
            try await tab.click(".card button")
            for try await alert in alerts {
                #expect(alert.text == "green")
                #expect(alert.qos == .atLeastOnce)
                break
            }
            try await tab.wait(
                until: "document.querySelector('.card output').textContent.startsWith('green acknowledged')")
            try await page.picture("motions-one")
            try await tab.click("#disconnect")
            try await tab.wait(until: "document.querySelectorAll('.card').length === 0")
            #expect(tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test(.requires(program: "mosquitto_sub"))
        func `a device vanishes with its last will`() async throws {
            let broker = try await Mosquitto.start { $0.webSocket = true }
            let page = try await Headquarters.open(.motions, url(broker))
            try await page.waitForSubscription()
            let client = try await client(broker)
            for id in ["phone-1", "phone-2"] { try await client.publish(payload(0, 0, 0), to: "/mwm/\(id)/motion") }
            try await page.tab.wait(until: "document.querySelectorAll('.card').length === 2")
            let device = try await MosquittoClients.subscribe(
                to: "/mwm/phone-1/alert", port: broker.port,
                ["--will-topic", "/mwm/lastWill", "--will-payload", #"{"deviceID":"phone-1"}"#, "--will-qos", "2"])
            await device.kill()
            try await page.tab.wait(until: "document.querySelectorAll('.card').length === 1")
            #expect(try await page.tab.text(of: ".card h3") == "phone-2")
            #expect(page.tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test func `comes back by itself when the broker does`() async throws {
            let broker = try await Mosquitto.start { $0.webSocket = true }
            let page = try await Headquarters.open(.motions, url(broker))
            try await page.waitForState("on")
            await broker.kill()
            try await page.waitForState("waiting")
            try await broker.restart()
            try await page.waitForSubscription()
            let client = try await client(broker)
            try await client.publish(payload(1, 1, 1), to: "/mwm/phone-1/motion", qos: .atLeastOnce, retain: true)
            try await page.tab.wait(until: "document.querySelectorAll('.card').length === 1")
            #expect(page.tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test(.requires(program: "mosquitto_sub"))
        func `leaves a last will when its tab is killed, and none when it disconnects`() async throws {
            let broker = try await Mosquitto.start { $0.webSocket = true }
            let wills = try await MosquittoClients.subscribe(to: "/mwm/lastWill/#", port: broker.port)
            let browser = try await Browser.start()
            let polite = try await Headquarters.open(.motions, url(broker), in: browser)
            try await polite.waitForState("on")
            try await polite.tab.click("#disconnect")
            try await polite.waitForState("off")
            let page = try await Headquarters.open(.motions, url(broker), in: browser)
            try await page.waitForState("on")
            let id = try await page.tab.evaluate("Motions.clientID")
            try await page.tab.crash()
            try await wills.waitForLine(
                containing: "/mwm/lastWill/web Web client \(id) has unexpectedly died")
            #expect(wills.lines().filter { $0.contains("unexpectedly died") }.count == 1)
            await browser.close()
        }
    }
}
