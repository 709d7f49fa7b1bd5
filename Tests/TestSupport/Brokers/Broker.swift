public import Testing

/// The real brokers and tools that tests run against.
public enum Broker: String, Sendable, CaseIterable {
    case mosquitto = "Mosquitto"
    case rabbitMQ = "RabbitMQ"
    case activeMQ = "ActiveMQ"

    /// `REQUIRE_BROKERS=1`: what is not installed makes its tests fail instead of disabling them.
    public static let areRequired = Campaign.environment("REQUIRE_BROKERS") == "1"

    /// Whether everything is there to start it.
    public var isInstalled: Bool { missing == nil }

    /// What is missing and how to install it on Debian; nil when nothing is.
    public var missing: String? {
        switch self {
        case .mosquitto:
            Command.path(of: "mosquitto") == nil || Command.path(of: "mosquitto_passwd") == nil
                ? "Mosquitto is not installed (apt-get install mosquitto mosquitto-clients)" : nil
        case .rabbitMQ:
            Command.path(of: RabbitMQ.program) == nil
                ? "RabbitMQ is not installed (apt-get install rabbitmq-server)" : nil
        case .activeMQ:
            Command.path(of: "java") == nil || !ActiveMQ.isUnpacked
                ? "ActiveMQ is not installed (apt-get install activemq libmqtt-client-java)" : nil
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

    /// The same for programs, as `.requires(program: "mosquitto_sub", "nc")`.
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
