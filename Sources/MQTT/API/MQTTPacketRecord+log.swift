import MQTTCore
import Messaging
import Transport
import Wire

extension MQTTPacketRecord {
    /// Decodes whole packets, each once, into what is wished of them; logs get them with their secrets masked.
    static func read(
        _ bytes: RawSpan, version: MQTTVersion, _ direction: FrameDirection, _ wishes: FrameWishes,
        aliases: MQTTSeenAliases = MQTTSeenAliases()
    ) -> [InspectedFrame<MQTTPacketRecord>] {
        var version = version
        var frames: [InspectedFrame<MQTTPacketRecord>] = []
        forEachFrame(in: bytes, version: version) { packet, range in
            if case .connect(let connect) = packet, wishes.logLimit != nil {
                version = connect.version
                aliases.reset()
            }
            var topic: String? {
                if case .publish(let publish) = packet { aliases.topic(of: publish, direction) } else { nil }
            }
            frames.append(inspected(packet, bytes, range, version, direction, wishes, topic: topic))
        }
        return frames
    }

    /// - Parameter topic: the topic of a PUBLISH that carries a topic alias instead.
    package func logged(
        _ packet: MQTTPacket, _ version: MQTTVersion, topic: String?, instant: Int64, bytes: [UInt8]
    ) -> LoggedFrame {
        LoggedFrame(
            direction, time: time, protocolName: "MQTT \(version)", type: type.description, size: size,
            destination: destination ?? topic, qos: qos, payloadCount: payloadCount, bytes: bytes,
            opensConnection: type == .connect, endsConnection: type == .disconnect,
            carriesMessage: type == .publish, exchange: exchange, instant: instant,
            content: self)
    }

    private var destination: String? {
        switch packet {
        case .subscribe(let packet): packet.subscriptions.map(\.filter).joined(separator: ", ")
        case .unsubscribe(let packet): packet.filters.joined(separator: ", ")
        case .publish(let packet): packet.topic.isEmpty ? nil : packet.topic
        default: nil
        }
    }

    private var qos: Int? {
        if case .publish(let packet) = packet { Int(packet.qos.rawValue) } else { nil }
    }

    /// A message, a subscription or its end is answered by the last packet with its packet identifier: PUBCOMP at QoS 2,
    /// or the PUBREC that refuses [MQTT-4.3.3].
    private var exchange: FrameExchange {
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

    package static func invalid(_ frame: RawFrame, _ version: MQTTVersion) -> LoggedFrame {
        let type = MQTTPacketType(rawValue: frame.bytes[0] >> 4)
        return frame.invalid("MQTT \(version)", type: type?.description ?? "?")
    }

    package static func masked(
        _ packet: MQTTPacket, _ bytes: RawSpan, _ range: Range<Int>, limit: Int
    ) -> [UInt8] {
        /// The sizes of the secret fields, from the end of the packet.
        var fields: [Int] = []
        let data: [UInt8]?
        switch packet {
        case .connect(let packet):
            // The last fields are will payload, user name and password, in this order [MQTT-3.1.3-1].
            fields = [packet.password?.count, packet.userName?.utf8.count, packet.will?.payload.count].compactMap(
                \.self)
            data = packet.properties.authenticationData
        case .connack(let packet): data = packet.properties.authenticationData
        case .auth(let packet): data = packet.properties.authenticationData
        default: data = nil
        }
        if fields.isEmpty, data == nil { return FrameBytes.copy(bytes, range, limit: limit, masking: nil) }
        return FrameBytes.copy(bytes, range, limit: limit) { bytes in
            var end = bytes.count
            for count in fields where count <= end {
                FrameBytes.mask(&bytes, (end - count)..<end)
                // Two bytes before the field hold its length.
                end -= count + 2
            }
            if let data {
                let identifier = MQTTPropertyIdentifier.authenticationData.rawValue
                let prefix = [
                    identifier, UInt8(truncatingIfNeeded: data.count >> 8), UInt8(truncatingIfNeeded: data.count),
                ]
                FrameBytes.mask(&bytes, data, behind: prefix)
            }
        }
    }
}

extension MQTTPacketRecord: FrameContent {
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
