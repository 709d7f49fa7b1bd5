import MessagingWire

extension MQTTPacket {
    /// CONNECT: a client asks for a session.
    public struct Connect: Sendable, Hashable {
        public var version: MQTTVersion
        public var clientID: String
        /// Clean Start in 5.0, Clean Session before.
        public var cleanStart: Bool
        /// In seconds; 0 turns it off.
        public var keepAlive: UInt16
        public var userName: String?
        /// Without a user name in 5.0 only [MQTT-3.1.2-22, 3.1.1].
        public var password: [UInt8]?
        public var will: MQTTWill?
        public var properties: MQTTProperties

        public init(
            version: MQTTVersion = .v5_0, clientID: String, cleanStart: Bool = true, keepAlive: UInt16 = 60,
            userName: String? = nil, password: [UInt8]? = nil, will: MQTTWill? = nil, properties: MQTTProperties = []
        ) {
            self.version = version
            self.clientID = clientID
            self.cleanStart = cleanStart
            self.keepAlive = keepAlive
            self.userName = userName
            self.password = password
            self.will = will
            self.properties = properties
        }
    }
}

extension MQTTPacket.Connect {
    /// Decodes the body of a CONNECT, which names its version itself.
    ///
    /// Bridges of some brokers set the highest bit of the protocol level to ask for rules of their own. A server
    /// answers such a level like any unknown one, and the bridge tries again without the bit. A bridge that was
    /// accepted with it would rely on not receiving its own messages, and would send them in circles.
    init(decoding body: RawSpan) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        version = try Self.version(&cursor, body)
        let flags = ConnectFlags(rawValue: try cursor.uint8(body, "the connect flags"))
        try flags.validate(version)
        keepAlive = try cursor.uint16(body, "the keep alive")
        properties = try cursor.properties(body, of: .connect, version: version)
        if properties.authenticationData != nil, properties.authenticationMethod == nil {
            throw .protocolError("CONNECT has authentication data without a method.", "MQTT 3.1.2.11.10")
        }
        cleanStart = flags.contains(.cleanStart)
        clientID = try cursor.string(body, "the client identifier")
        if clientID.isEmpty, version == .v3_1 || (version == .v3_1_1 && !cleanStart) {
            throw MQTTProtocolError(
                .clientIdentifierNotValid, "CONNECT has an empty client identifier without Clean Session.",
                clause: "MQTT-3.1.3-8")
        }
        will = try flags.contains(.will) ? Self.will(&cursor, flags, body, version) : nil
        // 3.1 allows for the user name and password to be missing although their flags are set.
        let mayBeMissing = version == .v3_1
        userName = nil
        password = nil
        if flags.contains(.userName), !(mayBeMissing && cursor.isAtEnd) {
            userName = try cursor.string(body, "the user name")
        }
        if flags.contains(.password), !(mayBeMissing && cursor.isAtEnd) {
            password = try body.bytes(in: cursor.binary(body, "the password"))
        }
        try cursor.finish()
    }

    private static func will(
        _ cursor: inout ByteCursor, _ flags: ConnectFlags, _ body: RawSpan, _ version: MQTTVersion
    ) throws(MQTTProtocolError) -> MQTTWill {
        let properties = try cursor.properties(body, of: .will, version: version)
        let topic = try cursor.binary(body, "the will topic")
        try MQTTTopicName.validate(body, topic)
        let payload = try body.bytes(in: cursor.binary(body, "the will payload"))
        return MQTTWill(
            payload, to: String(checked: body, topic), qos: QoS(rawValue: flags.willQoS) ?? .exactlyOnce,
            retain: flags.contains(.willRetain), properties: properties)
    }

    private static func version(_ cursor: inout ByteCursor, _ body: RawSpan) throws(MQTTProtocolError) -> MQTTVersion {
        let name = try cursor.string(body, "the protocol name")
        let level = try cursor.uint8(body, "the protocol level")
        guard let version = MQTTVersion(rawValue: level), name.hasSameBytes(as: version.protocolName) else {
            throw MQTTProtocolError(
                .unsupportedProtocolVersion, "The protocol \"\(name.firstScalars(20))\" at level \(level) is unknown.",
                clause: "MQTT-3.1.2-2")
        }
        return version
    }
}

/// The connect flags, section 3.1.2.3.
struct ConnectFlags: OptionSet {
    let rawValue: UInt8

    static let reserved = ConnectFlags(rawValue: 0x01)
    static let cleanStart = ConnectFlags(rawValue: 0x02)
    static let will = ConnectFlags(rawValue: 0x04)
    static let willRetain = ConnectFlags(rawValue: 0x20)
    static let password = ConnectFlags(rawValue: 0x40)
    static let userName = ConnectFlags(rawValue: 0x80)

    /// The two bits of the will's QoS.
    var willQoS: UInt8 { rawValue >> 3 & 0b11 }

    /// 3.1 calls the reserved bit, and the will's bits without a will, unused.
    func validate(_ version: MQTTVersion) throws(MQTTProtocolError) {
        if contains(.will), willQoS == 3 { throw .malformed("The will has QoS 3.", "MQTT-3.1.2-12") }
        if version < .v5_0, contains(.password), !contains(.userName) {
            throw .malformed("CONNECT has a password without a user name.", "MQTT-3.1.2-22")
        }
        if version == .v3_1 { return }
        if contains(.reserved) { throw .malformed("The reserved connect flag is set.", "MQTT-3.1.2-3") }
        if !contains(.will), willQoS != 0 {
            throw .malformed("CONNECT has a will QoS without a will.", "MQTT-3.1.2-11")
        }
        if !contains(.will), contains(.willRetain) {
            throw .malformed("CONNECT has the will retain flag without a will.", "MQTT-3.1.2-13")
        }
    }
}

extension MQTTPacket.Connect {
    func write(to outer: inout PacketBody) throws(MQTTEncodingError) {
        var body = PacketBody(version: version)
        try validate()
        try body.append(version.protocolName, "the protocol name")
        body.append(version.rawValue)
        body.append(flags.rawValue)
        body.append(keepAlive)
        try body.append(properties, of: .connect)
        try body.append(clientID, "the client identifier")
        if let will {
            try body.append(will.properties, of: .will)
            guard MQTTTopicName.isValid(will.topic) else { throw .topicName(will.topic) }
            try body.append(will.topic, "the will topic")
            try body.append(will.payload, "the will payload")
        }
        if let userName { try body.append(userName, "the user name") }
        if let password { try body.append(password, "the password") }
        outer = body
    }

    private func validate() throws(MQTTEncodingError) {
        if password != nil, userName == nil, version < .v5_0 {
            throw .init(
                .contradiction, "MQTT \(version) allows a password only with a user name [MQTT-3.1.2-22]. Set userName."
            )
        }
        if clientID.isEmpty, version == .v3_1 || (version == .v3_1_1 && !cleanStart) {
            throw .init(
                .contradiction,
                "MQTT \(version) needs a client identifier\(version == .v3_1 ? "" : " or a clean session [MQTT-3.1.3-7]"). Set it."
            )
        }
        if properties.authenticationData != nil, properties.authenticationMethod == nil {
            throw .init(.contradiction, "Authentication data needs an authentication method. Set both, or neither.")
        }
    }

    private var flags: ConnectFlags {
        var flags = ConnectFlags(rawValue: (will?.qos.rawValue ?? 0) << 3)
        if cleanStart { flags.insert(.cleanStart) }
        if will != nil { flags.insert(.will) }
        if will?.retain == true { flags.insert(.willRetain) }
        if password != nil { flags.insert(.password) }
        if userName != nil { flags.insert(.userName) }
        return flags
    }
}
