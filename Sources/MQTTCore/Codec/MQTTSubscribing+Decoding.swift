import Wire

extension MQTTPacket.Subscribe {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .subscribe, version: version)
        subscriptions = []
        while !cursor.isAtEnd {
            let filter = try cursor.filter(body, version)
            let options = try cursor.uint8(body, "the subscription options")
            subscriptions.append(try MQTTSubscriptionRequest(filter, options: options, version))
        }
        if subscriptions.isEmpty {
            throw .protocolError("SUBSCRIBE without a filter", version == .v5_0 ? "MQTT-3.8.3-2" : "MQTT-3.8.3-3")
        }
    }
}

extension MQTTPacket.Unsubscribe {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.unsubscribe), version: version)
        filters = []
        while !cursor.isAtEnd { filters.append(try cursor.filter(body, version)) }
        if filters.isEmpty { throw .protocolError("UNSUBSCRIBE without a filter", "MQTT-3.10.3-2") }
    }
}

extension MQTTPacket.Suback {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.suback), version: version)
        reasonCodes = try cursor.reasonCodes(body, of: .suback, version)
        if reasonCodes.isEmpty { throw .protocolError("SUBACK without a code", "MQTT-3.9.3-1") }
    }
}

extension MQTTPacket.Unsuback {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.unsuback), version: version)
        reasonCodes = []
        guard version.hasProperties else {
            try cursor.finish()
            return
        }
        reasonCodes = try cursor.reasonCodes(body, of: .unsuback, version)
        if reasonCodes.isEmpty { throw .protocolError("UNSUBACK without a code", "MQTT-3.11.3-1") }
    }
}

extension ByteCursor {
    fileprivate mutating func filter(_ bytes: RawSpan, _ version: MQTTVersion) throws(MQTTProtocolError) -> String {
        let range = try binary(bytes, "the topic filter")
        try MQTTTopicFilter.validate(bytes, range, version: version)
        return String(checked: bytes, range)
    }

    /// The codes up to the end of the packet, one for each topic filter.
    fileprivate mutating func reasonCodes(
        _ bytes: RawSpan, of type: MQTTPacketType, _ version: MQTTVersion
    ) throws(MQTTProtocolError) -> [MQTTReasonCode] {
        var codes: [MQTTReasonCode] = []
        codes.reserveCapacity(remaining)
        while !isAtEnd {
            let code = try uint8(bytes, "a reason code")
            if version.hasProperties {
                codes.append(try MQTTReasonCode(code, in: type, from: .server))
            } else if code <= 2 || code == MQTTReasonCode.unspecifiedError.rawValue {
                codes.append(MQTTReasonCode(rawValue: code))
            } else {
                throw .malformed("the return code \(code) in SUBACK is reserved", "MQTT-3.9.3-2")
            }
        }
        return codes
    }
}

extension MQTTSubscriptionRequest {
    /// The options of section 3.8.3.1; before 5.0 only the QoS, and 3.1 calls the other bits unused.
    fileprivate init(_ filter: String, options: UInt8, _ version: MQTTVersion) throws(MQTTProtocolError) {
        guard let qos = QoS(rawValue: options & 0b11) else {
            throw .malformed("a subscription with QoS 3", version == .v5_0 ? "MQTT 3.8.3.1" : "MQTT-3.8.3-4")
        }
        self.init(filter: filter, qos: qos)
        if version == .v3_1 { return }
        if options & (version == .v5_0 ? 0xC0 : 0xFC) != 0 {
            throw .malformed(
                "reserved subscription options are set", version == .v5_0 ? "MQTT-3.8.3-5" : "MQTT-3.8.3-4")
        }
        guard let handling = RetainHandling(rawValue: options >> 4 & 0b11) else {
            throw .protocolError("retain handling 3", "MQTT 3.8.3.1")
        }
        noLocal = options & 0b0100 != 0
        retainAsPublished = options & 0b1000 != 0
        retainHandling = handling
        if noLocal, MQTTTopicFilter.shared(filter) != nil {
            throw .protocolError("no local on a shared subscription", "MQTT-3.8.3-4")
        }
    }

    /// The byte behind the filter.
    var options: UInt8 {
        qos.rawValue | (noLocal ? 0b0100 : 0) | (retainAsPublished ? 0b1000 : 0) | retainHandling.rawValue << 4
    }
}
