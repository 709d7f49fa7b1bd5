/// The two programs that share this module.
package enum Device: Sendable, CaseIterable {
    case locations
    case motions

    package static let version = "0.1.0"

    package var programName: String {
        switch self {
        case .locations: "locations-device"
        case .motions: "motions-device"
        }
    }

    /// What the devices of a fleet without a name are called.
    var fleetName: String {
        switch self {
        case .locations: "van"
        case .motions: "phone"
        }
    }

    var purpose: String {
        switch self {
        case .locations: "Replays a recorded track as the Locations app: each fix goes to a STOMP broker."
        case .motions: "Replays recorded motions as the Motions app: samples go to an MQTT broker."
        }
    }

    var keys: [(String, String)] {
        let stop = ("Ctrl-C", "Leave the broker properly, show a summary and exit; a second one exits at once.")
        return switch self {
        case .locations:
            [
                ("Enter", "Shake the device: the last fix is sent again."),
                ("a, r", "Accept or reject the oldest text, with --ack client-individual."), stop,
            ]
        case .motions: [("Enter", "Shake the device: the last motion is sent again."), stop]
        }
    }

    var schemes: [String] {
        switch self {
        case .locations: ["stomp", "stomps", "ws", "wss", "unix"]
        case .motions: ["mqtt", "mqtts", "ws", "wss", "unix"]
        }
    }
}
