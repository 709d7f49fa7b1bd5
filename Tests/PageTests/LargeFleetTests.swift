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
                func message(_ device: Int, _ round: Int) -> STOMPOutgoingMessage {
                    let (angle, id) = (Double(round) / 40 + Double(device), "car-\(device)")
                    let latitude = 37.5 + Double(device % 14) / 40 + 0.05 * sin(angle)
                    let longitude = -122.3 + Double(device / 14) / 30 + 0.06 * cos(angle * 0.7)
                    let body = #"{"deviceID":"\#(id)","lat":\#(latitude),"lng":\#(longitude)}"#
                    return STOMPOutgoingMessage(body, to: "/topic/device.\(id).location")
                }
                try await watch(page, "locations-fleet") {
                    try await client.send([message(200, 0)])
                } send: { round in
                    try await client.send((0..<200).map { message($0, round) })
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
                func message(_ device: Int, _ round: Int, _ qos: QoS) -> MQTTOutgoingMessage {
                    let phase = Double(round) / 10 + Double(device)
                    let attitude = Attitude(
                        pitch: sin(phase), roll: 1.5 * sin(phase * 1.7), yaw: 2.8 * cos(phase / 2))
                    return MQTTOutgoingMessage(attitude.bytes, to: "/mwm/phone-\(device)/motion", qos: qos)
                }
                try await watch(page, "motions-fleet") {
                    try await client.publish([message(200, 0, .atLeastOnce)]).check()
                } send: { round in
                    try await client.publish((0..<200).map { message($0, round, .atMostOnce) }).check()
                }
                await client.disconnect()
            }
        }

        /// Watches a page for as long as the environment says, while `send` is called ten times a second for two hundred
        /// devices, and then until it shows one more, whose message is `last`. A broker may drop what a slow page has not
        /// read, so `last` is repeated until then.
        private func watch(
            _ page: Headquarters, _ picture: String, last: () async throws -> Void,
            send: (_ round: Int) async throws -> Void
        ) async throws {
            let clock = ContinuousClock()
            func sendRounds(_ rounds: Range<Int>) async throws {
                let start = clock.now
                for round in rounds {
                    try await send(round)
                    try await clock.sleep(until: start + .milliseconds(100) * (round - rounds.lowerBound + 1))
                }
            }
            func waitForDevices(_ count: Int) async throws {
                try await page.tab.wait(until: "document.getElementById('count').textContent === '\(count)'")
            }
            func shownCount() async throws -> String {
                try await page.tab.evaluate("document.getElementById('count').textContent")
            }
            try await sendRounds(0..<20)
            try await waitForDevices(200)
            let rounds = 20..<20 + 10 * Headquarters.fleetSeconds
            try await page.expectUsable {
                try await sendRounds(rounds)
                for _ in 0..<360 where try await shownCount() != "201" {
                    try await last()
                    try await clock.sleep(for: .milliseconds(500))
                }
                try await waitForDevices(201)
                return rounds.count * 200
            }
            try await page.picture(picture)
        }
    }
}
