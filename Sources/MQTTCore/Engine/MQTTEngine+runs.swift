// The hot path of sending many messages: runs of plain ones, whose properties need no check.

import Wire

extension MQTTEngine {
    /// Publishes QoS 0 messages, as `publish` would, as long as they are plain. Returns the index of the next message: the
    /// general path publishes or refuses it, if there is room in ``output``. Call ``outputTaken(at:)`` afterwards, which
    /// updates keep alive.
    ///
    /// - Parameter outputLimit: no message is begun when ``output`` has as many bytes.
    public mutating func publishRunAtMostOnce(
        _ messages: ArraySlice<MQTTOutgoingMessage>, from start: Int, outputLimit: Int
    ) -> Int {
        guard messagesMayLeave, outboundAliases.maximum == 0, session.window.queuedAtMostOnceCount == 0 else {
            return start
        }
        let run = plainRun(.atMostOnce, firstPacketID: 0, outputLimit: outputLimit)
        // Safe: the array is neither changed nor released while its bytes are read.
        let next = unsafe messages.withUnsafeBufferPointer { buffer in
            let rest = unsafe UnsafeBufferPointer(rebasing: buffer[(start - messages.startIndex)...])
            return unsafe start + MQTTPacket.Publish.encodePlainRun(into: &output, rest, run)
        }
        publishesWritten &+= next - start
        return next
    }

    /// Publishes QoS 1 or QoS 2 messages, as `publish` would, as long as they are plain, have the QoS of the first one, and
    /// the window has room. Returns where the next one begins. The general path publishes, queues or refuses it.
    ///
    /// The array is kept until the last of them is acknowledged. Acknowledgements in the order of the messages are
    /// counted together in one ``MQTTPublishCompletion``.
    /// - Parameter token: added to the index of a message, the token in its completion.
    public mutating func publishRunAcknowledged(
        _ messages: [MQTTOutgoingMessage], from start: Int, token: UInt64, at now: Int64
    ) -> Int {
        guard start < messages.count else { return start }
        let qos = messages[start].qos
        guard messagesMayLeave, outboundAliases.maximum == 0, !options.value.persists, qos != .atMostOnce,
            qos <= limits.maximumQoS, session.window.queue.count == 0, session.window.resend < 0
        else { return start }
        if session.window.used == 0 { acknowledgementWait.restart(at: now) }
        // Safe: as above.
        let next = unsafe messages.withUnsafeBufferPointer { buffer in
            var next = start
            while next < buffer.count {
                let room = min(windowLimit - session.window.used, buffer.count - next)
                let ids = session.window.reserveIDs(atMost: room)
                let run = plainRun(qos, firstPacketID: ids.first, outputLimit: .max)
                let part = unsafe UnsafeBufferPointer(rebasing: buffer[next..<next + ids.count])
                let count = unsafe MQTTPacket.Publish.encodePlainRun(into: &output, part, run)
                session.window.recordRun(messages, from: next, ids, written: count, token: token, at: now)
                next += count
                guard count > 0, count == ids.count else { break }
            }
            return next
        }
        publishesWritten &+= next - start
        if next > start { keepAlive.sent(at: now) }
        return next
    }

    private func plainRun(_ qos: QoS, firstPacketID: UInt16, outputLimit: Int) -> PublishRun {
        PublishRun(
            qos: qos, firstPacketID: firstPacketID, hasProperties: version.hasProperties,
            retainAvailable: limits.retainAvailable, maximumPacketSize: Int(clamping: limits.maximumPacketSize),
            outputLimit: outputLimit)
    }

    /// Handles PUBACK, PUBREC or PUBCOMP packets without a reason for messages of runs, as long as they come in order, and
    /// returns where they end.
    mutating func receiveAcknowledgementsOfRun(
        _ type: UInt16, _ bytes: RawSpan, from start: Int, at now: Int64, _ effects: inout MQTTEffects
    ) -> Int {
        switch type {
        case 0x4002, 0x7002:
            let awaiting = type == 0x4002 ? session.window.awaitingPuback : session.window.awaitingPubcomp
            let count = Self.count(type, of: awaiting, bytes, from: start)
            guard count > 0 else { return start }
            let token = session.window.finishOfFirstRun(count)
            effects.completions.append(
                MQTTPublishCompletion(
                    token: token, outcome: .acknowledged, reason: .success, count: UInt16(truncatingIfNeeded: count)))
            return start + count * 4
        case 0x5002:
            let awaiting = session.window.awaitingPubrec
            let count = Self.count(type, of: awaiting, bytes, from: start)
            guard count > 0 else { return start }
            session.window.markReleased(count)
            output.append(addingCapacity: count * 4) { output in
                let pubrel = 0x6202_0000 | UInt32(awaiting.first)
                for offset in 0..<UInt32(truncatingIfNeeded: count) { output.append(uint32: pubrel &+ offset) }
            }
            keepAlive.sent(at: now)
            return start + count * 4
        default: return start
        }
    }

    /// How many packets of a type follow each other for the identifiers of a row.
    private static func count(
        _ type: UInt16, of row: PacketIDSet.Row, _ bytes: RawSpan, from start: Int
    ) -> Int {
        let end = start + 4 * min(row.count, (bytes.byteCount - start) / 4)
        // The whole packet: type, length and identifier.
        var expected = UInt32(type) << 16 | UInt32(row.first)
        var offset = start
        while offset < end, bytes.bigEndian(UInt32.self, at: offset) == expected {
            offset &+= 4
            expected &+= 1
        }
        return (offset - start) / 4
    }

    /// PUBACK with a reason or properties came for the first message of the first run.
    mutating func acknowledgeFirstOfRun(
        _ reason: MQTTReasonCode, _ properties: MQTTProperties, at now: Int64, into effects: inout MQTTEffects
    ) {
        acknowledgementWait.progressed(at: now)
        let token = session.window.finishOfFirstRun(1)
        let remark = effects.remark(properties, for: token)
        effects.completions.append(
            MQTTPublishCompletion(
                token: token, outcome: reason.isError ? .refused : .acknowledged, reason: reason, remark: remark))
        pump(at: now, into: &effects)
    }
}
