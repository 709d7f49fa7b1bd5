import MessagingWire

/// Reads PUBLISH packets that can be judged by their bytes alone: whole, below 16 KiB, of QoS 0 or 1, with a topic name and
/// less than 128 bytes of properties. Everything else, and whatever breaks the protocol, is left to the general path.
///
/// Messages that follow each other often have the same topic and the same properties. Bytes that equal checked ones need no
/// check: that is all that a run of messages to one topic saves.
struct PublishReader {
    private let hasProperties: Bool
    /// A server checks QoS, RETAIN and Subscription Identifiers against its configuration, on the general path.
    private let isServer: Bool
    private let maximumBodyCount: Int
    private let maximumPropertiesCount: Int
    /// The tokens for the next QoS 1 messages: one for each that may still arrive before an acknowledgement is sent.
    private(set) var tokens: Range<UInt64>

    /// The first byte of the last packet that was accepted; before the first packet, a byte that is valid for both
    /// roles.
    private var flags: UInt8 = 0x30
    /// The last topic, with its length. Before the first topic the count is larger than any packet, so that none
    /// matches.
    private var topicStart = 0
    private var topicCount = Int.max
    private var destination: UInt16 = 0
    /// The last properties, without their length.
    private var propertiesStart = 0
    private var propertiesCount = 0

    init(
        hasProperties: Bool, isServer: Bool, maximumPacketSize: Int, maximumPropertiesCount: Int, tokens: Range<UInt64>
    ) {
        self.hasProperties = hasProperties
        self.isServer = isServer
        // The longest fixed header that is read here has three bytes.
        maximumBodyCount = maximumPacketSize - 3
        self.maximumPropertiesCount = maximumPropertiesCount
        self.tokens = tokens
    }

    /// Continues behind a message in the same bytes, whose topic the next one may have.
    mutating func resume(after message: MQTTMessageRecord) {
        guard !message.isTopicAliased else { return }
        topicStart = Int(message.topicStart) - 2
        topicCount = Int(message.topicCount) + 2
        destination = message.destination
    }

    /// What was read: where it ends, and how many messages have another topic than the one before them.
    struct Outcome {
        var end: Int
        var topicChanges = 0
    }

    /// Appends a record for each message from `offset` on, up to the first packet for the general path.
    ///
    /// - Parameter topics: topics that were checked before, and need no other check than that they are among these.
    mutating func read(
        _ bytes: RawSpan, from offset: Int, into records: inout OutputSpan<MQTTMessageRecord>,
        knowing topics: borrowing TopicTable
    ) -> Outcome {
        var outcome = Outcome(end: offset)
        guard offset >= 0 else { return outcome }
        unsafe records.withUnsafeMutableBufferPointer { buffer, initialized in
            guard let base = buffer.baseAddress else { return }
            // Values that change with each message are in registers here; values that a closure captures are not.
            var (reader, result, filled) = (self, outcome, initialized)
            defer { (self, outcome, initialized) = (reader, result, filled) }
            // Safe: at least four bytes are there when the frame is read, and a record is written only where there is room.
            while bytes.byteCount &- result.end >= 4, filled < buffer.count {
                guard let frame = unsafe reader.frame(bytes, at: result.end) else { break }
                let repeatsTopic = unsafe reader.hasLastTopic(bytes, frame)
                if !repeatsTopic {
                    guard unsafe reader.takeTopic(bytes, frame, knowing: topics) else { break }
                    result.topicChanges &+= 1
                }
                var end = frame.body &+ reader.topicCount
                var packetID: UInt16 = 0
                if frame.flags & 0x02 != 0 {
                    guard frame.end &- end >= 2, !reader.tokens.isEmpty else { break }
                    packetID = bytes.bigEndian(UInt16.self, at: end)
                    if packetID == 0 { break }
                    end &+= 2
                }
                var properties = end
                if reader.hasProperties {
                    guard end < frame.end else { break }
                    let count = unsafe Int(bytes.uncheckedByte(at: end))
                    properties = end &+ 1
                    end = properties &+ count
                    guard end <= frame.end, count == 0 || reader.takeProperties(bytes, properties, count) else { break }
                }
                var delivery: UInt64 = 0
                if packetID != 0 {
                    delivery = reader.tokens.lowerBound
                    reader.tokens = delivery &+ 1..<reader.tokens.upperBound
                }
                unsafe (base + filled).initialize(
                    to: MQTTMessageRecord(
                        delivery: delivery, topicStart: UInt32(truncatingIfNeeded: frame.body &+ 2),
                        topicCount: UInt16(truncatingIfNeeded: reader.topicCount &- 2),
                        propertiesStart: UInt32(truncatingIfNeeded: properties),
                        payloadStart: UInt32(truncatingIfNeeded: end),
                        payloadCount: UInt32(truncatingIfNeeded: frame.end &- end), packetID: packetID,
                        flags: MQTTPublishFlags(rawValue: frame.flags & 0x0F),
                        topicForm: repeatsTopic ? .repeatedName : .name, destination: reader.destination))
                filled &+= 1
                result.end = frame.end
            }
        }
        return outcome
    }

    private struct Frame {
        let flags: UInt8
        let body: Int
        let end: Int
    }

    /// The packet at `offset` if it is whole, small and such a PUBLISH; four bytes must be there.
    @inline(__always) @unsafe
    private mutating func frame(_ bytes: RawSpan, at offset: Int) -> Frame? {
        let flags = unsafe bytes.uncheckedByte(at: offset)
        if flags != self.flags {
            // DUP has no meaning at QoS 0, and the versions of MQTT treat it differently.
            guard isServer ? flags == 0x30 : flags & 0xFE == 0x30 || flags & 0xF6 == 0x32 else { return nil }
            self.flags = flags
        }
        var bodyCount = Int(unsafe bytes.uncheckedByte(at: offset &+ 1))
        var body = offset &+ 2
        if bodyCount >= 0x80 {
            let second = Int(unsafe bytes.uncheckedByte(at: offset &+ 2))
            guard second < 0x80, second != 0 else { return nil }
            bodyCount = bodyCount & 0x7F | second &<< 7
            body &+= 1
        }
        let end = body &+ bodyCount
        guard end <= bytes.byteCount, bodyCount <= maximumBodyCount else { return nil }
        return Frame(flags: flags, body: body, end: end)
    }

    /// Whether a packet has the topic of the one before it.
    @inline(__always) @unsafe
    private func hasLastTopic(_ bytes: RawSpan, _ frame: Frame) -> Bool {
        // Safe: as many bytes are there in both places.
        frame.end &- frame.body >= topicCount
            && (unsafe bytes.isEqualUnchecked(topicStart, frame.body, count: topicCount))
    }

    /// Checks the topic of a packet and remembers it.
    @inline(__always) @unsafe
    private mutating func takeTopic(
        _ bytes: RawSpan, _ frame: Frame, knowing topics: borrowing TopicTable
    ) -> Bool {
        guard frame.end &- frame.body >= 2 else { return false }
        let count = Int(bytes.bigEndian(UInt16.self, at: frame.body))
        let topic = frame.body &+ 2..<frame.body &+ 2 &+ count
        guard count > 0, topic.upperBound <= frame.end else { return false }
        destination = topics.number(of: bytes.extracting(topic))
        guard destination != 0 || TextScan.isPlainName(bytes, topic) || TextScan.scan(bytes, topic).isEmpty
        else { return false }
        topicStart = frame.body
        topicCount = count &+ 2
        return true
    }

    /// Checks properties, all of which are there, and remembers them unless they equal the last ones.
    @inline(__always)
    private mutating func takeProperties(_ bytes: RawSpan, _ start: Int, _ count: Int) -> Bool {
        // Safe: as many bytes are there in both places.
        if count == propertiesCount, unsafe bytes.isEqualUnchecked(propertiesStart, start, count: count) { return true }
        guard areValid(bytes, start..<start &+ count) else { return false }
        propertiesStart = start
        propertiesCount = count
        return true
    }

    /// Whether properties are valid and do not concern the engine.
    @inline(never)
    private func areValid(_ bytes: RawSpan, _ range: Range<Int>) -> Bool {
        guard range.count < 0x80, range.count <= maximumPropertiesCount else { return false }
        if areUserProperties(bytes, range) { return true }
        guard let scan = try? MQTTPublishScan(bytes, range) else { return false }
        return scan.topicAlias == 0 && (!isServer || scan.subscriptionIdentifierCount == 0)
    }

    /// Whether these are valid user properties and nothing else, as most are.
    private func areUserProperties(_ bytes: RawSpan, _ range: Range<Int>) -> Bool {
        var start = range.lowerBound
        while start < range.upperBound, bytes.byte(at: start) == MQTTPropertyIdentifier.userProperty.rawValue {
            start += 1
            // The name and the value.
            for _ in 0..<2 {
                guard range.upperBound - start >= 2 else { return false }
                let end = start + 2 + Int(bytes.bigEndian(UInt16.self, at: start))
                guard end <= range.upperBound,
                    TextScan.scan(bytes, start + 2..<end).isDisjoint(with: [.null, .illFormed])
                else { return false }
                start = end
            }
        }
        return start == range.upperBound
    }
}
