// What arrives: frames to packets, packets to the part of the engine that they concern.
// The hot path of receiving: messages that a `PublishReader` can judge.

import MessagingWire

extension MQTTEngine {
    /// Bytes arrived: `bytes` is everything that was not consumed before.
    ///
    /// - Returns: the number of bytes consumed. The caller presents the rest again, with more behind it.
    public mutating func receive(_ bytes: RawSpan, at now: Int64, into effects: inout MQTTEffects) -> Int {
        let consumed = receive(bytes, at: now, into: &effects, knowing: TopicTable(seed: 0))
        guard authenticates, consumed > 0, consumed < bytes.byteCount else { return consumed }
        return receive(bytes, from: consumed, at: now, into: &effects, knowing: TopicTable(seed: 0))
    }

    /// The same for a caller with a table of topics, whose numbers the records of messages get. Stops behind a CONNACK that
    /// completes an authentication.
    ///
    /// - Parameters:
    ///   - start: where this piece of the bytes begins; the effects are those of the pieces before it.
    ///   - topics: only topics of messages that an engine has received.
    /// - Returns: where it has stopped.
    package mutating func receive(
        _ bytes: RawSpan, from start: Int = 0, at now: Int64, into effects: inout MQTTEffects,
        knowing topics: borrowing TopicTable
    ) -> Int {
        defer { assert(checkInvariants()) }
        guard phase != .closed, phase != .closing else { return bytes.byteCount }
        if effects.messages.isEmpty { inboundAliases.beginRead() }
        // Any byte is a sign of life for a client; a server requires whole packets within the keep alive [MQTT 5.0 3.1.2-22].
        if !isServer { keepAlive.listening.noteSign(at: now) }
        var offset = start
        let sender = isServer ? MQTTRole.client : .server
        do throws(MQTTProtocolError) {
            // Most reads end here: nothing is left for the loop below.
            if phase == .connected { try receivePlainPackets(bytes, at: &offset, now, &effects, topics, start > 0) }
            while let header = try MQTTFrameHeader.parse(
                bytes, at: offset, maximumPacketSize: acceptedPacketSize,
                maximumControlPacketSize: Int(acceptedControlPacketSize), version: version, from: sender),
                bytes.byteCount - offset >= header.packetCount
            {
                if header.type == .publish {
                    try receivedPublish(header, bytes, at: offset, now, &effects)
                } else {
                    try receivedPacket(header, bytes, at: offset, now, &effects)
                    if phase == .closing { return bytes.byteCount }
                }
                offset += header.packetCount
                // The app may refuse the server's last authentication data, before anything that follows.
                if header.type == .connack, authenticates { return offset }
                guard phase == .connected else { continue }
                try receivePlainPackets(bytes, at: &offset, now, &effects, topics, start > 0)
            }
        } catch {
            let awaitsConnack = phase == .connecting && !isServer
            // The first byte of what may be a TLS alert: its second byte decides.
            if awaitsConnack, bytes.byteCount == 1, bytes.byte(at: 0) == 0x15 { return 0 }
            if awaitsConnack, let line = Self.textLine(bytes) {
                // A web server's status line may come in pieces.
                if !line.isWhole, line.text.hasPrefix("HTTP/") || "HTTP/".hasPrefix(line.text) { return 0 }
                if line.text.utf8.count >= 4 {
                    fail(.answersInText(line.text), into: &effects)
                    return bytes.byteCount
                }
            }
            if phase == .connected, !isServer, let packet = refusedPacket(bytes, at: offset, because: error) {
                effects.report(.packetRefused(packet))
            }
            fail(awaitsConnack && bytes.isTLSAlert() ? .answersInTLS : error, into: &effects)
            return bytes.byteCount
        }
        if isCareful, !effects.messages.isEmpty { quarantine.receivedMessage() }
        if isServer && offset > start { keepAlive.listening.noteSign(at: now) }
        return offset
    }

    /// The beginning of an answer in text, as servers of other protocols give it; nil if it is not text.
    private static func textLine(_ bytes: RawSpan) -> (text: String, isWhole: Bool)? {
        let longest = 80
        var text: [UInt8] = []
        for offset in 0..<bytes.byteCount {
            let byte = bytes.byte(at: offset)
            if byte == 0x0D || byte == 0x0A || text.count == longest {
                return (String(decoding: text, as: UTF8.self), true)
            }
            guard (0x20...0x7E).contains(byte) else { return nil }
            text.append(byte)
        }
        return (String(decoding: text, as: UTF8.self), false)
    }

    private mutating func receivedPacket(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int, _ now: Int64, _ effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        switch header.type {
        case .puback, .pubrec, .pubrel, .pubcomp:
            try requireAccepted(header.type)
            let view = try MQTTAcknowledgementView.parse(header, in: bytes, at: offset, version: version)
            var properties = MQTTProperties()
            if view.propertiesCount > 0 { properties = try view.properties(in: bytes, of: header.type) }
            try receivedAcknowledgement(
                header.type, view.packetID, view.reasonCode, properties, at: now, into: &effects)
            pump(at: now, into: &effects)
        case .pingreq where isServer:
            try requireAccepted(header.type)
            if phase == .deciding { opening.value?.deferredPings += 1 } else { writePong(at: now) }
        case .pingresp where !isServer:
            try requireAccepted(header.type)
            if let written = keepAlive.answered() {
                noteAnswered(writtenAt: written)
                effects.report(.pingAnswered(after: listening.time(at: now) - written))
            }
            guard isCareful else { break }
            quarantine.pingAnswered(at: now)
            pump(at: now, into: &effects)
        default:
            let body = bytes.extracting(offset + header.headerCount..<offset + header.packetCount)
            let packet = try MQTTPacket.decode(header, body: body, version: version, from: isServer ? .client : .server)
            try received(packet, at: now, into: &effects)
        }
    }

    mutating func writePong(at now: Int64) {
        MQTTPacket.encodePingresp(into: &output)
        keepAlive.sent(at: now)
    }

    private mutating func received(
        _ packet: MQTTPacket, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        switch packet {
        case .connack(let connack) where !isServer:
            if phase == .connecting { return try receivedConnack(connack, at: now, into: &effects) }
            try receivedSecondConnack(connack, into: &effects)
        case .connect(let connect) where isServer:
            guard phase == .connecting else {
                throw .secondConnect(clause: "MQTT-3.1.0-2")
            }
            try receivedConnect(connect, at: now, into: &effects)
        case .suback(let suback) where !isServer:
            try requireAccepted(.suback)
            try receivedSuback(suback, at: now, into: &effects)
        case .unsuback(let unsuback) where !isServer:
            try requireAccepted(.unsuback)
            try receivedUnsuback(unsuback, at: now, into: &effects)
        case .subscribe(let subscribe) where isServer:
            try requireAccepted(.subscribe)
            effects.report(.subscribeReceived(subscribe))
        case .unsubscribe(let unsubscribe) where isServer:
            try requireAccepted(.unsubscribe)
            effects.report(.unsubscribeReceived(unsubscribe))
        case .disconnect(let disconnect):
            try receivedDisconnect(disconnect, into: &effects)
        case .auth(let auth):
            try receivedAuth(auth, at: now, into: &effects)
        default:
            throw .mustNotBeSent(packet.type, by: isServer ? .client : .server, clause: "MQTT 5.0 2.1.2")
        }
    }

    /// CONNECT and CONNACK come before everything else.
    @inline(__always)
    func requireAccepted(_ type: MQTTPacketType) throws(MQTTProtocolError) {
        if phase.isOpen || phase == .deciding { return }
        throw isServer
            ? .arrivedBefore(.connect, type, clause: "MQTT-3.1.0-1")
            : .arrivedBefore(.connack, type, clause: "MQTT-3.2.0-1")
    }

    private mutating func receivedDisconnect(
        _ disconnect: MQTTPacket.Disconnect, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        if isServer {
            try requireAccepted(.disconnect)
            if let expiry = disconnect.properties.sessionExpiryInterval {
                guard expiry == 0 || connectSessionExpiry != 0 else {
                    throw .expiryAfterZero(clause: "MQTT 5.0 3.14.2.2.2")
                }
                sessionEndsWithConnection = expiry == 0
            }
        }
        effects.report(.disconnectReceived(disconnect))
        if phase == .connected, !isServer {
            // Before 5.0 it has no reason, and a server should just close the connection.
            let hasReason = version.hasProperties || disconnect.reasonCode.isError
            connectionEnd = hasReason ? MQTTConnectionEnd(disconnect) : .closed
        }
        phase = .closing
    }

    /// CONNACK arrived although the connection is accepted. Some servers report so why they end it; anything else breaks the
    /// protocol.
    private mutating func receivedSecondConnack(
        _ connack: MQTTPacket.Connack, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard connack.reasonCode != .success else {
            throw .secondConnack(clause: "MQTT-3.2.0-2")
        }
        effects.report(.connectionRefused(connack))
        if phase == .connected {
            let end = MQTTConnectionEnd(MQTTPacket.Disconnect(reasonCode: connack.reasonCode))
            // Whatever the code, it may be the answer to a request.
            connectionEnd = .refused
            if case .disconnected = end, connack.reasonCode.isError { connectionEnd = end }
        }
        phase = .closing
    }
}

extension MQTTEngine {
    /// Reads what the general path is not needed for: messages, then acknowledgements. Advances to where they end.
    private mutating func receivePlainPackets(
        _ bytes: RawSpan, at offset: inout Int, _ now: Int64, _ effects: inout MQTTEffects,
        _ topics: borrowing TopicTable, _ isContinued: Bool
    ) throws(MQTTProtocolError) {
        offset = receivePlainMessages(bytes, from: offset, &effects, topics, isContinued)
        try receivePlainAcknowledgements(bytes, at: &offset, now, &effects)
    }

    /// Reads PUBLISH packets as long as one follows the other and a ``PublishReader`` can judge them, and returns where
    /// they end. Everything else is left to the general path.
    ///
    /// - Parameter isContinued: whether the messages before these are in the same bytes.
    private mutating func receivePlainMessages(
        _ bytes: RawSpan, from start: Int, _ effects: inout MQTTEffects, _ topics: borrowing TopicTable,
        _ isContinued: Bool
    ) -> Int {
        let (firstToken, firstMessage) = (session.inbound.nextToken, effects.messages.count)
        var reader = PublishReader(
            hasProperties: version.hasProperties, isServer: isServer, maximumPacketSize: acceptedPacketSize,
            maximumPropertiesCount: Int(acceptedControlPacketSize),
            tokens: firstToken..<firstToken + UInt64(max(0, inboundRoom)))
        if isContinued, let last = effects.messages.last { reader.resume(after: last) }
        var end = start
        while bytes.byteCount - end >= 4 {
            // Room is taken for many at a time: asking for each whether there is some costs as much as parsing it.
            let room = min(512, (bytes.byteCount - end) / 4)
            let count = effects.messages.count
            var outcome = PublishReader.Outcome(end: end)
            effects.messages.append(addingCapacity: room) { records in
                outcome = reader.read(bytes, from: end, into: &records, knowing: topics)
            }
            end = outcome.end
            effects.topicChanges += outcome.topicChanges
            if effects.messages.count - count < room { break }
        }
        effects.messageBytes += end - start
        let tokens = firstToken..<reader.tokens.lowerBound
        if !tokens.isEmpty {
            session.inbound.append(effects.messages.span.extracting(firstMessage...), count: tokens.count)
            effects.add(tokens)
            checkReceiveMaximum(&effects)
        }
        return end
    }
}
