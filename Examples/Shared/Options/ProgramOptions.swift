/// What a command line asked for.
package enum Invocation<Options: Sendable>: Sendable {
    /// `--help` or `--version`: print this and exit with 0.
    case show(String)
    case run(Options)
}

/// The command line of `locations-device`.
package struct LocationsOptions: Sendable {
    package enum Acknowledgement: String, Sendable, CaseIterable {
        case auto
        case clientIndividual = "client-individual"
    }

    package var common: DeviceOptions
    /// Path of the recording, `-` for standard input, nil for the built-in drive.
    package var track: String?
    /// Whether the waypoints of the file are the track.
    package var wantsWaypoints: Bool
    package var interval: Duration
    package var usesRecordedTime: Bool
    package var virtualHost: String
    /// Milliseconds.
    package var heartBeatOut: Int
    package var heartBeatIn: Int
    package var acknowledgement: Acknowledgement
    package var country: String?
    package var expires: Duration?
    package var priority: Int?

    package static func parse(
        _ arguments: [String], environment: [String: String]
    ) throws(DeviceFailure) -> Invocation<LocationsOptions> {
        if let text = shown(arguments, for: .locations) { return .show(text) }
        return .run(try LocationsOptions(Arguments(arguments, for: .locations), environment: environment))
    }

    init(_ arguments: Arguments, environment: [String: String]) throws(DeviceFailure) {
        common = try DeviceOptions(arguments, environment: environment)
        track = arguments.text(.track)
        wantsWaypoints = arguments.has(.waypoints)
        guard !wantsWaypoints || (track ?? "-") != "-" else { throw .usage("--waypoints needs a --track with a file") }
        try checkStandardInput(track, .track, common)
        interval = .seconds(try arguments.number(.intervalOfLocations, in: 0...86_400) ?? 0)
        usesRecordedTime = arguments.has(.recordedTime)
        virtualHost = arguments.text(.virtualHost) ?? "/"
        (heartBeatOut, heartBeatIn) = try Self.heartBeat(arguments)
        let mode = arguments.text(.ack) ?? "auto"
        guard let acknowledgement = Acknowledgement(rawValue: mode) else {
            throw arguments.malformed(.ack, mode, "auto or client-individual")
        }
        self.acknowledgement = acknowledgement
        if let text = arguments.text(.country) {
            let isLetter = { (byte: UInt8) in (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) }
            guard text.utf8.count == 2, text.utf8.allSatisfy(isLetter) else {
                throw arguments.malformed(.country, text, "two letters")
            }
            country = text.uppercased()
        }
        expires = try arguments.number(.expires, in: 0.001...1_000_000_000).map { .seconds($0) }
        priority = try arguments.integer(.priority, in: 0...9)
    }

    private static func heartBeat(_ arguments: Arguments) throws(DeviceFailure) -> (Int, Int) {
        guard let text = arguments.text(.heartBeat) else { return (60_000, 20_000) }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
        let range = 0...86_400_000
        guard parts.count == 2, let out = parts[0], let `in` = parts[1], range.contains(out), range.contains(`in`)
        else {
            throw arguments.malformed(.heartBeat, text, "two numbers of milliseconds, as in 60000,20000")
        }
        return (out, `in`)
    }
}

/// The command line of `motions-device`.
package struct MotionsOptions: Sendable {
    package var common: DeviceOptions
    /// Path of the recording, `-` for standard input, nil for the built-in motion.
    package var motion: String?
    package var interval: Duration
    /// Seconds; 0 turns it off.
    package var keepAlive: Int
    package var qos: Int
    package var keepsSession: Bool
    /// The session is kept for an identifier that no later run has.
    package var losesSession: Bool

    package static func parse(
        _ arguments: [String], environment: [String: String]
    ) throws(DeviceFailure) -> Invocation<MotionsOptions> {
        if let text = shown(arguments, for: .motions) { return .show(text) }
        return .run(try MotionsOptions(Arguments(arguments, for: .motions), environment: environment))
    }

    init(_ arguments: Arguments, environment: [String: String]) throws(DeviceFailure) {
        common = try DeviceOptions(arguments, environment: environment)
        motion = arguments.text(.motion)
        try checkStandardInput(motion, .motion, common)
        interval = .seconds(try arguments.number(.intervalOfMotions, in: 0...86_400) ?? 1)
        keepAlive = try arguments.integer(.keepAlive, in: 0...65_535) ?? 60
        qos = try arguments.integer(.qos, in: 0...2) ?? 0
        keepsSession = arguments.has(.keepSession)
        losesSession = keepsSession && !arguments.has(.deviceID) && !arguments.has(.name)
    }
}

/// Help and version win over every other option, and over mistakes in it.
private func shown(_ arguments: [String], for device: Device) -> String? {
    let help = [OptionDeclaration.showHelp.name, "-h"]
    if arguments.contains(where: help.contains) { return HelpText.text(for: device) }
    if arguments.contains(OptionDeclaration.showVersion.name) { return HelpText.version(of: device) }
    return nil
}

private func checkStandardInput(
    _ path: String?, _ option: OptionDeclaration, _ common: DeviceOptions
) throws(DeviceFailure) {
    guard path == "-" else { return }
    guard !common.loops else {
        throw .usage("--loop needs a recording in a file: standard input cannot start over")
    }
    guard common.deviceIDs.count == 1 else {
        throw .usage("--fleet needs a recording in a file: standard input feeds one device")
    }
}
