extension MQTTPacket.Subscribe {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if subscriptions.isEmpty { throw .init(.contradiction, "SUBSCRIBE needs a filter [MQTT-3.8.3-2]") }
        try body.append(packetID: packetID)
        try body.append(properties, of: .subscribe)
        for subscription in subscriptions {
            try body.append(filter: subscription.filter)
            let options = subscription.options
            if !body.version.hasProperties, options > 2 {
                throw .init(.notInThisVersion, "MQTT \(body.version) has no subscription options but the QoS")
            }
            if subscription.noLocal, MQTTTopicFilter.shared(subscription.filter) != nil {
                throw .init(.contradiction, "no local on a shared subscription [MQTT-3.8.3-4]")
            }
            body.append(options)
        }
    }
}

extension MQTTPacket.Unsubscribe {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if filters.isEmpty { throw .init(.contradiction, "UNSUBSCRIBE needs a filter [MQTT-3.10.3-2]") }
        try body.append(packetID: packetID)
        try body.append(properties, of: .init(.unsubscribe))
        for filter in filters { try body.append(filter: filter) }
    }
}

extension MQTTPacket.Suback {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        if reasonCodes.isEmpty { throw .init(.contradiction, "SUBACK needs a code for each filter [MQTT-3.9.3-1]") }
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
                throw .init(.notInThisVersion, "MQTT \(body.version) has no \(code) in SUBACK")
            }
        }
    }
}

extension MQTTPacket.Unsuback {
    func write(to body: inout PacketBody) throws(MQTTEncodingError) {
        try body.append(packetID: packetID)
        try body.append(properties, of: .init(.unsuback))
        guard body.version.hasProperties else { return }
        if reasonCodes.isEmpty { throw .init(.contradiction, "UNSUBACK needs a code for each filter [MQTT-3.11.3-1]") }
        for code in reasonCodes {
            try code.checkSent(in: .unsuback)
            body.append(code.rawValue)
        }
    }
}
