/// One option of a command line: parser, help and the "did you mean" all read this and nothing else.
package struct OptionDeclaration: Sendable {
    /// With its two dashes: `--broker`.
    package let name: String
    /// What the value is called in the help, or nil for a flag.
    package let value: String?
    package let help: String
    /// The program that knows the option, or nil for both.
    package let device: Device?
    /// Whether the option may be given several times.
    package let isRepeatable: Bool

    init(_ name: String, _ value: String?, for device: Device? = nil, isRepeatable: Bool = false, _ help: String) {
        self.name = name
        self.value = value
        self.help = help
        self.device = device
        self.isRepeatable = isRepeatable
    }

    func belongs(to device: Device) -> Bool {
        self.device == nil || self.device == device
    }
}

extension OptionDeclaration {
    static let broker = broker(
        for: .locations, "stomp:// (port 61613), stomps:// (61614), ws://, wss:// or unix:", "stomp://localhost")
    static let brokerOfMotions = broker(
        for: .motions, "mqtt:// (port 1883), mqtts:// (8883), ws://, wss:// or unix:", "mqtt://localhost")

    private static func broker(for device: Device, _ schemes: String, _ example: String) -> OptionDeclaration {
        OptionDeclaration(
            "--broker", "URL", for: device, isRepeatable: true,
            """
            Broker to connect to, as in \(example): \(schemes). May hold user:password@. Given several times, the \
            brokers are tried in turn. Default: an embedded broker on loopback, whose address is printed.
            """)
    }

    static let port = OptionDeclaration(
        "--port", "PORT",
        "Port of the embedded broker: for STOMP in locations-device, for MQTT in motions-device. Default: the usual "
            + "port, or any if that is taken.")
    static let pagePort = OptionDeclaration("--page-port", "PORT", "Port of the headquarters page. Default: any.")
    static let virtualHost = OptionDeclaration(
        "--virtual-host", "NAME", for: .locations, "Virtual host of the broker, sent as the header host. Default: /.")
    static let user = OptionDeclaration("--user", "NAME", "User name. Default: MESSAGING_USER.")
    static let passwordFile = OptionDeclaration(
        "--password-file", "FILE", "File whose first line is the password. Default: MESSAGING_PASSWORD.")
    static let ca = OptionDeclaration("--ca", "FILE", "Certificates (PEM) to trust instead of the system's.")
    static let cert = OptionDeclaration("--cert", "FILE", "Client certificate (PEM); needs --key.")
    static let key = OptionDeclaration("--key", "FILE", "Key (PEM) of the client certificate.")
    static let insecure = OptionDeclaration(
        "--insecure", nil,
        "Accept any certificate of the broker. Anyone on the network path can then read and change everything.")
    static let deviceID = OptionDeclaration(
        "--device-id", "ID", "Name of this device. Default: a random UUID, printed.")
    static let fleet = OptionDeclaration(
        "--fleet", "N",
        """
        Run N devices, each with a connection and an id of its own, started one after another. They are spread along \
        the recording and beside it, each with its own speed; with --device-id they replay it together.
        """)
    static let name = OptionDeclaration(
        "--name", "PREFIX",
        """
        With --fleet: call the devices PREFIX-1, PREFIX-2 and so on. Default: van in locations-device, phone in \
        motions-device, with a tag for brokers that others use too.
        """)
    static let track = OptionDeclaration(
        "--track", "FILE", for: .locations,
        """
        GPX 1.0 or 1.1, or CSV with the columns lat and lng and perhaps a time; - reads CSV lines from standard input, sends each when it is read and \
        skips those older than 30 s. Default: a built-in drive from Cupertino towards San Francisco.
        """)
    static let waypoints = OptionDeclaration(
        "--waypoints", nil, for: .locations,
        """
        Replay the waypoints of the GPX file as the track. Default: only if it has no track and no route, and all \
        waypoints have times that do not fall.
        """)
    static let motion = OptionDeclaration(
        "--motion", "FILE", for: .motions,
        """
        Core Motion CSV with attitude.roll, attitude.pitch and attitude.yaw columns, or CSV pitch,roll,yaw, in \
        radians unless a column names another unit; - reads standard input. Default: a built-in motion.
        """)
    static let speed = OptionDeclaration(
        "--speed", "X",
        """
        Replay X times as fast as recorded; 1 s apart where no times were recorded. Standard input sets its own pace. \
        Default: 1.
        """)
    static let intervalOfLocations = OptionDeclaration(
        "--interval", "S", for: .locations, "At most one fix per S seconds. Default: 0, every fix.")
    static let intervalOfMotions = OptionDeclaration(
        "--interval", "S", for: .motions, "One sample per S seconds; 0 sends every sample. Default: 1.")
    static let recordedTime = OptionDeclaration(
        "--recorded-time", nil, for: .locations, "Send the recorded times as ts. Default: the time of sending.")
    static let loop = OptionDeclaration(
        "--loop", nil,
        """
        Start over at the end of the recording. Default on a terminal with the embedded broker and its page; otherwise \
        summary and exit.
        """)
    static let once = OptionDeclaration(
        "--once", nil, "Do not start over: summary and exit at the end of the recording.")
    static let heartBeat = OptionDeclaration(
        "--heart-beat", "OUT,IN", for: .locations,
        "Heart-beats in milliseconds, sent and wanted; 0 is none. Default: 60000,20000.")
    static let keepAlive = OptionDeclaration(
        "--keep-alive", "S", for: .motions, "Keep alive in seconds; 0 turns it off, behind a proxy use 45. Default: 60."
    )
    static let ack = OptionDeclaration(
        "--ack", "MODE", for: .locations,
        "auto, or client-individual: the keys a and r accept or reject the oldest text. Default: auto.")
    static let country = OptionDeclaration(
        "--country", "CC", for: .locations, "Two letters, sent as the header country of each fix.")
    static let expires = OptionDeclaration(
        "--expires", "S", for: .locations, "Seconds after which the broker may drop a fix, sent as the header expires.")
    static let priority = OptionDeclaration(
        "--priority", "N", for: .locations, "0 to 9, sent as the header priority of each fix.")
    static let qos = OptionDeclaration("--qos", "0|1|2", for: .motions, "Quality of service of motions. Default: 0.")
    static let keepSession = OptionDeclaration(
        "--keep-session", nil, for: .motions,
        "Keep the session, so that alerts sent while away arrive on return. Give the same --device-id each time.")
    static let frames = OptionDeclaration(
        "--frames", nil, "Show every frame, >>> sent and <<< received, with secrets masked.")
    static let verbose = OptionDeclaration(
        "--verbose", nil,
        """
        On a terminal, print what each device of a fleet sends and how its connection is. Default: a few lines that \
        count it all; texts and alerts are always printed.
        """)
    static let noPage = OptionDeclaration(
        "--no-page", nil, "Do not serve the headquarters page beside the embedded broker.")
    static let open = OptionDeclaration("--open", nil, "Open the headquarters page in the browser.")
    static let noReconnect = OptionDeclaration(
        "--no-reconnect", nil,
        """
        Exit at the first failure. Default: five attempts at the first connection; a lost connection is retried until \
        it is back, with up to ten seconds between attempts.
        """)
    static let showHelp = OptionDeclaration("--help", nil, "Show this text; -h does the same.")
    static let showVersion = OptionDeclaration("--version", nil, "Show the version.")

    /// Every option, in the order of the help.
    static let all: [OptionDeclaration] = [
        broker, brokerOfMotions, port, virtualHost, user, passwordFile, ca, cert, key, insecure, deviceID, fleet, name,
        track, waypoints, motion, speed, intervalOfLocations, intervalOfMotions, recordedTime, loop, once, heartBeat,
        keepAlive,
        ack,
        country, expires, priority, qos, keepSession, frames, verbose, open, pagePort, noPage, noReconnect, showHelp,
        showVersion,
    ]

    static func all(of device: Device) -> [OptionDeclaration] {
        all.filter { $0.belongs(to: device) }
    }
}

/// The text of `--help`, made from the declarations alone.
package enum HelpText {
    package static func text(for device: Device, width: Int = 100) -> String {
        let options = OptionDeclaration.all(of: device)
        let left = options.map { $0.name + ($0.value.map { " " + $0 } ?? "") }
        let column = (left.map(\.count).max() ?? 0) + 4
        var lines = ["Usage: \(device.programName) [options]", "", device.purpose, "", "Options:"]
        for (option, left) in zip(options, left) {
            lines += entry(left, option.help, column: column, width: width)
        }
        lines += ["", "Values may also be attached: --name=value.", "", "Keys:"]
        for (key, meaning) in device.keys {
            lines += entry(key, meaning, column: 10, width: width)
        }
        lines += ["", "Exit statuses:"]
        for status in ExitStatus.allCases {
            lines += entry(String(status.rawValue), status.meaning, column: 6, width: width)
        }
        return lines.joined(separator: "\n")
    }

    package static func version(of device: Device) -> String {
        "\(device.programName) \(Device.version)"
    }

    private static func entry(_ left: String, _ text: String, column: Int, width: Int) -> [String] {
        var lines: [String] = []
        var line = "  " + left
        line += String(repeating: " ", count: max(1, column - line.count))
        let indent = String(repeating: " ", count: column)
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = indent
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return lines + [line]
    }
}
