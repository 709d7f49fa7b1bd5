import Foundation
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// The Locations page against RabbitMQ's STOMP over WebSocket.
    @Suite(.serialized, .requires(.rabbitMQ))
    struct LocationsPageTests {
        private func url(_ broker: RabbitMQ) -> String { "ws://127.0.0.1:\(broker.webStompPort)/ws" }

        private func client(_ broker: RabbitMQ) async throws -> STOMPClient {
            var configuration = STOMPConfiguration()
            configuration.credentials = Credentials(userName: "guest", password: "guest")
            let client = STOMPClient("stomp://127.0.0.1:\(broker.stompPort)", configuration: configuration)
            try await client.connect()
            return client
        }

        private func locate(_ id: String, _ latitude: Double, _ longitude: Double, _ client: STOMPClient) async throws {
            let body = #"{"deviceID":"\#(id)","lat":\#(latitude),"lng":\#(longitude),"ts":"2014-03-13T17:19:05+01:00"}"#
            try await client.sendAndConfirm(
                Array(body.utf8), to: "/topic/device.\(id).location",
                options: STOMPSendOptions(contentType: "application/json;charset=utf-8"))
        }

        @Test func `says that credentials are invalid, and connects with those that are not`() async throws {
            let broker = try await SharedBrokers.rabbitMQ()
            let page = try await Headquarters.open(.locations, "")
            let tab = page.tab
            #expect(try await tab.evaluate("document.getElementById('url').value") == "ws://localhost:61614")
            try await tab.fill("#url", url(broker))
            try await page.connect(user: "guest", password: "wrong")
            try await tab.wait(until: "document.getElementById('problem').textContent !== ''")
            #expect(try await tab.text(of: "#problem").hasPrefix("invalid user credentials"))
            #expect(try await tab.evaluate("document.getElementById('disconnect').disabled") == "true")
            try await page.connect(user: "guest", password: "guest")
            try await page.waitForState("on")
            #expect(try await tab.text(of: "#problem") == "")
            #expect(try await tab.text(of: "#state").hasPrefix("Connected · STOMP 1.2 · RabbitMQ"))
            #expect(try await tab.evaluate("document.getElementById('connect').disabled") == "true")
            try await tab.click("#disconnect")
            try await page.waitForState("off")
            #expect(try await tab.evaluate("document.getElementById('connect').disabled") == "false")
            #expect(tab.problems == [])
            try await page.close()
        }

        @Test func `shows where a device is, moves its marker, and sends it texts`() async throws {
            let broker = try await SharedBrokers.rabbitMQ()
            let client = try await client(broker)
            let texts = try await client.subscribe(to: "/queue/device.car-1.text")
            let page = try await Headquarters.open(.locations, url(broker))
            let tab = page.tab
            try await page.waitForSubscription()

            try await locate("car-1", 37.3352, -122.0325, client)
            try await tab.wait(until: "document.querySelector('.marker')?.title === 'car-1 is here'")
            try await tab.wait(
                until: "document.querySelector('#devices li')?.textContent.includes('φ:37.3352, λ:-122.0325')")
            try await locate("car-1", 37.4, -122.1, client)
            try await tab.wait(until: "Math.abs(Locations.map.position('car-1').latitude - 37.4) < 1e-6")
            #expect(abs(try await tab.number("Locations.map.position('car-1').longitude") + 122.1) < 1e-6)
            try await locate("car-2", 37.6, -122.3, client)
            try await tab.wait(until: "document.getElementById('count').textContent === '2'")

            // The marker lies where the map says, once the view has come to rest.
            try await tab.wait(until: "document.querySelectorAll('.marker:not([hidden])').length === 2")
            try await tab.waitForRest(of: ".marker")
            try await tab.click(".marker")
            #expect(try await tab.text(of: ".bubble") == "Device car-1")
            try await tab.fill("#text", "Où est la voiture\u{301}?")
            try await tab.click("#send")
            try await tab.wait(until: "document.querySelector('#sent li')?.dataset.receipt === 'received'")
            #expect(try await tab.evaluate("document.getElementById('text').value") == "")
            for try await text in texts {
                #expect(text.text.map { Array($0.utf8) } == Array("Où est la voiture\u{301}?".utf8))
                #expect(text.contentType == nil)
                #expect(text.header("persistent") == "true")
                break
            }
            try await page.picture("locations-two")
            try await tab.resize(width: 390, height: 844, isPhone: true)
            #expect(try await tab.evaluate("document.documentElement.scrollWidth <= innerWidth") == "true")
            try await tab.resize(width: 1280, height: 800)

            try await tab.click("#disconnect")
            try await tab.wait(until: "document.querySelectorAll('.marker, #devices li').length === 0")
            #expect(tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test func `ignores what is no location`() async throws {
            let broker = try await SharedBrokers.rabbitMQ()
            let client = try await client(broker)
            let page = try await Headquarters.open(.locations, url(broker))
            try await page.waitForSubscription()
            let bodies = [
                "", "[", "null", #"{"deviceID":"x","lat":"north","lng":1}"#, #"{"deviceID":7,"lat":1,"lng":1}"#,
                #"{"deviceID":"x","lat":91,"lng":0}"#, #"{"deviceID":"x","lat":1}"#,
                #"{"deviceID":"x","lat":null,"lng":null}"#, #"{"deviceID":"x","lat":[],"lng":1}"#,
                #"{"deviceID":"x","lat":1,"lng":""}"#, #"{"deviceID":"x","lat":true,"lng":1}"#,
                #"{"deviceID":"x","lat":[1],"lng":[2]}"#,
            ]
            for body in bodies { try await client.sendAndConfirm(body, to: "/topic/device.x.location") }
            try await locate("<img src=x onerror=alert(1)>", 1, 2, client)
            try await page.tab.wait(until: "Locations.ignored === \(bodies.count)")
            try await page.tab.wait(until: "document.querySelectorAll('#devices li').length === 1")
            #expect(try await page.tab.evaluate("document.querySelectorAll('#devices img').length") == "0")
            #expect(page.tab.problems == [])
            try await page.close()
            await client.disconnect()
        }

        @Test func `comes back by itself when the broker does`() async throws {
            let broker = try await RabbitMQ.start { $0.mqtt = false }
            let page = try await Headquarters.open(.locations, url(broker))
            let tab = page.tab
            try await page.waitForSubscription()
            let first = try await client(broker)
            try await locate("car-3", 37, -122, first)
            try await tab.wait(until: "document.querySelectorAll('.marker').length === 1")
            await first.disconnect()
            await broker.kill()
            try await page.waitForState("waiting")
            #expect(try await tab.text(of: "#state").hasPrefix("Connection lost"))
            try await broker.restart()
            try await page.waitForSubscription()
            let second = try await client(broker)
            try await locate("car-4", 38, -122, second)
            try await tab.wait(until: "document.querySelectorAll('.marker').length === 2")
            #expect(tab.problems == [])
            await second.disconnect()
            try await page.close()
            await broker.stop()
        }

        @Test func `works from a file, without any server`() async throws {
            let broker = try await SharedBrokers.rabbitMQ()
            let folder = URL(fileURLWithPath: #filePath).appending(path: "../../../Examples/Pages/Files").standardized
                .path
            let tab = try await SharedBrokers.browser().open("file://\(folder)/locations.html?url=\(url(broker))")
            try await tab.wait(until: "document.documentElement.dataset.state === 'on'")
            #expect(tab.problems == [])
            try await tab.navigate(to: "data:text/html,gone")
        }
    }
}
