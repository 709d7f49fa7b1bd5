import Foundation
import MQTT

/// The envelope that each message has.
struct VehicleMessage: Codable, Sendable {
    var position: VehiclePosition

    enum CodingKeys: String, CodingKey {
        case position = "VP"
    }
}

/// Where a vehicle is and how it moves. Vehicles without satellites in sight leave most of it out.
struct VehiclePosition: Codable, Sendable {
    var vehicle: String
    var latitude: Double?
    var longitude: Double?
    /// In metres per second.
    var speed: Double?
    /// In degrees, clockwise from north.
    var heading: Double?
    /// In seconds, behind the timetable if negative.
    var offset: Int?

    enum CodingKeys: String, CodingKey {
        case vehicle = "veh"
        case latitude = "lat"
        case longitude = "long"
        case speed = "spd"
        case heading = "hdg"
        case offset = "dl"
    }
}

extension VehiclePosition: CustomStringConvertible {
    var description: String {
        let place =
            if let latitude, let longitude { String(format: "%.5f %.5f", latitude, longitude) } else { "somewhere" }
        let drive =
            if let speed, let heading { String(format: "%.0f km/h %.0f°", speed * 3.6, heading) } else { "?" }
        let delay =
            switch offset ?? 0 {
            case 0: "in time"
            case let seconds where seconds > 0: "\(seconds) s early"
            case let seconds: "\(seconds.magnitude) s late"
            }
        return "\(vehicle)  \(place)  \(drive)  \(delay)"
    }
}

extension MQTTTopic<VehicleMessage> {
    /// The last level is the vehicle.
    static let positions = MQTTTopic("transport/positions/+", as: .json)
}
