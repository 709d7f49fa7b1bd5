import Wire

/// The properties of a packet of MQTT 5.0 in their order on the wire.
///
/// A collection of ``MQTTProperty``. All 27 have a typed accessor and a factory for literals; user properties keep their
/// order and may repeat.
///
///     var properties: MQTTProperties = [.contentType("text/plain"), .userProperty("room", "kitchen")]
///     properties.messageExpiryInterval = 60
public struct MQTTProperties: Sendable, Hashable {
    /// The properties in order.
    public private(set) var list: [MQTTProperty]

    public init(_ list: [MQTTProperty] = []) {
        self.list = list
    }

    /// Adds a property at the end.
    public mutating func append(_ property: MQTTProperty) {
        list.append(property)
    }

    /// Removes every property with this identifier.
    public mutating func removeAll(_ identifier: MQTTPropertyIdentifier) {
        list.removeAll { $0.identifier == identifier }
    }

    /// The value of the first property with this identifier; setting it replaces that one or adds it at the end.
    public subscript(_ identifier: MQTTPropertyIdentifier) -> MQTTProperty.Value? {
        get { list.first { $0.identifier == identifier }?.value }
        set {
            guard let newValue else { return removeAll(identifier) }
            let property = MQTTProperty(identifier, newValue)
            if let index = list.firstIndex(where: { $0.identifier == identifier }) {
                list[index] = property
            } else {
                list.append(property)
            }
        }
    }
}

extension MQTTProperties: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { list.count }
    public var isEmpty: Bool { list.isEmpty }
    public subscript(position: Int) -> MQTTProperty { list[position] }
}

extension MQTTProperties: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: MQTTProperty...) {
        self.init(elements)
    }
}

extension MQTTProperties {
    /// The value of the first user property with this name, compared byte by byte.
    public func userProperty(_ name: String) -> String? {
        for property in list {
            if case .pair(let pair) = property.value, pair.name.hasSameBytes(as: name) { return pair.value }
        }
        return nil
    }

    /// All user properties in order; setting them puts them at the end.
    public var userProperties: [MQTTUserProperty] {
        get {
            list.compactMap { if case .pair(let pair) = $0.value { pair } else { nil } }
        }
        set {
            removeAll(.userProperty)
            list.append(contentsOf: newValue.map { MQTTProperty(.userProperty, .pair($0)) })
        }
    }

    /// All subscription identifiers in order; a PUBLISH carries one for each subscription it matches [MQTT-3.3.4-3].
    public var subscriptionIdentifiers: [UInt32] {
        get {
            list.compactMap {
                if $0.identifier == .subscriptionIdentifier, case .integer(let value) = $0.value { value } else { nil }
            }
        }
        set {
            removeAll(.subscriptionIdentifier)
            list.append(contentsOf: newValue.map { MQTTProperty(.subscriptionIdentifier, .integer($0)) })
        }
    }
}
