// The hot path of sending many messages: runs of plain ones, which have no properties.

extension MQTTEngine {
    /// Publishes QoS 0 messages, as `publish` would, as long as they are plain, and returns where the next one begins: it
    /// is for the general path to judge, if there is room in ``output``. Keep alive hears of it by
    /// ``outputTaken(at:)`` alone.
    ///
    /// - Parameter outputLimit: no message is begun when ``output`` has as many bytes.
    public mutating func publishRunAtMostOnce(
        _ messages: ArraySlice<MQTTOutgoingMessage>, from start: Int, outputLimit: Int
    ) -> Int {
        guard phase == .connected, outboundAliases.maximum == 0 else { return start }
        // Safe: the array is neither changed nor given back while its bytes are read.
        return unsafe messages.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return start }
            var offset = start - messages.startIndex
            while offset < buffer.count, output.count < outputLimit,
                let message = unsafe LentMessage(base + offset), unsafe message.qos == .atMostOnce,
                unsafe writePlain(message, packetID: 0)
            {
                offset += 1
            }
            return messages.startIndex + offset
        }
    }

    /// Publishes QoS 1 messages, as `publish` would, as long as they are plain and the window has room, and returns where
    /// the next one begins. It is for the general path: to be judged, or to wait in the queue.
    ///
    /// The array is kept until the last of them is acknowledged. Acknowledgements in the order of the messages are
    /// counted together in one ``MQTTPublishCompletion``.
    /// - Parameter token: given back for all of them.
    public mutating func publishRunAtLeastOnce(
        _ messages: [MQTTOutgoingMessage], from start: Int, token: UInt64, at now: Int64
    ) -> Int {
        guard phase == .connected, outboundAliases.maximum == 0, !configuration.persists,
            limits.maximumQoS != .atMostOnce, session.window.queue.count == 0, session.window.resend < 0
        else { return start }
        // Safe: as above.
        let next = unsafe messages.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return start }
            var next = start
            while next < buffer.count {
                let room = min(windowLimit - session.window.used, buffer.count - next)
                let ids = session.window.reserveIDs(atMost: room)
                var count = 0
                while count < ids.count, let message = unsafe LentMessage(base + next + count),
                    unsafe message.qos == .atLeastOnce,
                    unsafe writePlain(message, packetID: ids.first + UInt16(truncatingIfNeeded: count))
                {
                    count += 1
                }
                session.window.recordRun(messages, from: next, ids, written: count, token: token, at: now)
                next += count
                guard count > 0, count == ids.count else { break }
            }
            return next
        }
        if next > start { keepAlive.sent(at: now) }
        return next
    }

    /// Appends PUBLISH if the general path would; false if nothing was done.
    @inline(__always) @unsafe
    private mutating func writePlain(_ message: LentMessage, packetID: UInt16) -> Bool {
        guard unsafe !message.retain || limits.retainAvailable else { return false }
        // Safe: the caller keeps the bytes for as long as this call lasts.
        return unsafe MQTTPacket.Publish.encodePlain(
            into: &output, hasProperties: version.hasProperties,
            flags: message.qos.rawValue << 1 | (message.retain ? 1 : 0), packetID: packetID,
            topic: RawSpan(_unsafeBytes: message.topic), payload: RawSpan(_unsafeBytes: message.payload),
            maximumPacketSize: Int(limits.maximumPacketSize)) > 0
    }

    /// Ends messages of the first run by PUBACK packets without a reason, as long as they come in its order, and returns
    /// where they end.
    mutating func receiveAcknowledgementsOfRun(
        _ bytes: RawSpan, from start: Int, _ effects: inout MQTTEffects
    ) -> Int {
        let most = min(session.window.firstRun.count, (bytes.byteCount - start) / 4)
        let id = session.window.firstRun.id
        var count = 0
        while count < most, bytes.uint16(at: start + count * 4) == 0x4002,
            bytes.uint16(at: start + count * 4 + 2) == id + UInt16(truncatingIfNeeded: count)
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
        var remark: Int32 = -1
        if !properties.isEmpty {
            remark = Int32(truncatingIfNeeded: effects.events.count)
            effects.report(.acknowledgementProperties(token: token, properties))
        }
        effects.completions.append(
            MQTTPublishCompletion(
                token: token, outcome: reason.isError ? .refused : .acknowledged, reason: reason, remark: remark))
        pump(at: now, into: &effects)
    }
}
