import MQTTCore
import MessagingWire

/// Messages of the client.
extension MQTTJudgedConnection {
    private typealias Exchange = MQTTJudgedSession.Exchange

    mutating func judge(_ packet: MQTTPacket.Publish) {
        var message = packet
        resolveAlias(of: &message)
        if message.properties.contains(.subscriptionIdentifier) {
            broke(.subscriptionIdentifierInPublish, "Only a server adds subscription identifiers to messages.")
        }
        if knowsAllowed {
            if let maximum = allowed.maximumQoS, message.qos > maximum {
                broke(.maximumQoS, "The server allows \(maximum) at most.")
            }
            if message.isRetained, allowed.retainAvailable == false {
                broke(.retainUnavailable, "The server does not retain messages.")
            }
        }
        guard message.qos != .atMostOnce else {
            hasBegun = true
            return
        }
        if requests[message.packetID] != nil {
            broke(.packetIdentifierInUse, "A request with this packet identifier has no answer.")
        }
        if message.isDuplicate { judgeRepetition(message) } else { judgeFirst(message) }
        inFlight.insert(message.packetID)
        checkReceiveMaximum()
    }

    private mutating func checkReceiveMaximum() {
        let maximum = Int(allowed.receiveMaximum ?? .max)
        guard knowsAllowed, inFlight.count + releasedAgain.count > maximum else { return }
        if inFlight.count > maximum {
            broke(.receiveMaximum, "\(inFlight.count) messages are unanswered, and the server accepts \(maximum).")
        } else {
            broke(
                .releaseNotCounted,
                "\(inFlight.count) messages are unanswered and \(releasedAgain.count) were released again, and the server accepts \(maximum)."
            )
        }
    }

    private mutating func resolveAlias(of message: inout MQTTPacket.Publish) {
        guard let alias = message.properties.topicAlias else { return }
        message.properties.removeAll(.topicAlias)
        let maximum = allowed.topicAliasMaximum ?? 0
        if knowsAllowed, alias > maximum {
            broke(.aliasAboveMaximum, "The alias is \(alias), and the server accepts \(maximum) at most.")
        }
        if message.topic.isEmpty {
            guard let topic = aliases[alias] else {
                return broke(.aliasUnknown, "The alias \(alias) has no topic on this connection.")
            }
            message.topic = topic
        } else {
            aliases[alias] = message.topic
        }
    }

    // MARK: The first time

    private mutating func judgeFirst(_ message: MQTTPacket.Publish) {
        hasBegun = true
        // Clients of this package do not soon use an identifier again, so that an answer which the client did not receive
        // explains the same message with the same identifier.
        if let exchange = session.exchanges[message.packetID],
            exchange.state != .answered || exchange.isOfThisProcess && options.judgesPromises
        {
            if exchange.publishedOn != number, Self.isSame(message, exchange.message) {
                broke(.duplicateFlagMissing, "It was written on connection \(exchange.publishedOn) before.")
                return repeated(message, exchange)
            }
            if exchange.state != .answered {
                broke(.packetIdentifierInUse, "A message with this packet identifier is unanswered.")
            }
        }
        checkUnfinished()
        unfinished.remove(message.packetID)
        let number = session.nextNumber()
        session.exchanges[message.packetID] = Exchange(
            message: message, publishedOn: self.number, time: now, number: number)
    }

    /// Before anything new a client repeats what is unfinished.
    private mutating func checkUnfinished() {
        guard !unfinished.isEmpty else { return }
        let list = unfinished.sorted().prefix(5).map { "\($0)" }.joined(separator: ", ")
        broke(
            .unfinishedFirst,
            "\(unfinished.count) exchanges of earlier connections were not continued yet (packet identifiers \(list)).")
        unfinished = []
    }

    // MARK: Again

    private mutating func judgeRepetition(_ message: MQTTPacket.Publish) {
        guard let exchange = session.exchanges[message.packetID] else {
            if !session.mayHaveLost {
                broke(
                    .duplicateFlagOnFirst,
                    "The session has no earlier connection that may have lost it.")
            }
            return noteLost(message)
        }
        if exchange.state == .answered {
            // The answer was lost, or the identifier was used again for a message that was.
            guard exchange.publishedOn == number || Self.isSame(message, exchange.message) else {
                return noteLost(message)
            }
            if exchange.publishedOn == number {
                broke(.repetitionOutOfTurn, "It was answered on this connection.")
            } else if exchange.releasedOn != 0 {
                broke(.publishAfterPubrel, "Its PUBREL was written on connection \(exchange.releasedOn).")
            }
            return repeated(message, exchange)
        }
        if exchange.state == .released {
            broke(.publishAfterPubrel, "Its PUBREL was written on connection \(exchange.releasedOn).")
        } else if exchange.publishedOn == number {
            broke(
                version.hasProperties ? .repetitionOutOfTurn : .repetitionOnSameConnection,
                "It was written on this connection already.")
        } else {
            compare(message, with: exchange)
        }
        repeated(message, exchange)
    }

    private mutating func noteLost(_ message: MQTTPacket.Publish) {
        session.exchanges[message.packetID] = Exchange(message: message, publishedOn: number, time: now)
    }

    private mutating func repeated(_ message: MQTTPacket.Publish, _ exchange: MQTTJudgedSession.Exchange) {
        if let place = exchange.number, !session.mayBePassed(message) {
            if place < lastRepeated {
                broke(.repetitionOrder, "A message that was first written later was repeated before it.")
            }
            lastRepeated = max(lastRepeated, place)
        }
        unfinished.remove(message.packetID)
        var exchange = exchange
        (exchange.publishedOn, exchange.mayBeAbandoned) = (number, false)
        if exchange.state == .answered { exchange.state = .published }
        session.exchanges[message.packetID] = exchange
    }

    private mutating func compare(_ message: MQTTPacket.Publish, with exchange: MQTTJudgedSession.Exchange) {
        guard Self.isSame(message, exchange.message) else {
            return broke(
                .repetitionDiffers, "It was \(MQTTPacketLine.text(.publish(exchange.message))) before.")
        }
        guard let expiry = message.properties.messageExpiryInterval,
            let first = exchange.message.properties.messageExpiryInterval
        else { return }
        // The server cannot know when the client wrote it, but when it arrived.
        let age = (now - exchange.time) / 1_000_000_000 - 10
        if Int64(expiry) > max(1, Int64(first) - max(0, age)) {
            broke(
                .expiryNotReduced,
                "Its message expiry is \(expiry) s, and was \(first) s when it was written \(age + 10) s ago.")
        }
    }

    /// Whether both are the same message, whatever became of its expiry.
    private static func isSame(_ one: MQTTPacket.Publish, _ other: MQTTPacket.Publish) -> Bool {
        var (first, second) = (one.properties, other.properties)
        let expires = (first.messageExpiryInterval != nil) == (second.messageExpiryInterval != nil)
        first.messageExpiryInterval = nil
        second.messageExpiryInterval = nil
        return expires && ByteKey(one.topic) == ByteKey(other.topic) && one.payload == other.payload
            && one.qos == other.qos && one.isRetained == other.isRetained && first == second
    }

    // MARK: Not again

    /// What this server does not allow need not be repeated, here or later. The client may not have received PUBREC.
    mutating func abandonForbidden() {
        for (id, exchange) in session.exchanges
        where (exchange.state == .published || exchange.state == .received) && isForbidden(exchange.message) {
            session.exchanges[id]?.mayBeAbandoned = true
        }
    }

    private func isForbidden(_ message: MQTTPacket.Publish) -> Bool {
        if let maximum = allowed.maximumQoS, message.qos > maximum { return true }
        if message.isRetained, allowed.retainAvailable == false { return true }
        guard let maximum = allowed.maximumPacketSize else { return false }
        var (message, bytes) = (message, [UInt8]())
        // The client may set one in a repetition.
        message.properties.topicAlias = 1
        try? MQTTPacket.publish(message).encode(into: &bytes, version: version)
        return bytes.count > Int(maximum)
    }

    // MARK: PUBREL

    mutating func judgePubrel(_ packet: MQTTPacket.Acknowledgement) {
        let id = packet.packetID
        let exchange = session.exchanges[id]
        if let place = awaitingPubrel.firstIndex(of: id) {
            if place > 0 {
                broke(.pubrelOrder, "PUBREC of packet identifier \(awaitingPubrel[0]) came before that of \(id).")
            }
            awaitingPubrel.remove(at: place)
        } else if let exchange, exchange.receipt != nil, exchange.message.qos == .exactlyOnce {
            if exchange.releasedOn == number {
                broke(
                    version.hasProperties ? .repetitionOutOfTurn : .repetitionOnSameConnection,
                    "It was written on this connection already.")
            } else if let receipt = exchange.receipt {
                if receipt < lastRepeatedRelease {
                    broke(.pubrelOrder, "PUBREL of a later PUBREC was repeated before it.")
                }
                lastRepeatedRelease = max(lastRepeatedRelease, receipt)
                if exchange.state != .answered { releasedAgain.insert(id) }
            }
        } else {
            return broke(.pubrelWithoutPubrec, "The server has not received a message with this packet identifier.")
        }
        unfinished.remove(id)
        guard var exchange else { return }
        if exchange.state != .answered { exchange.state = .released }
        exchange.releasedOn = number
        session.exchanges[id] = exchange
    }

    // MARK: Answers of the server

    mutating func received(_ answer: MQTTPacket.Acknowledgement) {
        let id = answer.packetID
        guard answer.reasonCode.rawValue < 0x80 else { return answered(id) }
        awaitingPubrel.append(id)
        guard var exchange = session.exchanges[id] else { return }
        if exchange.state == .published { exchange.state = .received }
        exchange.receipt = session.nextReceipt()
        session.exchanges[id] = exchange
    }

    mutating func answered(_ id: UInt16) {
        inFlight.remove(id)
        releasedAgain.remove(id)
        unfinished.remove(id)
        session.exchanges[id]?.state = .answered
    }
}
