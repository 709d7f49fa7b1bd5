import MessagingWire

// Authentication Data, and user properties whose names say that they are secret.

extension MQTTProperty {
    /// Whether the value may let others in, and is not shown.
    package var isSecret: Bool {
        if case .pair(let pair) = value { return SecretNames.isSecret(pair.name) }
        return identifier == .authenticationData
    }

    /// The property with a mask in place of a secret value.
    func masked(by mask: String) -> MQTTProperty {
        guard isSecret else { return self }
        if case .pair(let pair) = value { return .userProperty(pair.name, mask) }
        return .authenticationData(Array(mask.utf8))
    }
}

extension MQTTProperties {
    /// Whether any value may let others in.
    package var hasSecrets: Bool { contains { $0.isSecret } }

    /// The properties with a mask in place of each secret value.
    package func masked(by mask: String) -> MQTTProperties {
        hasSecrets ? MQTTProperties(map { $0.masked(by: mask) }) : self
    }

    /// Where the secret values are in bytes that contain the properties; wherever they could be.
    package func secrets(in bytes: [UInt8]) -> [Range<Int>] {
        filter { $0.isSecret }.flatMap { property in
            let encoded = MQTTProperties([property]).encoded
            let valueCount: Int
            switch property.value {
            case .pair(let pair): valueCount = pair.value.utf8.count
            case .binary(let data): valueCount = data.count
            default: valueCount = 0
            }
            return bytes.indices.filter { bytes[$0...].starts(with: encoded) }
                .map { $0 + encoded.count - valueCount..<$0 + encoded.count }
        }
    }
}

extension MQTTPacket {
    /// The properties of the packet; those of a will are apart.
    package var properties: MQTTProperties {
        get {
            switch self {
            case .connect(let packet): packet.properties
            case .connack(let packet): packet.properties
            case .publish(let packet): packet.properties
            case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet): packet.properties
            case .subscribe(let packet): packet.properties
            case .suback(let packet): packet.properties
            case .unsubscribe(let packet): packet.properties
            case .unsuback(let packet): packet.properties
            case .pingreq, .pingresp: []
            case .disconnect(let packet): packet.properties
            case .auth(let packet): packet.properties
            }
        }
        set {
            switch self {
            case .connect(var packet):
                packet.properties = newValue
                self = .connect(packet)
            case .connack(var packet):
                packet.properties = newValue
                self = .connack(packet)
            case .publish(var packet):
                packet.properties = newValue
                self = .publish(packet)
            case .puback(var packet):
                packet.properties = newValue
                self = .puback(packet)
            case .pubrec(var packet):
                packet.properties = newValue
                self = .pubrec(packet)
            case .pubrel(var packet):
                packet.properties = newValue
                self = .pubrel(packet)
            case .pubcomp(var packet):
                packet.properties = newValue
                self = .pubcomp(packet)
            case .subscribe(var packet):
                packet.properties = newValue
                self = .subscribe(packet)
            case .suback(var packet):
                packet.properties = newValue
                self = .suback(packet)
            case .unsubscribe(var packet):
                packet.properties = newValue
                self = .unsubscribe(packet)
            case .unsuback(var packet):
                packet.properties = newValue
                self = .unsuback(packet)
            case .pingreq, .pingresp: break
            case .disconnect(var packet):
                packet.properties = newValue
                self = .disconnect(packet)
            case .auth(var packet):
                packet.properties = newValue
                self = .auth(packet)
            }
        }
    }
}
