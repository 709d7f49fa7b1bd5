extension MQTTPacket.Connack {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        let flags = try cursor.uint8(body, "the acknowledge flags")
        // 3.1 calls the whole byte unused.
        if version != .v3_1, flags > 1 { throw .malformed("reserved acknowledge flags are set", "MQTT 3.2.2.1") }
        let code = try cursor.uint8(body, "the reason code")
        let reason =
            version.hasProperties
            ? try MQTTReasonCode(code, in: .connack, from: .server) : MQTTReasonCode(connectReturnCode: code)
        guard let reason else { throw .malformed("the connect return code \(code) is reserved", "MQTT 3.2.2.3") }
        sessionPresent = version != .v3_1 && flags == 1
        reasonCode = reason
        if sessionPresent, reason != .success {
            throw .protocolError("a session present in a refusal", version == .v5_0 ? "MQTT-3.2.2-6" : "MQTT-3.2.2-4")
        }
        properties = try cursor.properties(body, of: .connack, version: version)
        try cursor.finish()
    }
}

extension MQTTPacket.Disconnect {
    /// Nothing at all means a normal disconnection, and the properties may be left out [3.14.2.1].
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        self.init()
        guard version.hasProperties else {
            try cursor.finish()
            return
        }
        if !cursor.isAtEnd {
            reasonCode = try MQTTReasonCode(try cursor.uint8(body, "the reason code"), in: .disconnect, from: sender)
        }
        if !cursor.isAtEnd { properties = try cursor.properties(body, of: .disconnect, version: version) }
        try cursor.finish()
        if sender == .server, properties.sessionExpiryInterval != nil {
            throw .protocolError("a session expiry interval in a server's DISCONNECT", "MQTT-3.14.2-2")
        }
    }
}

extension MQTTPacket.Auth {
    /// Nothing at all means success [3.15.2.1], which only servers send.
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        guard version.hasProperties else { throw .malformed("AUTH in MQTT \(version)", "MQTT 2.2.1") }
        var cursor = ByteCursor(0..<body.byteCount)
        self.init()
        let code = cursor.isAtEnd ? 0 : try cursor.uint8(body, "the reason code")
        reasonCode = try MQTTReasonCode(code, in: .auth, from: sender)
        if !cursor.isAtEnd { properties = try cursor.properties(body, of: .auth, version: version) }
        try cursor.finish()
    }
}
