extension MQTTPacket {

    /// CONNACK: the server's answer.
    public struct Connack: Sendable, Hashable {
        /// False in 3.1, which has no such flag.
        public var sessionPresent: Bool
        /// The return codes of 3.1 and 3.1.1 appear as the equivalent reason codes. A code of a server that they do not
        /// define is a refusal, and keeps its number.
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(
            sessionPresent: Bool = false, reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []
        ) {
            self.sessionPresent = sessionPresent
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }

    /// DISCONNECT: the last packet; in 3.1 and 3.1.1 it is empty, and only clients may send it.
    public struct Disconnect: Sendable, Hashable {
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(reasonCode: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) {
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }

    /// AUTH: a step of enhanced authentication; 5.0 only.
    public struct Auth: Sendable, Hashable {
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []) {
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }
}

extension MQTTPacket.Connack {
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        let flags = try cursor.uint8(body, "the acknowledge flags")
        let code = try cursor.uint8(body, "the reason code")
        // Whatever else is in a server's refusal, the connection ends, and the code says why.
        let isRefusal = sender == .server && code != 0
        // 3.1 calls the whole byte unused.
        if version != .v3_1, flags > 1, !isRefusal {
            throw .malformed("Reserved flags of CONNACK are set.", "MQTT 3.2.2.1")
        }
        // A server older than 5.0 refuses a CONNECT of 5.0 in its own version, which has no properties [MQTT-3.1.2-2].
        let isOlder = isRefusal && code == 1 && cursor.isAtEnd
        var reason =
            version.hasProperties && !isOlder
            ? try MQTTReasonCode(code, in: .connack, from: .server) : MQTTReasonCode(connectReturnCode: code)
        // 3.1 and 3.1.1 reserve the other codes. Servers that speak 5.0 too send its codes, and some have their own.
        if reason == nil, isRefusal { reason = MQTTReasonCode(rawValue: code) }
        guard let reason else { throw .malformed("The connect return code \(code) is reserved.", "MQTT 3.2.2.3") }
        sessionPresent = version != .v3_1 && flags == 1 && !isRefusal
        reasonCode = reason
        if sessionPresent, reason != .success {
            throw .protocolError(
                "CONNACK refuses the connection and has Session Present set.",
                version == .v5_0 ? "MQTT-3.2.2-6" : "MQTT-3.2.2-4")
        }
        properties = []
        if isRefusal, cursor.isAtEnd { return }
        properties = try cursor.properties(body, of: .connack, version: version, from: sender)
        try cursor.finish()
    }
}

extension MQTTPacket.Disconnect {
    /// Nothing at all means a normal disconnection, and the properties may be left out [3.14.2.1].
    ///
    /// Before 5.0 a server sends no DISCONNECT; if one does, with a code of 5.0 or without, the connection ends anyway.
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        self.init()
        guard version.hasProperties else {
            if sender != .server {
                try cursor.finish()
            } else if !cursor.isAtEnd {
                reasonCode = MQTTReasonCode(rawValue: try cursor.uint8(body, "the reason code"))
            }
            return
        }
        if !cursor.isAtEnd {
            reasonCode = try MQTTReasonCode(try cursor.uint8(body, "the reason code"), in: .disconnect, from: sender)
        }
        if !cursor.isAtEnd { properties = try cursor.properties(body, of: .disconnect, version: version) }
        try cursor.finish()
        if sender == .server, properties.sessionExpiryInterval != nil {
            throw .protocolError("DISCONNECT of a server has a session expiry interval.", "MQTT-3.14.2-2")
        }
    }
}

extension MQTTPacket.Auth {
    /// Nothing at all means success [3.15.2.1], which only servers send.
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        guard version.hasProperties else { throw .malformed("MQTT \(version) has no AUTH.", "MQTT 2.2.1") }
        var cursor = ByteCursor(0..<body.byteCount)
        self.init()
        let code = cursor.isAtEnd ? 0 : try cursor.uint8(body, "the reason code")
        reasonCode = try MQTTReasonCode(code, in: .auth, from: sender)
        if !cursor.isAtEnd { properties = try cursor.properties(body, of: .auth, version: version) }
        try cursor.finish()
    }
}

extension MQTTPacket.Connack {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if sessionPresent, reasonCode != .success {
            throw .init(.contradiction, "A refusal must not have Session Present set [MQTT-3.2.2-6]. Turn it off.")
        }
        body.append(sessionPresent && body.version != .v3_1 ? UInt8(1) : 0)
        let code = body.version.hasProperties ? reasonCode.rawValue : reasonCode.connectReturnCode
        guard let code else {
            throw .init(
                .notInThisVersion,
                "MQTT \(body.version) has no connect return code for \(reasonCode). Close without CONNACK.")
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
                throw .init(.notInThisVersion, "MQTT \(body.version) has no reason codes in DISCONNECT. Leave it out.")
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
            throw .init(.notInThisVersion, "MQTT \(body.version) has no AUTH. Connect with 5.0.")
        }
        try reasonCode.checkSent(in: .auth)
        try body.append(reasonCode, properties, of: .auth)
    }
}
