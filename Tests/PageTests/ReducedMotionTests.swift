import LoopbackBroker
import MQTT
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// The pages for people who do not want things to move: they jump where others glide, and turn once a second.
    @Suite(.serialized)
    struct ReducedMotionTests {
        /// Counts the places of an element in the frames that are drawn from now on.
        private func watch(_ selector: String, in tab: BrowserTab) async throws {
            try await tab.evaluate(
                """
                (window.places = new Set(), (function frame() {
                    const box = document.querySelector('\(selector)').getBoundingClientRect();
                    const turn = document.querySelector('\(selector)').style.transform;
                    places.add(`${box.x.toFixed(1)} ${box.y.toFixed(1)} ${turn}`);
                    requestAnimationFrame(frame);
                })(), 0)
                """)
        }

        @Test(arguments: [true, false])
        func `a marker jumps to its next place, or glides there`(isReduced: Bool) async throws {
            let broker = try await LoopbackBroker.start()
            let client = STOMPClient(broker.urls.stomp ?? "")
            try await client.connect()
            let page = try await Headquarters.open(.locations, broker.urls.ws ?? "")
            let tab = page.tab
            try await tab.setReducedMotion(isReduced)
            try await page.waitForSubscription()
            func locate(_ latitude: Double) async throws {
                try await client.sendAndConfirm(
                    #"{"deviceID":"car","lat":\#(latitude),"lng":-122}"#, to: "/topic/device.car.location")
            }
            try await locate(37)
            try await tab.wait(until: "document.querySelector('.marker')?.style.transform")
            // The view stays where somebody put it, so that the marker alone moves.
            try await tab.evaluate(
                "document.querySelector('.map canvas').dispatchEvent(new WheelEvent('wheel', { deltaY: 1, bubbles: true }))"
            )
            try await tab.waitForRest(of: ".marker")
            try await watch(".marker", in: tab)
            try await locate(37.0005)
            try await tab.wait(until: "Locations.devices.get('car').fixes === 2")
            try await tab.wait(until: "places.size > 1")
            if isReduced {
                // Long enough for a glide: it takes as long as the pause between the two fixes.
                try await tab.evaluate("new Promise((done) => setTimeout(done, 1500))")
                #expect(try await tab.number("places.size") == 2)
            } else {
                // A browser that draws too seldom may miss a glide: another one follows then.
                var glides = 1
                while try await !eventually(
                    timeout: .seconds(5), { try await tab.number("places.size") > Double(glides + 1) })
                {
                    try #require(glides < 20)
                    glides += 1
                    try await locate(37 + 0.0005 * Double(glides))
                }
            }
            #expect(tab.problems == [])
            try await tab.setReducedMotion(false)
            try await page.close()
            await client.disconnect()
            await broker.stop()
        }

        @Test(arguments: [true, false])
        func `a phone turns at most once a second, or with each motion`(isReduced: Bool) async throws {
            let broker = try await LoopbackBroker.start()
            let client = MQTTClient(broker.urls.mqtt ?? "")
            try await client.connect()
            let page = try await Headquarters.open(.motions, broker.urls.ws ?? "")
            let tab = page.tab
            try await tab.setReducedMotion(isReduced)
            try await page.waitForSubscription()
            func turn(_ degrees: Double) async throws {
                let attitude = Attitude(pitch: 0, roll: degrees * .pi / 180, yaw: 0)
                try await client.publish(attitude.bytes, to: "/mwm/phone/motion", qos: .atLeastOnce)
            }
            try await turn(0)
            try await tab.wait(until: "document.querySelector('.phone')?.style.transform")
            try await tab.evaluate(
                """
                (window.turns = 0, new MutationObserver(() => { turns += 1; }).observe(
                    document.querySelector('.phone'), { attributes: true, attributeFilter: ['style'] }), 0)
                """)
            for degrees in 1...10 {
                try await turn(Double(degrees))
                let seen =
                    "Motions.devices.get('phone').values.some((angle) => Math.abs(angle - \(degrees) * Math.PI / 180) < 1e-6)"
                try await tab.wait(until: seen)
                // Frames come when the browser has time: each motion is drawn before the next one is sent.
                let drawn = "document.querySelector('.phone').style.transform.endsWith('rotateY(\(degrees)deg)')"
                if !isReduced { try await tab.wait(until: drawn) }
            }
            let start = try await tab.number("performance.now()")
            try await tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            let turns = try await tab.number("turns")
            if isReduced {
                #expect(turns <= start / 1000 + 1, "\(turns) turns")
                // The last posture is shown all the same.
                try await tab.wait(until: "document.querySelector('.phone').style.transform.endsWith('rotateY(10deg)')")
                let transition = "getComputedStyle(document.querySelector('.phone')).transitionDuration"
                #expect(try await tab.evaluate(transition) == "0s")
            } else {
                #expect(turns >= 9)
            }
            #expect(tab.problems == [])
            try await tab.setReducedMotion(false)
            try await page.close()
            await client.disconnect()
            await broker.stop()
        }
    }
}
