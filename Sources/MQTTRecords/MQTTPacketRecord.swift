public import MQTTCore
public import MessagingFrames
import MessagingWire
import Transport

/// A packet that was sent or received, for display; see ``MQTTClient/inspect(showingSecrets:)``.
public struct MQTTPacketRecord: Sendable {
    /// Whether the client sent or received the packet.
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The size of the whole packet in bytes.
    public let size: Int
    /// The packet, with the first 256 bytes of its payload, and with its secrets masked unless the caller asked for them.
    public let packet: MQTTPacket
    /// The size of a PUBLISH packet's payload, 0 for other packets.
    public let payloadCount: Int

    /// The type of the packet.
    public var type: MQTTPacketType { packet.type }

    let version: MQTTVersion
    /// The topic of a PUBLISH that carries a topic alias instead.
    private let topic: String?

    package init(
        _ packet: MQTTPacket, of frame: RawFrame, version: MQTTVersion, topic: String? = nil, showsSecrets: Bool
    ) {
        direction = frame.moment.direction
        time = frame.moment.time
        size = frame.size
        self.version = version
        self.topic = topic
        if case .publish(let publish) = packet {
            payloadCount = publish.payload.count + frame.missingCount
        } else {
            payloadCount = 0
        }
        self.packet = Self.trimmed(packet, showsSecrets: showsSecrets)
    }

    /// The packet with what a record keeps of it.
    private static func trimmed(_ packet: MQTTPacket, showsSecrets: Bool) -> MQTTPacket {
        let limit = FrameText.previewLimit
        var packet = packet
        if !showsSecrets { packet.properties = packet.properties.masked(by: FrameText.mask) }
        switch packet {
        case .publish(var packet):
            if packet.payload.count > limit { packet.payload = Array(packet.payload.prefix(limit)) }
            return .publish(packet)
        case .connect(var packet) where !showsSecrets:
            // Services take tokens as user names too, and a will may be meant for few.
            if packet.userName != nil { packet.userName = FrameText.mask }
            if packet.password != nil { packet.password = Array(FrameText.mask.utf8) }
            if let will = packet.will {
                packet.will?.payload = Array(FrameText.mask.utf8)
                packet.will?.properties = will.properties.masked(by: FrameText.mask)
            }
            return .connect(packet)
        default:
            return packet
        }
    }
}

extension MQTTPacketRecord: CustomStringConvertible {
    /// The packet in one line, without its direction: `PUBLISH /a/b QoS 1 id 7 retain "on" (2 bytes)`.
    public var description: String {
        ([type.description] + details).joined(separator: " ")
    }

    /// Everything except the type.
    var details: [String] {
        switch packet {
        case .connect(let packet): words(packet)
        case .connack(let packet): [packet.reasonCode.description] + (packet.sessionPresent ? ["session-present"] : [])
        case .publish(let packet): words(packet)
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            ["id \(packet.packetID)"] + (packet.reasonCode == .success ? [] : [packet.reasonCode.description])
        case .subscribe(let packet):
            ["id \(packet.packetID)"] + packet.subscriptions.map { "\($0.filter) \($0.qos)" }
        case .suback(let packet): ["id \(packet.packetID)"] + packet.reasonCodes.map(\.description)
        case .unsubscribe(let packet): ["id \(packet.packetID)"] + packet.filters
        case .unsuback(let packet): ["id \(packet.packetID)"] + packet.reasonCodes.map(\.description)
        case .pingreq, .pingresp: []
        case .disconnect(let packet): packet.reasonCode == .normalDisconnection ? [] : [packet.reasonCode.description]
        case .auth(let packet): [packet.reasonCode.description]
        }
    }

    private func words(_ packet: MQTTPacket.Connect) -> [String] {
        var words = ["\(packet.version)", "client-id \(packet.clientID)", "keep-alive \(packet.keepAlive)"]
        if packet.cleanStart { words.append("clean") }
        if let user = packet.userName { words.append("user \(user)") }
        if let password = packet.password { words.append("password \(String(decoding: password, as: UTF8.self))") }
        if let will = packet.will {
            let payload = FrameText.preview(Array(will.payload.prefix(FrameText.previewLimit)), of: will.payload.count)
            words.append("will \(will.topic) \(will.qos)\(will.retain ? " retain" : "") \(payload)")
        }
        return words
    }

    private func words(_ packet: MQTTPacket.Publish) -> [String] {
        var words = [packet.topic, "\(packet.qos)"]
        if packet.packetID != 0 { words.append("id \(packet.packetID)") }
        if packet.isDuplicate { words.append("dup") }
        if packet.isRetained { words.append("retain") }
        if payloadCount > 0 { words.append(FrameText.preview(packet.payload, of: payloadCount)) }
        return words + ["(\(OneLine.bytes(payloadCount)))"]
    }
}

extension MQTTPacketRecord: FrameContent {
    package var protocolName: String { "MQTT \(version)" }
    package var typeName: String { type.description }
    package var opensConnection: Bool { type == .connect }
    package var endsConnection: Bool { type == .disconnect }
    package var carriesMessage: Bool { type == .publish }

    package var destination: String? {
        switch packet {
        case .subscribe(let packet): packet.subscriptions.map(\.filter).joined(separator: ", ")
        case .unsubscribe(let packet): packet.filters.joined(separator: ", ")
        case .publish(let packet): packet.topic.isEmpty ? topic : packet.topic
        default: nil
        }
    }

    package var qos: Int? {
        if case .publish(let packet) = packet { Int(packet.qos.rawValue) } else { nil }
    }

    /// A message, a subscription or its end is answered by the last packet with its packet identifier: PUBCOMP at QoS 2,
    /// or the PUBREC that refuses [MQTT-4.3.3].
    package var exchange: FrameExchange {
        switch packet {
        case .connect: FrameExchange(asks: "CONNECT")
        case .connack: FrameExchange(answers: "CONNECT")
        case .publish(let packet): FrameExchange(asks: packet.qos == .atMostOnce ? nil : "\(packet.packetID)")
        case .subscribe(let packet): FrameExchange(asks: "\(packet.packetID)")
        case .unsubscribe(let packet): FrameExchange(asks: "\(packet.packetID)")
        case .puback(let packet), .pubcomp(let packet): FrameExchange(answers: "\(packet.packetID)")
        case .pubrec(let packet):
            FrameExchange(answers: packet.reasonCode.rawValue >= 0x80 ? "\(packet.packetID)" : nil)
        case .suback(let packet): FrameExchange(answers: "\(packet.packetID)")
        case .unsuback(let packet): FrameExchange(answers: "\(packet.packetID)")
        case .pingreq: FrameExchange(asks: "PINGREQ")
        case .pingresp: FrameExchange(answers: "PINGREQ")
        case .pubrel, .disconnect, .auth: FrameExchange()
        }
    }

    package var messageEvent: MessageEvent? {
        switch (packet, direction) {
        case (.publish(let publish), _):
            MessageEvent(
                direction == .sent ? .sent : .received, time: time, destination: destination,
                identifier: publish.qos == .atMostOnce ? nil : "\(publish.packetID)", payloadCount: payloadCount)
        case (.puback(let packet), .received), (.pubcomp(let packet), .received):
            MessageEvent(.acknowledged, time: time, identifier: "\(packet.packetID)")
        case (.pubrec(let packet), .received) where packet.reasonCode.isError:
            MessageEvent(.acknowledged, time: time, identifier: "\(packet.packetID)")
        default: nil
        }
    }

    package var note: String {
        // Topic and quality of service are shown beside it.
        if case .publish = packet {
            details.dropFirst(2).joined(separator: " ")
        } else {
            details.joined(separator: " ")
        }
    }

    package var payloadPreview: String? {
        guard case .publish(let packet) = packet, payloadCount > 0 else { return nil }
        return FrameText.preview(packet.payload, of: payloadCount)
    }

    package var fields: [LoggedFrame.Field] {
        switch packet {
        case .connect(let packet): fields(packet)
        case .connack(let packet):
            [flag("Session Present", packet.sessionPresent), .init("Reason Code", packet.reasonCode.description)]
                + fields(packet.properties)
        case .publish(let packet):
            [.init("Topic Name", packet.topic), .init("QoS", "\(packet.qos.rawValue)")] + id(packet.packetID)
                + [flag("Retain", packet.isRetained), flag("DUP", packet.isDuplicate)] + fields(packet.properties)
                + [.init("Payload", OneLine.bytes(payloadCount))]
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            id(packet.packetID) + [.init("Reason Code", packet.reasonCode.description)] + fields(packet.properties)
        case .subscribe(let packet):
            id(packet.packetID)
                + packet.subscriptions.map { .init("Topic Filter", "\($0.filter), \($0.qos)") }
                + fields(packet.properties)
        case .unsubscribe(let packet):
            id(packet.packetID) + packet.filters.map { .init("Topic Filter", $0) } + fields(packet.properties)
        case .suback(let packet): id(packet.packetID) + codes(packet.reasonCodes) + fields(packet.properties)
        case .unsuback(let packet): id(packet.packetID) + codes(packet.reasonCodes) + fields(packet.properties)
        case .pingreq, .pingresp: []
        case .disconnect(let packet):
            [.init("Reason Code", packet.reasonCode.description)] + fields(packet.properties)
        case .auth(let packet): [.init("Reason Code", packet.reasonCode.description)] + fields(packet.properties)
        }
    }

    private func fields(_ packet: MQTTPacket.Connect) -> [LoggedFrame.Field] {
        var fields: [LoggedFrame.Field] = [
            .init("Protocol", "\(packet.version.protocolName) \(packet.version)"),
            .init("Client Identifier", packet.clientID),
            flag(packet.version.hasProperties ? "Clean Start" : "Clean Session", packet.cleanStart),
            .init("Keep Alive", "\(packet.keepAlive) s"),
        ]
        if let user = packet.userName { fields.append(.init("User Name", user)) }
        if let password = packet.password {
            fields.append(.init("Password", String(decoding: password, as: UTF8.self)))
        }
        fields += self.fields(packet.properties)
        guard let will = packet.will else { return fields }
        let payload = FrameText.preview(Array(will.payload.prefix(FrameText.previewLimit)), of: will.payload.count)
        return fields + [
            .init("Will Topic", will.topic), .init("Will QoS", "\(will.qos.rawValue)"),
            flag("Will Retain", will.retain), .init("Will Payload", payload),
        ] + self.fields(will.properties)
    }

    private func flag(_ name: String, _ isSet: Bool) -> LoggedFrame.Field { .init(name, isSet ? "yes" : "no") }

    private func id(_ packetID: UInt16) -> [LoggedFrame.Field] {
        packetID == 0 ? [] : [.init("Packet Identifier", "\(packetID)")]
    }

    private func codes(_ codes: [MQTTReasonCode]) -> [LoggedFrame.Field] {
        codes.map { .init("Reason Code", $0.description) }
    }

    private func fields(_ properties: MQTTProperties) -> [LoggedFrame.Field] {
        properties.list.map { property in
            let value =
                switch property.value {
                case .integer(let value): "\(value)"
                case .string(let value): value
                case .binary(let value):
                    FrameText.preview(Array(value.prefix(FrameText.previewLimit)), of: value.count)
                case .pair(let pair): "\(pair.name): \(pair.value)"
                }
            return .init(Self.words("\(property.identifier)"), value)
        }
    }

    /// `sessionExpiryInterval` as the specification writes it: `Session Expiry Interval`.
    private static func words(_ name: String) -> String {
        var words = ""
        for character in name {
            // QoS is one word.
            if character.isUppercase, words.last?.isUppercase == false, !words.hasSuffix("Qo") { words.append(" ") }
            words += words.isEmpty ? character.uppercased() : String(character)
        }
        return words
    }
}
