import MQTTCore

/// The client's answers to messages of the server.
extension MQTTJudgedConnection {
    mutating func judgePuback(_ packet: MQTTPacket.Acknowledgement) {
        guard let place = awaitingPuback.firstIndex(of: packet.packetID) else {
            return brokeAnswer(packet, isOther: awaitingPubrec.contains(packet.packetID), needed: "PUBREC")
        }
        if place > 0 {
            broke(.pubackOrder, "PUBLISH with packet identifier \(awaitingPuback[0]) came before and is unanswered.")
        }
        awaitingPuback.remove(at: place)
    }

    mutating func judgePubrec(_ packet: MQTTPacket.Acknowledgement) {
        guard let place = awaitingPubrec.firstIndex(of: packet.packetID) else {
            return brokeAnswer(packet, isOther: awaitingPuback.contains(packet.packetID), needed: "PUBACK")
        }
        if place > 0 {
            broke(.pubrecOrder, "PUBLISH with packet identifier \(awaitingPubrec[0]) came before and is unanswered.")
        }
        awaitingPubrec.remove(at: place)
    }

    private mutating func brokeAnswer(_ packet: MQTTPacket.Acknowledgement, isOther: Bool, needed: String) {
        if isOther {
            broke(.answerOfOtherQoS, "The message has another QoS, whose answer is \(needed).")
        } else {
            broke(.answerWithoutPublish, "The server has written no PUBLISH on this connection that it answers.")
        }
    }

    mutating func judgePubcomp(_ packet: MQTTPacket.Acknowledgement) {
        guard let place = awaitingPubcomp.firstIndex(of: packet.packetID) else {
            return broke(.pubcompWithoutPubrel, "The server has written no PUBREL on this connection that it answers.")
        }
        awaitingPubcomp.remove(at: place)
    }
}
