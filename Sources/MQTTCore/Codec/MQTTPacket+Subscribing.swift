import MessagingWire

/// One entry of a SUBSCRIBE packet: a topic filter and how its messages are delivered.
public struct MQTTSubscriptionRequest: Sendable, Hashable {
    /// When a new subscription brings the messages that the server retains.
    public enum RetainHandling: UInt8, Sendable, Hashable, CaseIterable {
        case sendAtSubscribe = 0
        case sendIfNew = 1
        case doNotSend = 2
    }

    /// The topic filter, with `$share/name/` in front if the subscription is shared.
    public var filter: String
    /// The highest QoS that messages are delivered with. Default: 1.
    public var qos: QoS
    /// Messages that this connection published do not come back; 5.0 only, never with a shared one [MQTT-3.8.3-4].
    public var noLocal: Bool
    /// Messages keep the RETAIN flag that they were published with; 5.0 only.
    public var retainAsPublished: Bool
    /// 5.0 only.
    public var retainHandling: RetainHandling

    public init(
        filter: String, qos: QoS = .atLeastOnce, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .sendAtSubscribe
    ) {
        self.filter = filter
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }
}

extension MQTTPacket {
    /// SUBSCRIBE: one filter or more [MQTT-3.8.3-2].
    public struct Subscribe: Sendable, Hashable {
        public var packetID: UInt16
        public var subscriptions: [MQTTSubscriptionRequest]
        public var properties: MQTTProperties

        public init(packetID: UInt16, subscriptions: [MQTTSubscriptionRequest], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.subscriptions = subscriptions
            self.properties = properties
        }
    }

    /// SUBACK: one code for each filter, in their order [MQTT-3.9.3-1].
    public struct Suback: Sendable, Hashable {
        public var packetID: UInt16
        public var reasonCodes: [MQTTReasonCode]
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCodes: [MQTTReasonCode], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCodes = reasonCodes
            self.properties = properties
        }
    }

    /// UNSUBSCRIBE: one filter or more [MQTT-3.10.3-2].
    public struct Unsubscribe: Sendable, Hashable {
        public var packetID: UInt16
        public var filters: [String]
        public var properties: MQTTProperties

        public init(packetID: UInt16, filters: [String], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.filters = filters
            self.properties = properties
        }
    }

    /// UNSUBACK: one code for each filter in 5.0 [MQTT-3.11.3-1], none before.
    public struct Unsuback: Sendable, Hashable {
        public var packetID: UInt16
        public var reasonCodes: [MQTTReasonCode]
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCodes: [MQTTReasonCode] = [], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCodes = reasonCodes
            self.properties = properties
        }
    }
}

extension MQTTPacket.Subscribe {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .subscribe, version: version)
        subscriptions = []
        while !cursor.isAtEnd {
            let filter = try MQTTPacket.filter(&cursor, body, version)
            let options = try cursor.uint8(body, "the subscription options")
            subscriptions.append(try MQTTSubscriptionRequest(filter, options: options, version))
        }
        if subscriptions.isEmpty {
            throw .protocolError("SUBSCRIBE has no topic filter.", version == .v5_0 ? "MQTT-3.8.3-2" : "MQTT-3.8.3-3")
        }
    }
}

extension MQTTPacket.Unsubscribe {
    init(decoding body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.unsubscribe), version: version)
        filters = []
        while !cursor.isAtEnd { filters.append(try MQTTPacket.filter(&cursor, body, version)) }
        if filters.isEmpty { throw .protocolError("UNSUBSCRIBE has no topic filter.", "MQTT-3.10.3-2") }
    }
}

extension MQTTPacket.Suback {
    /// A client knows how many codes there have to be, so that it judges a server's packet without any itself.
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.suback), version: version)
        reasonCodes = try MQTTPacket.reasonCodes(&cursor, body, of: .suback, version, sender)
        if reasonCodes.isEmpty, sender != .server {
            throw .protocolError("SUBACK has no reason code.", "MQTT-3.9.3-1")
        }
    }
}

extension MQTTPacket.Unsuback {
    /// A server's packet confirms the request whatever its codes are: before 5.0 they have no meaning and are ignored, and
    /// in 5.0 none is required.
    init(decoding body: RawSpan, version: MQTTVersion, from sender: MQTTRole?) throws(MQTTProtocolError) {
        var cursor = ByteCursor(0..<body.byteCount)
        packetID = try cursor.packetID(body)
        properties = try cursor.properties(body, of: .init(.unsuback), version: version)
        reasonCodes = []
        guard version.hasProperties else {
            if sender != .server { try cursor.finish() }
            return
        }
        reasonCodes = try MQTTPacket.reasonCodes(&cursor, body, of: .unsuback, version, sender)
        if reasonCodes.isEmpty, sender != .server {
            throw .protocolError("UNSUBACK has no reason code.", "MQTT-3.11.3-1")
        }
    }
}

extension MQTTSubscriptionRequest {
    /// The options of section 3.8.3.1; before 5.0 only the QoS, and 3.1 calls the other bits unused.
    fileprivate init(_ filter: String, options: UInt8, _ version: MQTTVersion) throws(MQTTProtocolError) {
        guard let qos = QoS(rawValue: options & 0b11) else {
            throw .malformed("A subscription has QoS 3.", version == .v5_0 ? "MQTT 3.8.3.1" : "MQTT-3.8.3-4")
        }
        self.init(filter: filter, qos: qos)
        if version == .v3_1 { return }
        if options & (version == .v5_0 ? 0xC0 : 0xFC) != 0 {
            throw .malformed(
                "Reserved subscription options are set.", version == .v5_0 ? "MQTT-3.8.3-5" : "MQTT-3.8.3-4")
        }
        guard let handling = RetainHandling(rawValue: options >> 4 & 0b11) else {
            throw .protocolError("A subscription has the retain handling 3.", "MQTT 3.8.3.1")
        }
        noLocal = options & 0b0100 != 0
        retainAsPublished = options & 0b1000 != 0
        retainHandling = handling
        if noLocal, MQTTTopicFilter.shared(filter) != nil {
            throw .protocolError("A shared subscription has No Local set.", "MQTT-3.8.3-4")
        }
    }

    /// The byte behind the filter.
    var options: UInt8 {
        qos.rawValue | (noLocal ? 0b0100 : 0) | (retainAsPublished ? 0b1000 : 0) | retainHandling.rawValue << 4
    }
}

extension MQTTPacket.Subscribe {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if subscriptions.isEmpty {
            throw .init(.contradiction, "SUBSCRIBE needs a topic filter [MQTT-3.8.3-2]. Add one.")
        }
        try body.append(packetID: packetID)
        try body.append(properties, of: .subscribe)
        for subscription in subscriptions {
            try body.append(filter: subscription.filter)
            let options = subscription.options
            if !body.version.hasProperties, options > 2 {
                throw .init(
                    .notInThisVersion,
                    "MQTT \(body.version) has no subscription options but the QoS. Leave them out, or connect with 5.0."
                )
            }
            if subscription.noLocal, MQTTTopicFilter.shared(subscription.filter) != nil {
                throw .init(
                    .contradiction, "No Local is not allowed on a shared subscription [MQTT-3.8.3-4]. Turn it off."
                )
            }
            body.append(options)
        }
    }
}

extension MQTTPacket.Unsubscribe {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if filters.isEmpty { throw .init(.contradiction, "UNSUBSCRIBE needs a topic filter [MQTT-3.10.3-2]. Add one.") }
        try body.append(packetID: packetID)
        try body.append(properties, of: .init(.unsubscribe))
        for filter in filters { try body.append(filter: filter) }
    }
}

extension MQTTPacket.Suback {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if reasonCodes.isEmpty {
            throw .init(.contradiction, "SUBACK needs a reason code for each topic filter [MQTT-3.9.3-1]. Add them.")
        }
        try body.append(packetID: packetID)
        try body.append(properties, of: .init(.suback))
        for code in reasonCodes {
            if body.version.hasProperties {
                try code.checkSent(in: .suback)
                body.append(code.rawValue)
            } else if code.isError {
                body.append(MQTTReasonCode.unspecifiedError.rawValue)
            } else if code.rawValue <= 2 {
                body.append(code.rawValue)
            } else {
                throw .init(.notInThisVersion, "MQTT \(body.version) has no \(code) in SUBACK. Use a QoS or a failure.")
            }
        }
    }
}

extension MQTTPacket.Unsuback {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        try body.append(packetID: packetID)
        try body.append(properties, of: .init(.unsuback))
        guard body.version.hasProperties else { return }
        if reasonCodes.isEmpty {
            throw .init(.contradiction, "UNSUBACK needs a reason code for each topic filter [MQTT-3.11.3-1]. Add them.")
        }
        for code in reasonCodes {
            try code.checkSent(in: .unsuback)
            body.append(code.rawValue)
        }
    }
}

extension MQTTPacket {
    fileprivate static func filter(
        _ cursor: inout ByteCursor, _ bytes: RawSpan, _ version: MQTTVersion
    ) throws(MQTTProtocolError) -> String {
        let range = try cursor.binary(bytes, "the topic filter")
        try MQTTTopicFilter.validate(bytes, range, version: version)
        return String(checked: bytes, range)
    }

    /// The codes up to the end of the packet, one for each topic filter.
    ///
    /// Before 5.0 a server's SUBACK may have a failure of 5.0 where the specification knows only 0x80.
    fileprivate static func reasonCodes(
        _ cursor: inout ByteCursor, _ bytes: RawSpan, of type: MQTTPacketType, _ version: MQTTVersion,
        _ sender: MQTTRole?
    ) throws(MQTTProtocolError) -> [MQTTReasonCode] {
        var codes: [MQTTReasonCode] = []
        codes.reserveCapacity(cursor.remaining)
        while !cursor.isAtEnd {
            let code = try cursor.uint8(bytes, "a reason code")
            if version.hasProperties {
                codes.append(try MQTTReasonCode(code, in: type, from: .server))
            } else if code <= 2 || code == MQTTReasonCode.unspecifiedError.rawValue || sender == .server && code > 0x80
            {
                codes.append(MQTTReasonCode(rawValue: code))
            } else {
                throw .malformed("The return code \(code) in SUBACK is reserved.", "MQTT-3.9.3-2")
            }
        }
        return codes
    }
}
