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
        guard messagesMayLeave, outboundAliases.maximum == 0 else { return start }
        let run = plainRun(.atMostOnce, firstPacketID: 0, outputLimit: outputLimit)
        // Safe: the array is neither changed nor released while its bytes are read.
        let next = unsafe messages.withUnsafeBufferPointer { buffer in
            let rest = unsafe UnsafeBufferPointer(rebasing: buffer[(start - messages.startIndex)...])
            return unsafe start + MQTTPacket.Publish.encodePlainRun(into: &output, rest, run)
        }
        publishesWritten &+= next - start
        return next
    }

    /// Publishes QoS 1 messages, as `publish` would, as long as they are plain and the window has room, and returns where
    /// the next one begins. The general path publishes, queues or refuses it.
    ///
    /// The array is kept until the last of them is acknowledged. Acknowledgements in the order of the messages are
    /// counted together in one ``MQTTPublishCompletion``.
    /// - Parameter token: added to the index of a message, the token in its completion.
    public mutating func publishRunAtLeastOnce(
        _ messages: [MQTTOutgoingMessage], from start: Int, token: UInt64, at now: Int64
    ) -> Int {
        guard messagesMayLeave, outboundAliases.maximum == 0, !options.value.persists,
            limits.maximumQoS != .atMostOnce, session.window.queue.count == 0, session.window.resend < 0
        else { return start }
        // Safe: as above.
        let next = unsafe messages.withUnsafeBufferPointer { buffer in
            var next = start
            while next < buffer.count {
                let room = min(windowLimit - session.window.used, buffer.count - next)
                let ids = session.window.reserveIDs(atMost: room)
                let run = plainRun(.atLeastOnce, firstPacketID: ids.first, outputLimit: .max)
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
            retainAvailable: limits.retainAvailable, maximumPacketSize: Int(limits.maximumPacketSize),
            outputLimit: outputLimit)
    }

    /// Ends messages of the first run by PUBACK packets without a reason, as long as they come in its order, and returns
    /// where they end.
    mutating func receiveAcknowledgementsOfRun(
        _ bytes: RawSpan, from start: Int, _ effects: inout MQTTEffects
    ) -> Int {
        let most = min(session.window.firstRun.count, (bytes.byteCount - start) / 4)
        let id = session.window.firstRun.id
        var count = 0
        while count < most, bytes.bigEndian(UInt16.self, at: start + count * 4) == 0x4002,
            bytes.bigEndian(UInt16.self, at: start + count * 4 + 2) == id + UInt16(truncatingIfNeeded: count)
        {
            count += 1
        }
        guard count > 0 else { return start }
        let token = session.window.finishOfFirstRun(count)
        effects.completions.append(
            MQTTPublishCompletion(
                token: token, outcome: .acknowledged, reason: .success,
                count: UInt16(truncatingIfNeeded: count)))
        return start + count * 4
    }

    /// PUBACK with a reason or properties came for the first message of the first run.
    mutating func acknowledgeFirstOfRun(
        _ reason: MQTTReasonCode, _ properties: MQTTProperties, at now: Int64, into effects: inout MQTTEffects
    ) {
        let token = session.window.finishOfFirstRun(1)
        let remark = effects.remark(properties, for: token)
        effects.completions.append(
            MQTTPublishCompletion(
                token: token, outcome: reason.isError ? .refused : .acknowledged, reason: reason, remark: remark))
        pump(at: now, into: &effects)
    }
}
