import Foundation
import MQTT

/// Publishes the positions of invented vehicles, which drive in circles around Helsinki's central station, once a second
/// each, until the task is cancelled.
func publishPositions(of count: Int, with client: MQTTClient) async throws {
    var angles = (0..<count).map { Double($0) }
    while true {
        for number in 0..<count {
            let radius = 1000.0 + 200 * Double(number)
            let speed = 7.5
            angles[number] += speed / radius
            let position = VehiclePosition(
                vehicle: "H\(9171 + number)",
                latitude: 60.1719 + radius * cos(angles[number]) / 111_195,
                longitude: 24.9414 + radius * sin(angles[number]) / 55_300,
                speed: speed, heading: (angles[number] * 180 / .pi + 90).truncatingRemainder(dividingBy: 360),
                offset: 60 - 30 * number)
            try await client.publish(VehicleMessage(position: position), to: .positions.at(position.vehicle))
        }
        try await Task.sleep(for: .seconds(1))
    }
}
