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
            throw .init(.contradiction, "MQTT \(version) has no password without a user name [MQTT-3.1.2-22]")
        }
        if clientID.isEmpty, version == .v3_1 || (version == .v3_1_1 && !cleanStart) {
            throw .init(
                .contradiction,
                "MQTT \(version) needs a client identifier\(version == .v3_1 ? "" : " or a clean session [MQTT-3.1.3-7]")"
            )
        }
        if properties.authenticationData != nil, properties.authenticationMethod == nil {
            throw .init(.contradiction, "authentication data without an authentication method")
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

extension MQTTPacket.Connack {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if sessionPresent, reasonCode != .success {
            throw .init(.contradiction, "a session present in a refusal [MQTT-3.2.2-6]")
        }
        body.append(sessionPresent && body.version != .v3_1 ? UInt8(1) : 0)
        let code = body.version.hasProperties ? reasonCode.rawValue : reasonCode.connectReturnCode
        guard let code else {
            throw .init(
                .notInThisVersion,
                "MQTT \(body.version) has no connect return code for \(reasonCode); close without a CONNACK")
        }
        if body.version.hasProperties { try reasonCode.checkSent(in: .connack) }
        body.append(code)
        try body.append(properties, of: .connack)
    }
}

extension MQTTPacket.Disconnect {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        guard body.version.hasProperties else {
            guard reasonCode == .normalDisconnection else {
                throw .init(.notInThisVersion, "MQTT \(body.version) has no reason codes in DISCONNECT")
            }
            return try body.append(properties, of: .disconnect)
        }
        try reasonCode.checkSent(in: .disconnect)
        try body.append(reasonCode, properties, of: .disconnect)
    }
}

extension MQTTPacket.Auth {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        guard body.version.hasProperties else {
            throw .init(.notInThisVersion, "MQTT \(body.version) has no AUTH")
        }
        try reasonCode.checkSent(in: .auth)
        try body.append(reasonCode, properties, of: .auth)
    }
}

extension MQTTPacket.Acknowledgement {
    func write(to body: inout PacketBody, _ type: MQTTPacketType) throws(MQTTEncodingError) {
        try body.append(packetID: packetID)
        guard body.version.hasProperties else {
            guard reasonCode == .success else {
                throw .init(.notInThisVersion, "MQTT \(body.version) has no reason codes in \(type)")
            }
            return try body.append(properties, of: .init(type))
        }
        try reasonCode.checkSent(in: type)
        try body.append(reasonCode, properties, of: .init(type))
    }
}

extension MQTTReasonCode {
    /// Throws unless one of the two sides may send this code in a packet of this type, of MQTT 5.0.
    func checkSent(in type: MQTTPacketType) throws(MQTTEncodingError) {
        guard !isAllowed(in: type) else { return }
        throw .init(.invalidReason, "\(type) has no reason code \(self)")
    }
}

extension PacketBody {
    /// A reason code and properties in their shortest form: neither, the code alone, or both.
    fileprivate mutating func append(
        _ reasonCode: MQTTReasonCode, _ properties: MQTTProperties, of carrier: MQTTPropertyRule.Carriers
    ) throws(MQTTEncodingError) {
        if properties.isEmpty, reasonCode == .success { return }
        append(reasonCode.rawValue)
        if !properties.isEmpty { try append(properties, of: carrier) }
    }
}
