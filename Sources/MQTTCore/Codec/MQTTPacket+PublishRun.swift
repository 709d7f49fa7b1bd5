// The hot path of sending many messages: like `encodePlain`, with the common parts examined once.

import Wire

/// What is the same for all messages of a run.
struct PublishRun {
    let qos: QoS
    /// The identifier of the first message, followed by those of the others; 0 at QoS 0.
    let firstPacketID: UInt16
    let hasProperties: Bool
    let retainAvailable: Bool
    let maximumPacketSize: Int
    /// No packet is begun when the output has as many bytes.
    let outputLimit: Int
}

extension MQTTPacket.Publish {
    /// Appends messages as long as they are plain, and returns how many they are. What is not is left to the general
    /// path, as by ``encodePlain(into:hasProperties:flags:packetID:topic:payload:maximumPacketSize:)``.
    @unsafe
    static func encodePlainRun(
        into output: inout [UInt8], _ messages: UnsafeBufferPointer<MQTTOutgoingMessage>, _ run: PublishRun
    ) -> Int {
        guard let base = messages.baseAddress else { return 0 }
        var done = 0
        var goesOn = true
        while goesOn, done < messages.count, output.count < run.outputLimit {
            // Room for many at a time: asking for each whether there is some costs half as much as writing it.
            guard let first = unsafe LentMessage(base + done) else { break }
            let most = unsafe first.topic.count + first.properties.count + first.payload.count + 8
            let room = max(most, min(most * (messages.count - done), 16_384))
            let limit = run.outputLimit - output.count
            output.append(addingCapacity: room) { output in
                unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
                    guard let start = buffer.baseAddress else { return }
                    // Safe: what is free lies behind what is initialized.
                    let free = unsafe UnsafeMutableRawBufferPointer(
                        start: start + initialized, count: buffer.count - initialized)
                    let written = unsafe writePlainRun(messages, &done, &goesOn, to: free, limit, run)
                    initialized += written
                }
            }
        }
        return done
    }

    /// Writes messages from `done` on while there is room; returns how many bytes they take.
    ///
    /// - Parameter goesOn: set to false by a message that is not plain.
    @inline(__always) @unsafe
    private static func writePlainRun(
        _ messages: UnsafeBufferPointer<MQTTOutgoingMessage>, _ done: inout Int, _ goesOn: inout Bool,
        to target: UnsafeMutableRawBufferPointer, _ limit: Int, _ run: PublishRun
    ) -> Int {
        guard let base = messages.baseAddress, let start = target.baseAddress else { return 0 }
        var offset = 0
        // Of the last packet that was written in full: arrays of messages mostly go to one topic, whose string they share.
        var lastTopic: UnsafeRawPointer?
        var lastTopicCount = 0
        var lastPayloadCount = 0
        var lastPropertiesCount = 0
        var lastFlags = MQTTPublishFlags(rawValue: 0)
        var lastCount = 0
        var lastHead = 0
        var headCount = 0
        while done < messages.count, offset < limit {
            guard let message = unsafe LentMessage(base + done), unsafe message.qos == run.qos,
                unsafe !message.retain || run.retainAvailable
            else {
                goesOn = false
                break
            }
            let topicCount = unsafe message.topic.count
            let payloadCount = unsafe message.payload.count
            let propertiesCount = unsafe message.properties.count
            guard propertiesCount == 0 || run.hasProperties else {
                goesOn = false
                break
            }
            let flags = unsafe MQTTPublishFlags(run.qos, retain: message.retain)
            // Safe: `target` has room for `count` bytes behind `offset`, exactly as many as are written.
            var to = unsafe start + offset
            if unsafe message.topic.baseAddress == lastTopic, topicCount == lastTopicCount,
                payloadCount == lastPayloadCount, propertiesCount == lastPropertiesCount, flags == lastFlags
            {
                guard target.count - offset >= lastCount else { break }
                // Not of the packet before: its bytes are still on their way to the cache, and reading them would wait.
                unsafe RawSpan(_unsafeStart: start + lastHead, byteCount: headCount).copyWords(to: to)
                unsafe to += headCount
            } else {
                let idCount = run.qos == .atMostOnce ? 0 : 2
                let middleCount = idCount + (run.hasProperties ? 1 : 0) + propertiesCount
                let bodyCount = 2 + topicCount + middleCount + payloadCount
                let count = bodyCount + (bodyCount < 128 ? 2 : 3)
                guard topicCount < 16_384, payloadCount < 16_384, bodyCount < 16_384, count <= run.maximumPacketSize
                else {
                    goesOn = false
                    break
                }
                guard target.count - offset >= count else { break }
                unsafe writeHead(&to, flags: flags, bodyCount: bodyCount, topicCount: topicCount)
                guard unsafe TextScan.copyName(RawSpan(_unsafeBytes: message.topic), to: to) else {
                    goesOn = false
                    break
                }
                unsafe to += topicCount
                unsafe lastTopic = unsafe message.topic.baseAddress
                lastTopicCount = topicCount
                lastPayloadCount = payloadCount
                lastPropertiesCount = propertiesCount
                lastFlags = flags
                lastCount = count
                lastHead = offset
                headCount = unsafe to - (start + offset)
            }
            let id = run.qos == .atMostOnce ? 0 : run.firstPacketID &+ UInt16(truncatingIfNeeded: done)
            unsafe writeMiddle(
                &to, packetID: id, hasProperties: run.hasProperties, RawSpan(_unsafeBytes: message.properties))
            unsafe RawSpan(_unsafeBytes: message.payload).copyWords(to: to)
            offset += lastCount
            done += 1
        }
        return offset
    }
}

/// Where the bytes of a message with plain properties lie; the array that holds the message owns them.
///
/// Taken out of an array, each message would cost three counted references, which is more than encoding it.
@unsafe struct LentMessage {
    let topic: UnsafeRawBufferPointer
    let payload: UnsafeRawBufferPointer
    let properties: UnsafeRawBufferPointer
    let qos: QoS
    let retain: Bool

    /// Nil for messages with other properties, and for topics that do not lie in memory of their own: up to 15 bytes lie in
    /// the `String` itself.
    ///
    /// The pointers hold as long as the message stays where it is, unchanged.
    @inline(__always)
    init?(_ message: UnsafePointer<MQTTOutgoingMessage>) {
        guard unsafe message.pointee.topic.utf8.count > 15, unsafe message.pointee.properties.arePlain,
            let topic = unsafe message.pointee.topic.utf8.withContiguousStorageIfAvailable({
                UnsafeRawBufferPointer($0)
            })
        else { return nil }
        unsafe self.topic = unsafe topic
        unsafe payload = unsafe message.pointee.payload.withUnsafeBytes { unsafe $0 }
        unsafe properties = unsafe message.pointee.properties.encoded.withUnsafeBytes { unsafe $0 }
        unsafe qos = unsafe message.pointee.qos
        unsafe retain = unsafe message.pointee.retain
    }
}
