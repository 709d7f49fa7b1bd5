import Wire

extension MQTTPacket.Connect {
    /// Decodes the body of a CONNECT, which names its version itself.
    ///
    /// Bridges of some brokers set the highest bit of the protocol level to ask for rules of their own. That is
    /// answered as any unknown level is: such a bridge then tries again without it, whereas one that is let in would
    /// count on being spared its own messages and send them in circles.
    init(decoding body: RawSpan) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        version = try Self.version(&cursor, body)
        let flags = ConnectFlags(rawValue: try cursor.uint8(body, "the connect flags"))
        try flags.validate(version)
        keepAlive = try cursor.uint16(body, "the keep alive")
        properties = try cursor.properties(body, of: .connect, version: version)
        if properties.authenticationData != nil, properties.authenticationMethod == nil {
            throw .protocolError("authentication data without a method", "MQTT 3.1.2.11.10")
        }
        cleanStart = flags.contains(.cleanStart)
        clientID = try cursor.string(body, "the client identifier")
        if clientID.isEmpty, version == .v3_1 || (version == .v3_1_1 && !cleanStart) {
            throw MQTTProtocolError(
                .clientIdentifierNotValid, "an empty client identifier without clean session",
                clause: "MQTT-3.1.3-8")
        }
        will = try flags.contains(.will) ? MQTTWill(decoding: body, &cursor, flags, version) : nil
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

    private static func version(_ cursor: inout ByteCursor, _ body: RawSpan) throws(MQTTProtocolError) -> MQTTVersion {
        let name = try cursor.string(body, "the protocol name")
        let level = try cursor.uint8(body, "the protocol level")
        guard let version = MQTTVersion(rawValue: level), name.hasSameBytes(as: version.protocolName) else {
            throw MQTTProtocolError(
                .unsupportedProtocolVersion, "protocol \"\(name.prefix(20))\" at level \(level) is not known",
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
        if contains(.will), willQoS == 3 { throw .malformed("a will with QoS 3", "MQTT-3.1.2-12") }
        if version < .v5_0, contains(.password), !contains(.userName) {
            throw .malformed("a password without a user name", "MQTT-3.1.2-22")
        }
        if version == .v3_1 { return }
        if contains(.reserved) { throw .malformed("the reserved connect flag is set", "MQTT-3.1.2-3") }
        if !contains(.will), willQoS != 0 { throw .malformed("a will QoS without a will", "MQTT-3.1.2-11") }
        if !contains(.will), contains(.willRetain) {
            throw .malformed("a will retain flag without a will", "MQTT-3.1.2-13")
        }
    }
}

extension MQTTWill {
    fileprivate init(
        decoding body: RawSpan, _ cursor: inout ByteCursor, _ flags: ConnectFlags, _ version: MQTTVersion
    ) throws(MQTTProtocolError) {
        properties = try cursor.properties(body, of: .will, version: version)
        let topic = try cursor.binary(body, "the will topic")
        try MQTTTopicName.validate(body, topic)
        self.topic = String(checked: body, topic)
        payload = try body.bytes(in: cursor.binary(body, "the will payload"))
        qos = QoS(rawValue: flags.willQoS) ?? .exactlyOnce
        retain = flags.contains(.willRetain)
    }
}
