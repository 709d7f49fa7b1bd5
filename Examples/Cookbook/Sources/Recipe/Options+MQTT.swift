public import MQTT

/// The options that `publish` and `subscribe` share.
extension Options {
    /// The value of an option as a quality of service; 0 without the option.
    public func qos(_ name: String) throws -> QoS {
        let number = try number(name, in: 0...2) ?? 0
        return QoS(rawValue: UInt8(number)) ?? .atMostOnce
    }

    /// The configuration that `--id` and the options of the will describe.
    public func mqttConfiguration(clientID: String) throws -> MQTTConfiguration {
        var configuration = MQTTConfiguration(clientID: self["--id"] ?? clientID)
        if let topic = self["--will-topic"] {
            configuration.will = MQTTWill(
                self["--will-payload"] ?? "", to: topic, qos: try qos("--will-qos"), retain: has("--will-retain"))
        }
        return configuration
    }
}
