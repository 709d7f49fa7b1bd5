import Foundation
public import Testing

/// The real brokers and tools that tests run against.
public enum Broker: String, Sendable, CaseIterable {
    case mosquitto = "Mosquitto"
    case rabbitMQ = "RabbitMQ"
    case activeMQ = "ActiveMQ"
    /// Its MQTT is a library of a package of its own.
    case activeMQWithMQTT = "ActiveMQ with MQTT"

    /// `REQUIRE_BROKERS=1`: what is not installed makes its tests fail instead of disabling them.
    public static let areRequired = Campaign.environment("REQUIRE_BROKERS") == "1"

    /// Whether everything is there to start it.
    public var isInstalled: Bool { missing == nil }

    /// Whether tests run with it: where it is not installed they are disabled, or fail if it is required.
    public var isUsable: Bool { isInstalled || Self.areRequired }

    /// What is missing and how to install it on Debian; nil when nothing is.
    public var missing: String? {
        missing { $0.hasSuffix(".jar") ? Self.isLibrary($0) : Command.path(of: $0) != nil }
    }

    /// Whether the file has content: one that is hidden by a mount of `/dev/null` can be read and is empty.
    private static func isLibrary(_ path: String) -> Bool {
        (try? FileHandle(forReadingAtPath: path)?.read(upToCount: 1))?.isEmpty == false
    }

    /// The same where `isThere` decides what is installed.
    public func missing(_ isThere: (String) -> Bool) -> String? {
        let absent = needs.filter { !isThere($0) }
        guard !absent.isEmpty else { return nil }
        return "\(rawValue) is not installed, without \(absent.joined(separator: ", ")) (apt-get install \(packages))"
    }

    /// Every program and library that the support for its tests starts or reads. A test that uses another program, as
    /// Mosquitto's clients, names it by `.requires(program:)`.
    public var needs: [String] {
        switch self {
        case .mosquitto: ["mosquitto", "mosquitto_passwd"]
        case .rabbitMQ: [RabbitMQ.program, "erl", "epmd"]
        case .activeMQ: ["java", "keytool", ActiveMQ.program]
        case .activeMQWithMQTT: Self.activeMQ.needs + [ActiveMQ.mqttLibrary]
        }
    }

    private var packages: String {
        switch self {
        case .mosquitto: "mosquitto mosquitto-clients"
        case .rabbitMQ: "rabbitmq-server"
        case .activeMQ: "activemq"
        case .activeMQWithMQTT: "activemq libmqtt-client-java"
        }
    }

    /// Throws when the broker cannot be started here.
    func requireInstalled() throws {
        if let missing { throw MissingRequirement(description: missing) }
    }
}

/// Something that a test needs is not installed.
public struct MissingRequirement: Error, CustomStringConvertible, Sendable {
    public let description: String
}

extension Trait where Self == ConditionTrait {
    /// Disables a test or suite, with the reason, where a broker is not installed. Under `REQUIRE_BROKERS=1` the test
    /// runs all the same and fails when it starts the broker.
    public static func requires(_ brokers: Broker...) -> ConditionTrait {
        requires(missing: brokers.compactMap(\.missing))
    }

    /// The same where a test uses one of these at a time: it is disabled if none is installed, and its arguments are those
    /// that are usable.
    public static func requires(anyOf brokers: Broker...) -> ConditionTrait {
        requires(missing: brokers.contains(where: \.isInstalled) ? [] : brokers.compactMap(\.missing))
    }

    /// The same for programs, as `.requires(program: "mosquitto_sub", "mosquitto_pub")`.
    public static func requires(program programs: String...) -> ConditionTrait {
        requires(missing: programs.filter { Command.path(of: $0) == nil }.map { "\($0) is not installed" })
    }

    /// The same for the Python environment with stomp.py, paho-mqtt and websockets.
    public static var requiresPythonClients: ConditionTrait {
        requires(missing: [PythonClients.missing].compactMap(\.self))
    }

    private static func requires(missing: [String]) -> ConditionTrait {
        .enabled(
            if: missing.isEmpty || Broker.areRequired, Comment(rawValue: missing.joined(separator: "; ")))
    }
}
