import MQTTCore
import TestSupport

/// Packets of any kind and version that are right by construction.
extension SeededGenerator {
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func text(_ counts: ClosedRange<Int> = 0...20) -> String {
        let alphabet: [Unicode.Scalar] = ["a", "b", "/", "ö", "€", "🙂", "\u{301}", "\u{FEFF}", " ", "z", "0", "~"]
        let count = Int.random(in: counts, using: &self)
        return String(String.UnicodeScalarView((0..<count).map { _ in alphabet.randomElement(using: &self) ?? "x" }))
    }

    mutating func packetID() -> UInt16 { .random(in: 1...UInt16.max, using: &self) }
    mutating func qos() -> QoS { QoS.allCases.randomElement(using: &self) ?? .atMostOnce }

    mutating func filter(_ version: MQTTVersion) -> String {
        if version == .v5_0, chance(10) { return "$share/group/" + filter(.v3_1_1) }
        let levels = (0..<Int.random(in: 1...4, using: &self)).map { _ in chance(30) ? "+" : text(1...3) }
        return (levels + (chance(20) ? ["#"] : [])).joined(separator: "/")
    }

    mutating func payload() -> [UInt8] {
        bytes(chance(2) ? Int.random(in: 0...20_000, using: &self) : Int.random(in: 0...40, using: &self))
    }

    /// Any failure, or one of the codes below 0x80 that the packet may carry.
    mutating func reason(_ successes: MQTTReasonCode...) -> MQTTReasonCode {
        let success = successes.randomElement(using: &self) ?? .success
        return chance(50) ? success : MQTTReasonCode(rawValue: .random(in: 0x80...0xFF, using: &self))
    }

    private mutating func users(_ properties: inout MQTTProperties) {
        while chance(20) { properties.append(MQTTProperty(.userProperty, .pair(.init(text(), text())))) }
    }

    mutating func answerProperties(_ version: MQTTVersion) -> MQTTProperties {
        var properties = MQTTProperties()
        guard version == .v5_0, chance(50) else { return properties }
        users(&properties)
        if chance(50) { properties.reasonString = text() }
        users(&properties)
        return properties
    }

    mutating func messageProperties(_ version: MQTTVersion, will: Bool) -> MQTTProperties {
        var properties = MQTTProperties()
        guard version == .v5_0, chance(60) else { return properties }
        users(&properties)
        if chance(30) { properties.payloadFormatIndicator = chance(50) }
        if chance(30) { properties.messageExpiryInterval = .random(in: 0...UInt32.max, using: &self) }
        if chance(30) { properties.contentType = text() }
        if chance(30) { properties.responseTopic = text(1...9) }
        if chance(30) { properties.correlationData = payload() }
        if will, chance(30) { properties.willDelayInterval = .random(in: 0...UInt32.max, using: &self) }
        if !will, chance(20) { properties.topicAlias = packetID() }
        if !will, chance(20) {
            properties.subscriptionIdentifiers = (0..<3).map { _ in .random(in: 1...268_435_455, using: &self) }
        }
        users(&properties)
        return properties
    }

    mutating func connect(_ version: MQTTVersion) -> MQTTPacket.Connect {
        var packet = MQTTPacket.Connect(
            version: version, clientID: text(1...30), cleanStart: chance(50), keepAlive: packetID())
        if chance(50) { packet.userName = text() }
        if packet.userName != nil || version == .v5_0, chance(50) { packet.password = payload() }
        if chance(50) {
            packet.will = MQTTWill(
                payload(), to: text(1...9), qos: qos(), retain: chance(50),
                properties: messageProperties(version, will: true))
        }
        guard version == .v5_0, chance(60) else { return packet }
        if chance(30) { packet.properties.sessionExpiryInterval = .random(in: 0...UInt32.max, using: &self) }
        if chance(30) { packet.properties.receiveMaximum = packetID() }
        if chance(30) { packet.properties.maximumPacketSize = .random(in: 1...UInt32.max, using: &self) }
        if chance(30) { packet.properties.topicAliasMaximum = packetID() }
        if chance(30) { packet.properties.requestResponseInformation = chance(50) }
        if chance(30) { packet.properties.requestProblemInformation = chance(50) }
        if chance(30) { packet.properties.authenticationMethod = text() }
        if packet.properties.authenticationMethod != nil { packet.properties.authenticationData = payload() }
        users(&packet.properties)
        return packet
    }

    mutating func connack(_ version: MQTTVersion) -> MQTTPacket.Connack {
        guard version == .v5_0 else {
            let reason = MQTTReasonCode(connectReturnCode: .random(in: 0...5, using: &self)) ?? .success
            return .init(sessionPresent: version == .v3_1_1 && reason == .success && chance(50), reasonCode: reason)
        }
        var packet = MQTTPacket.Connack(reasonCode: reason(), properties: answerProperties(version))
        packet.sessionPresent = packet.reasonCode == .success && chance(50)
        if chance(20) { packet.properties.maximumQoS = chance(50) ? .atMostOnce : .atLeastOnce }
        if chance(20) { packet.properties.retainAvailable = chance(50) }
        if chance(20) { packet.properties.assignedClientIdentifier = text() }
        if chance(20) { packet.properties.serverKeepAlive = packetID() }
        if chance(20) { packet.properties.wildcardSubscriptionAvailable = chance(50) }
        if chance(20) { packet.properties.subscriptionIdentifierAvailable = chance(50) }
        if chance(20) { packet.properties.sharedSubscriptionAvailable = chance(50) }
        if chance(20) { packet.properties.responseInformation = text() }
        if chance(20) { packet.properties.serverReference = text() }
        return packet
    }

    mutating func publish(_ version: MQTTVersion) -> MQTTPacket.Publish {
        let qos = qos()
        var packet = MQTTPacket.Publish(
            topic: text(1...30), payload: payload(), qos: qos, isRetained: chance(50),
            isDuplicate: qos != .atMostOnce && chance(30), packetID: qos == .atMostOnce ? 0 : packetID(),
            properties: messageProperties(version, will: false))
        if packet.properties.topicAlias != nil, chance(50) { packet.topic = "" }
        return packet
    }

    mutating func acknowledgement(
        _ version: MQTTVersion, _ successes: MQTTReasonCode...
    ) -> MQTTPacket.Acknowledgement {
        var packet = MQTTPacket.Acknowledgement(packetID: packetID(), properties: answerProperties(version))
        if version == .v5_0 {
            packet.reasonCode = chance(50) ? reason() : successes.randomElement(using: &self) ?? .success
        }
        return packet
    }

    mutating func subscribe(_ version: MQTTVersion) -> MQTTPacket.Subscribe {
        var packet = MQTTPacket.Subscribe(packetID: packetID(), subscriptions: [])
        for _ in 0..<Int.random(in: 1...4, using: &self) {
            var request = MQTTSubscriptionRequest(filter: filter(version), qos: qos())
            if version == .v5_0 {
                request.noLocal = MQTTTopicFilter.shared(request.filter) == nil && chance(50)
                request.retainAsPublished = chance(50)
                request.retainHandling = .init(rawValue: .random(in: 0...2, using: &self)) ?? .sendIfNew
            }
            packet.subscriptions.append(request)
        }
        if version == .v5_0, chance(50) { packet.properties.subscriptionIdentifiers = [UInt32(packet.packetID)] }
        return packet
    }

    mutating func packet(_ version: MQTTVersion) -> MQTTPacket {
        let count = Int.random(in: 1...4, using: &self)
        switch Int.random(in: 1...(version == .v5_0 ? 15 : 14), using: &self) {
        case 1: return .connect(connect(version))
        case 2: return .connack(connack(version))
        case 3: return .publish(publish(version))
        case 4: return .puback(acknowledgement(version, .success, .noMatchingSubscribers))
        case 5: return .pubrec(acknowledgement(version, .success, .noMatchingSubscribers))
        case 6: return .pubrel(acknowledgement(version))
        case 7: return .pubcomp(acknowledgement(version))
        case 8: return .subscribe(subscribe(version))
        case 9:
            let codes = (0..<count).map { _ in
                version == .v5_0
                    ? reason(.grantedQoS0, .grantedQoS1, .grantedQoS2)
                    : [.grantedQoS0, .grantedQoS2, .unspecifiedError].randomElement(using: &self)!
            }
            return .suback(.init(packetID: packetID(), reasonCodes: codes, properties: answerProperties(version)))
        case 10:
            return .unsubscribe(.init(packetID: packetID(), filters: (0..<count).map { _ in filter(version) }))
        case 11:
            let codes = version == .v5_0 ? (0..<count).map { _ in reason(.success, .noSubscriptionExisted) } : []
            return .unsuback(.init(packetID: packetID(), reasonCodes: codes, properties: answerProperties(version)))
        case 12: return .pingreq
        case 13: return .pingresp
        case 14:
            guard version == .v5_0 else { return .disconnect(.init()) }
            let code = reason(.success, .disconnectWithWillMessage)
            return .disconnect(.init(reasonCode: code, properties: answerProperties(version)))
        default:
            let code: MQTTReasonCode = [.success, .continueAuthentication, .reauthenticate].randomElement(using: &self)!
            return .auth(.init(reasonCode: code, properties: answerProperties(version)))
        }
    }
}
