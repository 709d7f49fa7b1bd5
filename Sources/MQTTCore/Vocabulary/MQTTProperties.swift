import MessagingWire

/// The properties of a packet of MQTT 5.0 in their order on the wire.
///
/// A collection of ``MQTTProperty``, held as the bytes that packets carry and decoded when it is read. All 27 properties
/// have a typed accessor and a factory for literals; user properties keep their order and may repeat.
///
///     var properties: MQTTProperties = [.contentType("text/plain"), .userProperty("room", "kitchen")]
///     properties.messageExpiryInterval = 60
public struct MQTTProperties: Sendable, Hashable {
    /// The properties one after the other, without their length; see `MQTTProperties+Coding.swift`.
    @usableFromInline var encoded: [UInt8]
    /// The bytes that they have in a packet, without those of their length.
    package var byteCount: Int { encoded.count }
    /// What is known of them, so that a list that is sent again and again is examined once.
    @usableFromInline var traits: Traits

    /// No properties.
    @inlinable
    public init() {
        encoded = []
        traits = Traits(rawValue: 0)
    }

    /// The properties in this order.
    public init(_ list: [MQTTProperty]) {
        self.init()
        for property in list { append(property) }
    }

    /// The properties in order.
    public var list: [MQTTProperty] { Array(self) }

    /// Adds a property at the end.
    public mutating func append(_ property: MQTTProperty) {
        let start = encoded.count
        Self.append(property, to: &encoded)
        traits.add(field(at: start).identifier, isInvalid: field(at: start).isInvalid)
    }

    /// Removes every property with this identifier.
    public mutating func removeAll(_ identifier: MQTTPropertyIdentifier) {
        var offset = 0
        while offset < encoded.count {
            let found = field(at: offset)
            if found.identifier == identifier { encoded.removeSubrange(offset..<found.end) } else { offset = found.end }
        }
        findTraits()
    }

    /// The value of the first property with this identifier; setting it replaces that one or adds it at the end.
    public subscript(_ identifier: MQTTPropertyIdentifier) -> MQTTProperty.Value? {
        get { first(identifier).map { value(of: $0) } }
        set {
            guard let newValue else { return removeAll(identifier) }
            let property = MQTTProperty(identifier, newValue)
            guard let found = first(identifier) else { return append(property) }
            var bytes: [UInt8] = []
            Self.append(property, to: &bytes)
            encoded.replaceSubrange(found.start..<found.end, with: bytes)
            findTraits()
        }
    }

    /// Whether there is a property with this identifier.
    public func contains(_ identifier: MQTTPropertyIdentifier) -> Bool { first(identifier) != nil }

    private func first(_ identifier: MQTTPropertyIdentifier) -> Field? {
        guard traits.contains(.init(identifier)) else { return nil }
        var offset = 0
        while offset < encoded.count {
            let found = field(at: offset)
            if found.identifier == identifier { return found }
            offset = found.end
        }
        return nil
    }
}

extension MQTTProperties: Collection {
    /// The position of a property. Each is found from the one before it.
    public struct Index: Sendable, Hashable, Comparable {
        let offset: Int

        /// Whether `left` comes before `right`.
        public static func < (left: Index, right: Index) -> Bool { left.offset < right.offset }
    }

    /// The position of the first property.
    public var startIndex: Index { Index(offset: 0) }
    /// The position behind the last property.
    public var endIndex: Index { Index(offset: encoded.count) }
    /// Whether there are no properties.
    public var isEmpty: Bool { encoded.isEmpty }
    /// The position of the next property.
    public func index(after index: Index) -> Index { Index(offset: field(at: index.offset).end) }

    /// The property at a position, decoded.
    public subscript(position: Index) -> MQTTProperty {
        let found = field(at: position.offset)
        return MQTTProperty(found.identifier, value(of: found))
    }
}

extension MQTTProperties: ExpressibleByArrayLiteral {
    /// The properties of a literal, in this order.
    public init(arrayLiteral elements: MQTTProperty...) {
        self.init(elements)
    }
}

extension MQTTProperties {
    /// The value of the first user property with this name, compared byte by byte.
    public func userProperty(_ name: String) -> String? {
        for index in indices where field(at: index.offset).identifier == .userProperty {
            if case .pair(let pair) = self[index].value, pair.name.hasSameBytes(as: name) { return pair.value }
        }
        return nil
    }

    /// All user properties in order; setting them puts them at the end.
    public var userProperties: [MQTTUserProperty] {
        get {
            compactMap { if case .pair(let pair) = $0.value { pair } else { nil } }
        }
        set {
            removeAll(.userProperty)
            for pair in newValue { append(MQTTProperty(.userProperty, .pair(pair))) }
        }
    }

    /// All subscription identifiers in order; a PUBLISH carries one for each subscription it matches [MQTT-3.3.4-3].
    public var subscriptionIdentifiers: [UInt32] {
        get {
            compactMap {
                if $0.identifier == .subscriptionIdentifier, case .integer(let value) = $0.value { value } else { nil }
            }
        }
        set {
            removeAll(.subscriptionIdentifier)
            for value in newValue { append(MQTTProperty(.subscriptionIdentifier, .integer(value))) }
        }
    }
}
