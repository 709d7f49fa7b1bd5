import LoopbackBroker
import MQTT
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// What people with weak eyes, and those who want less motion, get from the pages.
    @Suite(.serialized)
    struct ContrastTests {
        @Test func `every text of both pages can be read, in light and in dark`() async throws {
            let broker = try await LoopbackBroker.start()
            let stomp = STOMPClient(broker.urls.stomp ?? "")
            let mqtt = MQTTClient(broker.urls.mqtt ?? "", clientID: "phone")
            try await stomp.connect()
            try await mqtt.connect()
            let locations = try await Headquarters.open(.locations, broker.urls.ws ?? "")
            try await locations.waitForSubscription()
            for (id, latitude) in [("here", 37.0), ("silent", 37.1), ("gone", 37.2)] {
                try await stomp.sendAndConfirm(
                    #"{"deviceID":"\#(id)","lat":\#(latitude),"lng":-122}"#, to: "/topic/device.\(id).location")
            }
            try await locations.tab.wait(until: "document.querySelectorAll('#devices li').length === 3")
            try await locations.tab.evaluate(
                """
                (() => {
                    // A quarter of an hour later, for devices that send every three hours, minutes and seconds.
                    const now = performance.now.bind(performance);
                    performance.now = () => now() + 1e6;
                    Locations.devices.get('here').interval = 1e7;
                    Locations.devices.get('silent').interval = 2e5;
                    Locations.devices.get('gone').interval = 1e3;
                    Locations.age();
                    Locations.select('gone');
                })()
                """)
            // A busy browser draws the list a moment later.
            try await locations.tab.wait(
                until:
                    "[...document.querySelectorAll('#devices li')].map((row) => row.dataset.presence).join() === 'gone,here,silent'"
            )
            let faintLocations = try await Contrast.faintTexts(in: locations.tab)
            #expect(faintLocations == [])
            try await locations.close()

            let motions = try await Headquarters.open(.motions, broker.urls.ws ?? "")
            try await motions.waitForSubscription()
            try await mqtt.publish(
                [UInt8](repeating: 0, count: 24), to: "/mwm/phone/motion", qos: .atLeastOnce, retain: true)
            try await motions.tab.wait(until: "document.querySelector('.card')")
            try await motions.tab.click(".card button")
            try await motions.tab.wait(
                until: "document.querySelector('.card output').textContent.includes('acknowledged')")
            let faintMotions = try await Contrast.faintTexts(in: motions.tab)
            #expect(faintMotions == [])
            try await motions.close()
            await stomp.disconnect()
            await mqtt.disconnect()
            await broker.stop()
        }
    }
}
