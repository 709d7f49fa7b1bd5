import Foundation
import MQTT
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

extension BrowserTests {
    /// Pages that show two hundred devices, watched for as long as `PAGE_FLEET_SECONDS` says.
    @Suite(.serialized)
    struct LargeFleetTests {
        @Test(.requires(.rabbitMQ), arguments: PageBroker.most(for: .locations, usual: .rabbitMQ))
        func `two hundred devices at ten messages a second leave the locations page usable`(
            broker: PageBroker
        ) async throws {
            try await broker.withPage(.locations) { page, addresses in
                let client = addresses.stompClient()
                try await client.connect()
                try await watch(page, "locations-fleet") { round in
                    let messages = (0..<200).map { device in
                        let (angle, id) = (Double(round) / 40 + Double(device), "car-\(device)")
                        let latitude = 37.5 + Double(device % 14) / 40 + 0.05 * sin(angle)
                        let longitude = -122.3 + Double(device / 14) / 30 + 0.06 * cos(angle * 0.7)
                        let body = #"{"deviceID":"\#(id)","lat":\#(latitude),"lng":\#(longitude)}"#
                        return STOMPOutgoingMessage(body, to: "/topic/device.\(id).location")
                    }
                    try await client.send(messages)
                }
                await client.disconnect()
            }
        }

        @Test(.requires(.mosquitto), arguments: PageBroker.most(for: .motions, usual: .mosquitto))
        func `two hundred devices at ten messages a second leave the motions page usable`(
            broker: PageBroker
        ) async throws {
            try await broker.withPage(.motions) { page, addresses in
                let client = addresses.mqttClient()
                try await client.connect()
                try await watch(page, "motions-fleet") { round in
                    let messages = (0..<200).map { device in
                        let phase = Double(round) / 10 + Double(device)
                        let attitude = Attitude(
                            pitch: sin(phase), roll: 1.5 * sin(phase * 1.7), yaw: 2.8 * cos(phase / 2))
                        return MQTTOutgoingMessage(attitude.bytes, to: "/mwm/phone-\(device)/motion", qos: .atMostOnce)
                    }
                    try await client.publish(messages).check()
                }
                await client.disconnect()
            }
        }

        /// Watches a page for as long as the environment says, while `send` is called ten times a second.
        private func watch(
            _ page: Headquarters, _ picture: String, _ send: @escaping @Sendable (_ round: Int) async throws -> Void
        ) async throws {
            let seconds = Headquarters.fleetSeconds
            let sending = Task {
                let clock = ContinuousClock()
                let start = clock.now
                for round in 0..<(10 * seconds + 20) {
                    try await send(round)
                    try await clock.sleep(until: start + .milliseconds(100) * (round + 1))
                }
            }
            try await page.tab.wait(until: "document.getElementById('count').textContent === '200'")
            try await page.expectUsable(forSeconds: seconds)
            try await page.picture(picture)
            try await sending.value
        }
    }
}
