import Foundation
package import MessagingShell
package import Transport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What both programs can be told.
package struct DeviceOptions: Sendable {
    /// The brokers to be tried in turn; none for the embedded broker.
    package var brokers: [BrokerAddress]
    /// The credentials for each of `brokers`, or for the embedded broker if that list is empty.
    package var logins: [Login]
    /// Port of the embedded broker; nil for the usual one, or any.
    package var port: Int?
    /// Port of the page; nil for any.
    package var pagePort: Int?
    package var certificateAuthorities: String?
    package var certificate: String?
    package var key: String?
    package var isInsecure: Bool
    /// One per device of the fleet.
    package var deviceIDs: [String]
    /// The devices of the fleet are spread along the track and beside it.
    package var isSpread: Bool
    /// Prints what each device of a fleet does, on a terminal too.
    package var isVerbose: Bool
    package var speed: Double
    package var loops: Bool
    /// Ends after one run, even on a terminal.
    package var runsOnce: Bool
    package var showsFrames: Bool
    package var servesPage: Bool
    package var opensPage: Bool
    package var reconnects: Bool

    package var broker: BrokerAddress? { brokers.first }
    package var login: Login { logins[0] }
    /// Whether the program brings a broker and its page along.
    package var hasPage: Bool { brokers.isEmpty && servesPage }

    init(_ arguments: Arguments, environment: [String: String]) throws(DeviceFailure) {
        brokers = []
        for url in arguments.texts(.broker) { brokers.append(try BrokerAddress(url, for: arguments.device)) }
        logins = []
        let password = try Login.passwordOfFile(arguments)
        for broker in brokers.isEmpty ? [nil] : brokers.map(Optional.init) {
            logins.append(
                try Login(arguments, broker: broker, passwordOfFile: password, environment: environment))
        }
        certificateAuthorities = arguments.text(.ca)
        certificate = arguments.text(.cert)
        key = arguments.text(.key)
        isInsecure = arguments.has(.insecure)
        try Self.checkTLS(arguments, brokers)
        try Self.checkEmbedded(arguments)
        port = try arguments.integer(.port, in: 1...65_535)
        pagePort = try arguments.integer(.pagePort, in: 1...65_535)
        let fleet = try arguments.integer(.fleet, in: 1...1000) ?? 1
        deviceIDs = try Self.deviceIDs(arguments, count: fleet)
        isSpread = !arguments.has(.deviceID)
        isVerbose = arguments.has(.verbose)
        speed = try arguments.number(.speed, in: 0.001...1_000_000) ?? 1
        loops = arguments.has(.loop)
        runsOnce = arguments.has(.once)
        guard !loops || !runsOnce else { throw .usage("--loop and --once exclude each other") }
        showsFrames = arguments.has(.frames)
        servesPage = !arguments.has(.noPage)
        opensPage = arguments.has(.open)
        reconnects = !arguments.has(.noReconnect)
    }

    /// What the embedded broker and its page are told is a mistake without them.
    private static func checkEmbedded(_ arguments: Arguments) throws(DeviceFailure) {
        for option in [OptionDeclaration.port, .pagePort, .open] where arguments.has(option) {
            guard !arguments.has(.broker) else {
                throw .usage("\(option.name) is for the embedded broker: leave out --broker")
            }
            guard !arguments.has(.noPage) || option.name == OptionDeclaration.port.name else {
                throw .usage("\(option.name) and --no-page exclude each other")
            }
        }
    }

    private static func checkTLS(_ arguments: Arguments, _ brokers: [BrokerAddress]) throws(DeviceFailure) {
        guard arguments.has(.cert) == arguments.has(.key) else {
            throw .usage("--cert and --key belong together")
        }
        let options: [OptionDeclaration] = [.ca, .cert, .key, .insecure]
        if let option = options.first(where: arguments.has), !brokers.contains(where: \.isEncrypted) {
            let schemes = arguments.device.schemes.filter { $0.hasSuffix("s") && $0 != "ws" }
            throw .usage(
                "\(option.name) needs a --broker with \(schemes.map { $0 + "://" }.joined(separator: " or "))")
        }
        for option in options where option.value != nil {
            if let path = arguments.text(option), unsafe access(path, R_OK) != 0 {
                throw DeviceFailure(.noInput, "\(option.name): cannot read \(path.printable): \(systemMessage(errno))")
            }
        }
    }

    private static func deviceIDs(_ arguments: Arguments, count: Int) throws(DeviceFailure) -> [String] {
        guard !arguments.has(.name) || arguments.has(.fleet) else {
            throw .usage("--name needs --fleet: a single device is named by --device-id")
        }
        guard !arguments.has(.name) || !arguments.has(.deviceID) else {
            throw .usage("--name and --device-id exclude each other")
        }
        let option: OptionDeclaration = arguments.has(.name) ? .name : .deviceID
        guard let id = arguments.text(option) else {
            guard count > 1 else { return [UUID().uuidString] }
            // Other fleets with the same names may use the broker that was given.
            let tag = arguments.has(.broker) ? "-" + UUID().uuidString.prefix(4).lowercased() : ""
            return (1...count).map { "\(arguments.device.fleetName)\(tag)-\($0)" }
        }
        // The identifier becomes one level of a topic or one part of a destination: it cannot contain their separators and
        // wildcards, or a page that subscribes with a wildcard never shows the device. The MQTT client replaces "%".
        let forbidden = arguments.device == .motions ? "/+#%" : "/.*>"
        let isPlain = id.unicodeScalars.allSatisfy { $0.value > 0x20 && !(0x7F...0x9F).contains($0.value) }
        guard id.utf8.count <= 200, isPlain, !id.utf8.contains(where: forbidden.utf8.contains) else {
            let characters = forbidden.map(String.init).joined(separator: " ")
            throw .usage(
                "\(option.name) must be at most 200 bytes, without spaces, control characters or any of \(characters); '\(id.printable)' is not"
            )
        }
        return count == 1 && option.name == OptionDeclaration.deviceID.name ? [id] : (1...count).map { "\(id)-\($0)" }
    }
}

extension DeviceOptions {
    /// Back-off from half a second to ten. The first connection fails after five attempts; a lost one is tried again
    /// until it is back.
    package var reconnectPolicy: ReconnectPolicy {
        guard reconnects else { return .never }
        return ReconnectPolicy(
            initialDelay: .milliseconds(500), maximumDelay: .seconds(10), firstConnectAttempts: 5)
    }
}

extension DeviceOptions {
    /// What `--ca`, `--cert`, `--key` and `--insecure` say, in the library's words.
    package var tls: TLSOptions {
        var options = TLSOptions()
        if let certificateAuthorities { options.trust = .authorities([.file(certificateAuthorities)]) }
        if let certificate, let key {
            options.identity = TLSIdentity(certificates: .file(certificate), key: .file(key))
        }
        if isInsecure { options.verification = .unsafeAcceptAnyCertificate }
        return options
    }
}
