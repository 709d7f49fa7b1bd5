// The peer's acknowledgements, and what they make room for.

import MessagingWire

extension MQTTEngine {
    /// PUBACK, PUBREC, PUBREL or PUBCOMP arrived. Call `pump` afterwards: it may have made room.
    mutating func receivedAcknowledgement(
        _ type: MQTTPacketType, _ id: UInt16, _ reason: MQTTReasonCode, _ properties: MQTTProperties, at now: Int64,
        into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        if type == .pubrel {
            receivedPubrel(id, at: now)
            return leaveIfDone(at: now, into: &effects)
        }
        let index = session.window.slot(of: id)
        guard index >= 0 else {
            if index == SendWindow.requestSlot {
                throw .identifierAwaitsAnother(id, than: type, clause: "MQTT 5.0 4.3")
            }
            // An unknown identifier. Only the receiver of a QoS 2 message waits for an answer, unless it refused the
            // message [MQTT-4.3.3-4].
            if type == .pubrec, !reason.isError { writeOrHold(.pubrel, id, .packetIdentifierNotFound, 0, at: now) }
            return
        }
        acknowledgementWait.progressed(at: listening.time(at: now))
        noteAnswered(messageAt: index)
        // Not the whole slot: its topic and payload would be counted references.
        let kind = session.window.slots[Int(index)].kind
        let flags = session.window.slots[Int(index)].head.flags
        let remark = effects.remark(properties, for: session.window.slots[Int(index)].token)
        switch (type, kind) {
        case (.puback, .published) where flags.isAtLeastOnce:
            complete(index, reason.isError ? .refused : .acknowledged, reason, remark, &effects)
        case (.puback, .published) where !isServer:
            // Some servers (RabbitMQ 3) know no QoS 2 and answer as if the message had come with QoS 1.
            if !knowsQoS2IsMissing { effects.report(.exactlyOnceUnavailable) }
            knowsQoS2IsMissing = true
            complete(index, reason.isError ? .refused : .acknowledged, reason, remark, &effects)
        case (.pubrec, .published) where flags.isExactlyOnce:
            if reason.isError {
                // Refused finally: the identifier is free, nothing is sent again [MQTT 5.0 4.4.0-2].
                complete(index, .refused, reason, remark, &effects)
            } else {
                session.window.markReceived(index, reason)
                let sequence = session.window.slots[Int(index)].sequence
                session.window.hold(index, until: store(.released(sequence: sequence)))
                return writePubrel(index, at: now)
            }
        case (.pubrec, .received):
            // A repetition: PUBLISH is never sent again after PUBREL [MQTT 5.0 4.3.3-6].
            return writePubrel(index, at: now)
        case (.pubcomp, .received):
            // A receiver that has forgotten the identifier had it released before, which is no failure
            // [MQTT 5.0 3.7.2.1].
            let isRefusal = reason.isError && reason != .packetIdentifierNotFound
            // Only PUBREC says that no subscription matches [MQTT 5.0 3.5.2.1].
            let received = MQTTReasonCode(rawValue: session.window.slots[Int(index)].received)
            let answer = isRefusal || received == .success ? reason : received
            complete(index, isRefusal ? .refused : .acknowledged, answer, remark, &effects)
        default:
            throw .identifierAwaitsAnother(id, than: type, clause: "MQTT 5.0 4.3")
        }
    }

    /// Reads acknowledgements without a reason as long as one follows the other, and advances to where they end.
    /// Messages that they make room for are sent once, after all of them.
    mutating func receivePlainAcknowledgements(
        _ bytes: RawSpan, at offset: inout Int, _ now: Int64, _ effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        let start = offset
        while bytes.byteCount - offset >= 4,
            let type = Self.plainAcknowledgement(bytes.bigEndian(UInt16.self, at: offset))
        {
            let id = bytes.bigEndian(UInt16.self, at: offset + 2)
            if id == 0 { break }
            try receivedAcknowledgement(type, id, .success, MQTTProperties(), at: now, into: &effects)
            offset += 4
        }
        if offset > start { pump(at: now, into: &effects) }
    }

    /// The acknowledgement that begins with these two bytes, its flags and its length; nil for other packets.
    @inline(__always)
    private static func plainAcknowledgement(_ header: UInt16) -> MQTTPacketType? {
        switch header {
        case 0x4002: .puback
        case 0x5002: .pubrec
        case 0x6202: .pubrel
        case 0x7002: .pubcomp
        default: nil
        }
    }

    mutating func writePubrel(_ index: Int32, at now: Int64) {
        let id = session.window.slots[Int(index)].head.packetID
        let ticket = session.window.slots[Int(index)].ticket
        writeOrHold(.pubrel, id, .success, ticket, at: now)
    }

    mutating func complete(
        _ index: Int32, _ outcome: MQTTPublishCompletion.Outcome, _ reason: MQTTReasonCode, _ remark: Int32,
        _ effects: inout MQTTEffects
    ) {
        let sequence = session.window.slots[Int(index)].sequence
        let token = session.window.slots[Int(index)].token
        store(.finished(sequence: sequence))
        effects.completions.append(
            MQTTPublishCompletion(token: token, outcome: outcome, reason: reason, remark: remark))
        session.window.finish(index)
    }

    /// A message that was sent is abandoned. The server may have seen its identifier, and would take another QoS 2
    /// message with the same identifier for a repetition.
    mutating func retire(_ index: Int32) {
        guard session.window.slots[Int(index)].head.flags.isExactlyOnce,
            let id = session.window.retireID(of: index)
        else { return }
        store(.retired(packetID: id))
    }

    // MARK: Sending what waits

    /// Sends what may be sent: first again what an earlier connection left, then from the queue.
    mutating func pump(at now: Int64, into effects: inout MQTTEffects) {
        guard phase == .connected else { return leaveIfDone(at: now, into: &effects) }
        if isCareful { noteAnswers() }
        guard reconciling == .nothing else { return }
        guard writeDue(at: now, into: &effects) else { return reportRoom(&effects) }
        guard !messagesWait else { return }
        if session.window.used == 0 { acknowledgementWait.restart(at: listening.time(at: now)) }
        repeat {
            while sendNext(at: now, into: &effects) {}
        } while chooseNext(at: now) && writeDue(at: now, into: &effects)
        if options.value.persists, session.window.resend < 0 { identifyQueued() }
        reportRoom(&effects)
    }

    /// Sends one message, gives it up or passes it. False if there is none, or it has to wait.
    @inline(__always)
    private mutating func sendNext(at now: Int64, into effects: inout MQTTEffects) -> Bool {
        let isRepetition = session.window.resend >= 0
        let index = isRepetition ? session.window.resend : session.window.pending
        guard index >= 0, !isRepetition || session.window.used < windowLimit else { return false }
        guard !messagesMayLeave else {
            if !isRepetition { return sendQueued(index, at: now, into: &effects) }
            resendNext(at: now, into: &effects)
            return true
        }
        guard let turn = turnOfNext(index, at: now) else { return false }
        if turn == .later { return true }
        let head = session.window.slots[Int(index)].head
        if isRepetition {
            resendNext(at: now, into: &effects)
        } else {
            guard sendQueued(index, at: now, into: &effects) else { return false }
        }
        if turn == .alone { sentAlone(head, at: now) }
        return true
    }

    mutating func resendNext(at now: Int64, into effects: inout MQTTEffects) {
        let index = session.window.resend
        let slot = session.window.slots[Int(index)]
        // DUP is set on what is sent again [MQTT 5.0 3.3.1-1], with its old identifier and the whole topic.
        var head = slot.head
        head.flags = head.flags.asDuplicate
        // However late it is, it is sent again [MQTT-4.4.0-1]; 0 is read in different ways.
        var properties = slot.properties
        if !properties.isEmpty, let interval = properties.messageExpiryInterval {
            properties.messageExpiryInterval = max(1, interval - min(interval, slot.age(at: now)))
        }
        if let reason = tryWriting(head, slot.payload, properties, at: now) {
            retire(index)
            complete(index, .unsendableAgain, reason, -1, &effects)
        } else {
            session.window.recordResent()
            keepAlive.sent(at: now)
        }
    }

    /// Sends the first message of the queue, or gives it up. False if it has to wait.
    mutating func sendQueued(_ index: Int32, at now: Int64, into effects: inout MQTTEffects) -> Bool {
        if options.value.persists && !isStored(index) {
            // Identifiers for a window may be taken by messages behind it, or by those that it passes.
            if session.window.slots[Int(index)].head.packetID == 0 { identify(index) }
            return false
        }
        let slot = session.window.slots[Int(index)]
        if !slot.head.flags.isAtMostOnce && session.window.used >= windowLimit { return false }
        var properties = slot.properties
        if !properties.isEmpty, let interval = properties.messageExpiryInterval {
            // A message that expired before it was first sent is not sent.
            guard now < slot.expiry else { return giveUp(index, expiryOutcome(index), .success, &effects) }
            properties.messageExpiryInterval = interval - slot.age(at: now)
        }
        guard !slot.head.flags.isAtMostOnce else {
            let reason = tryWriting(slot.head, slot.payload, properties, at: now)
            keepAlive.sent(at: now)
            return giveUp(index, reason == nil ? .written : .unsendable, reason ?? .success, &effects)
        }
        var head = slot.head
        if head.packetID == 0 {
            guard let reserved = session.window.reserveID() else { return false }
            head.packetID = reserved
        }
        if let reason = tryWriting(head, slot.payload, properties, at: now) {
            if slot.head.packetID == 0 { session.window.releaseID(head.packetID) }
            let wasSent = session.window.slots[Int(index)].kind == .requeued
            return giveUp(index, wasSent ? .unsendableAgain : .unsendable, reason, &effects)
        }
        session.window.recordQueuedSent(index, head.packetID)
        keepAlive.sent(at: now)
        return true
    }

    /// Gives up the messages in the queue that have expired: their publishers wait no longer, and they take no room.
    mutating func dropExpired(at now: Int64, into effects: inout MQTTEffects) {
        while let index = session.window.expired(at: now) {
            _ = giveUp(index, expiryOutcome(index), .success, &effects)
        }
        // Messages that expire soon after each other end together.
        expectExpiry(after: now.advanced(byNanoseconds: 100_000_000))
        reportRoom(&effects)
    }

    /// The outcome to report for an expired message: it may have arrived if it was sent in a session that was lost.
    private func expiryOutcome(_ index: Int32) -> MQTTPublishCompletion.Outcome {
        session.window.slots[Int(index)].kind == .requeued ? .sessionLost : .expired
    }

    /// Whether a queued message may be sent as far as the store is concerned: it and its identifier are stored.
    private func isStored(_ index: Int32) -> Bool {
        // Not the whole slot: its topic and payload would be counted references.
        if session.window.slots[Int(index)].head.flags.isAtMostOnce { return true }
        return session.window.slots[Int(index)].head.packetID != 0
            && session.window.slots[Int(index)].ticket <= persistedTicket
    }

    /// Gives identifiers to messages that continue in an earlier session or follow too many others: to a window full,
    /// as soon as half of it is used up, so that one wait for the store serves many messages and the window never
    /// waits.
    mutating func identifyQueued() {
        let wanted = min(windowLimit, 1024)
        guard Int(session.window.identifiedCount) <= wanted / 2 else { return }
        while Int(session.window.identifiedCount) < wanted {
            let index = session.window.firstUnidentified()
            guard index >= 0, identify(index) else { return }
        }
    }

    /// Gives a message of the queue an identifier. False if none is free.
    @discardableResult
    private mutating func identify(_ index: Int32) -> Bool {
        guard session.window.identify(index) else { return false }
        let sequence = session.window.slots[Int(index)].sequence
        let id = session.window.slots[Int(index)].head.packetID
        session.window.hold(index, until: store(.identified(sequence: sequence, packetID: id)))
        return true
    }

    private mutating func giveUp(
        _ index: Int32, _ outcome: MQTTPublishCompletion.Outcome, _ reason: MQTTReasonCode,
        _ effects: inout MQTTEffects
    ) -> Bool {
        let token = session.window.slots[Int(index)].token
        effects.completions.append(MQTTPublishCompletion(token: token, outcome: outcome, reason: reason))
        dropQueued(at: index)
        return true
    }

    /// Writes a message that was accepted under other limits; returns why it cannot be sent under these.
    private mutating func tryWriting(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, at now: Int64
    ) -> MQTTReasonCode? {
        if head.flags.qos > limits.maximumQoS { return .qosNotSupported }
        if head.flags.isRetained && !limits.retainAvailable { return .retainNotSupported }
        do throws(MQTTUsageError) {
            try encodePublish(head, payload, properties, at: now)
            return nil
        } catch {
            return error.code == .packetTooLarge ? .packetTooLarge : .implementationSpecificError
        }
    }

    mutating func reportRoom(_ effects: inout MQTTEffects) {
        guard owesRoom, session.window.queue.count <= options.value.maximumQueuedMessages / 2,
            session.window.queuedBytes <= options.value.maximumQueuedBytes / 2
        else { return }
        owesRoom = false
        effects.queueHasRoom = true
    }

}
