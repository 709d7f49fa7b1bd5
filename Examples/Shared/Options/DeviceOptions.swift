import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What both programs can be told.
package struct DeviceOptions: Sendable {
    /// Nil for the embedded broker.
    package var broker: BrokerAddress?
    package var login: Login
    package var certificateAuthorities: String?
    package var certificate: String?
    package var key: String?
    package var isInsecure: Bool
    /// One per device of the fleet.
    package var deviceIDs: [String]
    package var speed: Double
    package var loops: Bool
    package var showsFrames: Bool
    package var servesPage: Bool
    package var reconnects: Bool

    init(_ arguments: Arguments, environment: [String: String]) throws(DeviceFailure) {
        if let url = arguments.text(.broker) {
            broker = try BrokerAddress(url, for: arguments.device)
        }
        login = try Login(arguments, broker: broker, environment: environment)
        certificateAuthorities = arguments.text(.ca)
        certificate = arguments.text(.cert)
        key = arguments.text(.key)
        isInsecure = arguments.has(.insecure)
        try Self.checkTLS(arguments, broker)
        let fleet = try arguments.integer(.fleet, in: 1...1000) ?? 1
        deviceIDs = try Self.deviceIDs(arguments, count: fleet)
        speed = try arguments.number(.speed, in: 0.001...1_000_000) ?? 1
        loops = arguments.has(.loop)
        showsFrames = arguments.has(.frames)
        servesPage = !arguments.has(.noPage)
        reconnects = !arguments.has(.noReconnect)
    }

    private static func checkTLS(_ arguments: Arguments, _ broker: BrokerAddress?) throws(DeviceFailure) {
        guard arguments.has(.cert) == arguments.has(.key) else {
            throw .usage("--cert and --key belong together")
        }
        let options: [OptionDeclaration] = [.ca, .cert, .key, .insecure]
        if let option = options.first(where: arguments.has), broker?.isEncrypted != true {
            let schemes = arguments.device.schemes.filter { $0.hasSuffix("s") && $0 != "ws" }
            throw .usage(
                "\(option.name) needs a --broker with \(schemes.map { $0 + "://" }.joined(separator: " or "))")
        }
        for option in options where option.value != nil {
            if let path = arguments.text(option), access(path, R_OK) != 0 {
                throw DeviceFailure(.noInput, "\(option.name): cannot read \(path.printable): \(systemMessage(errno))")
            }
        }
    }

    private static func deviceIDs(_ arguments: Arguments, count: Int) throws(DeviceFailure) -> [String] {
        guard let id = arguments.text(.deviceID) else {
            return (0..<count).map { _ in UUID().uuidString }
        }
        // The id becomes one level of a topic and one part of a destination, so what separates those and what
        // stands for "any" in them cannot be in it; nor can what the MQTT client replaces by random digits.
        let forbidden = arguments.device == .motions ? "/+#%" : "/*>"
        let isPlain = id.unicodeScalars.allSatisfy { $0.value > 0x20 && !(0x7F...0x9F).contains($0.value) }
        guard id.utf8.count <= 200, isPlain, !id.utf8.contains(where: forbidden.utf8.contains) else {
            throw arguments.malformed(
                .deviceID, id,
                "at most 200 bytes without blanks, control characters and \(forbidden.map(String.init).joined(separator: " "))"
            )
        }
        return count == 1 ? [id] : (1...count).map { "\(id)-\($0)" }
    }
}
