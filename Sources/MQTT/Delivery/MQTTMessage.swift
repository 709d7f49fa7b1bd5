public import MQTTCore
public import MessagingShell
public import MessagingWire

/// A received message: a view into the batch that it arrived in, cheap to copy and to pass on.
///
/// A message keeps the memory of its whole batch alive, up to the bytes of one read. To keep a single message for long,
/// keep its ``bytes`` instead.
public struct MQTTMessage: ReplyMessage {
    @usableFromInline let batch: MQTTBatch
    @usableFromInline let index: Int

    @inlinable
    init(batch: MQTTBatch, index: Int) {
        self.batch = batch
        self.index = index
    }

    /// The topic that the message was published to. Makes a string; ``topicName`` does not.
    @inlinable public var topic: String { batch.topic(at: index) }

    /// The topic as a view of the bytes that were received, to be compared without making a string.
    @inlinable public var topicName: TopicName { TopicName(bytes: batch.topicBytes(at: index)) }

    /// The payload, without a copy.
    @inlinable public var payload: ArraySlice<UInt8> {
        let record = batch.records[index]
        let start = Int(record.payloadStart)
        return batch.bytes[start..<start &+ Int(record.payloadCount)]
    }

    /// A copy of the payload.
    @inlinable public var bytes: [UInt8] {
        let all = batch.bytes
        return [UInt8](copying: batch.records[index].payload, of: all.span)
    }

    /// The payload as text, or nil if it is not UTF-8.
    public var text: String? { String(validating: payload, as: UTF8.self) }

    /// The quality of service that the message was delivered with.
    @inlinable public var qos: QoS { batch.records[index].flags.qos }

    /// Whether the server had retained the message and sent it because of the subscription.
    @inlinable public var isRetained: Bool { batch.records[index].flags.isRetained }

    /// Whether the server marks the message as sent before (DUP).
    ///
    /// A hint only: a message with DUP may be the first to arrive, and one without may be a repetition, for example from a
    /// publisher that sent it twice. Do not skip messages for it; compare a name of your own in the topic or the payload
    /// [MQTT-3.3.1-3].
    public var isDuplicate: Bool { batch.records[index].flags.isDuplicate }

    /// The packet identifier, or nil for QoS 0.
    public var packetID: UInt16? {
        let packetID = batch.records[index].packetID
        return packetID == 0 ? nil : packetID
    }

    /// How many QoS 0 messages were dropped just before this one because its receiver was slow.
    @inlinable public var droppedBefore: Int { index == 0 ? batch.gap : 0 }

    /// The properties of PUBLISH; empty before MQTT 5.0.
    public var properties: MQTTProperties {
        let record = batch.records[index]
        guard !record.properties.isEmpty else { return [] }
        let bytes = batch.bytes
        return unsafe record.decodeProperties(in: bytes.span.bytes)
    }

    /// What `+` and `#` of the subscription's filter match in the topic, in their order; `#` matches all that is left. Of
    /// several filters the first that matches counts.
    public var captures: [String] {
        for request in batch.route?.requests ?? [] {
            if let captures = MQTTTopicFilter.captures(of: request.filter, in: topic) { return captures }
        }
        return []
    }

    /// Never nil: a responder has to copy its Correlation Data (MQTT 5.0 4.10.2), so that a message without it
    /// is no reply, unlike in STOMP, where brokers drop such headers.
    @usableFromInline package var correlation: [UInt8]? { properties.correlationData }

    public var content: ArraySlice<UInt8> { payload }
    public var mediaType: String? { properties.contentType.map(MediaType.name(in:)) }

    /// Acknowledges a message of a subscription with manual acknowledgement; otherwise does nothing.
    ///
    /// Acknowledgements are sent in the order in which the messages arrived [MQTT-4.6.0-2].
    public func acknowledge() {
        let delivery = batch.records[index].delivery
        // A subscription with manual acknowledgement may have the same message.
        guard delivery != 0, batch.route?.acknowledgement == .manual else { return }
        batch.core?.acknowledge(delivery)
    }

    /// The same message with another payload, for a ``MQTTConfiguration/messageHook`` that decompresses or decrypts.
    public func with(payload: some Sequence<UInt8>) -> MQTTMessage {
        MQTTMessage(batch: batch.with(Array(payload), at: index), index: 0)
    }

    /// Topic, flags and the beginning of the payload.
    public var description: String {
        let flags = [qos.description] + (isRetained ? ["retained"] : []) + (isDuplicate ? ["duplicate"] : [])
        return "MQTTMessage(\(OneLine.text(topic)), \(flags.joined(separator: ", ")), \(OneLine.payload(payload)))"
    }
}

/// Sees each message of an ``MQTTClient``; see ``MQTTConfiguration/messageHook``.
public typealias MQTTMessageHook = MessageHook<MQTTOutgoingMessage, MQTTMessage, MQTTError>

extension MQTTMessage {
    /// A topic name, or a part of one, as it is in the bytes that were received.
    ///
    /// It compares with strings byte by byte, as the standard demands [MQTT-4.7.3-4], and makes no string itself:
    ///
    ///     if message.topicName.hasPrefix("house/kitchen/") { … }
    ///     for level in message.topicName.levels { … }
    public struct TopicName: Sendable, Hashable, CustomStringConvertible {
        @usableFromInline let bytes: ArraySlice<UInt8>

        @usableFromInline init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

        /// The topic as a string.
        public var description: String { String(decoding: bytes, as: UTF8.self) }

        /// Whether the topic consists of the UTF-8 bytes of a string.
        public static func == (name: TopicName, text: String) -> Bool {
            name.bytes.count == text.utf8.count && name.hasPrefix(text)
        }

        /// Whether the topic does not consist of the UTF-8 bytes of a string.
        public static func != (name: TopicName, text: String) -> Bool { !(name == text) }

        /// Lets `switch` compare a topic with strings.
        public static func ~= (text: String, name: TopicName) -> Bool { name == text }

        /// Whether the topic begins with the UTF-8 bytes of a string.
        public func hasPrefix(_ text: String) -> Bool {
            // The bytes of an array of bytes: nothing to reinterpret.
            text.withUTF8Span { unsafe bytes.span.bytes.isEqual(at: 0, to: $0) }
        }

        /// Whether a topic filter matches the topic; a shared filter matches as the filter in it does.
        public func matches(_ filter: String) -> Bool {
            // The bytes of an array of bytes: nothing to reinterpret.
            (MQTTTopicFilter.shared(filter)?.filter ?? filter).withUTF8Span { filter in
                unsafe MQTTTopicFilter.matches(filter, topic: bytes.span.bytes)
            }
        }

        /// The levels of the topic, which `/` separates; levels may be empty.
        public var levels: [TopicName] {
            bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { TopicName(bytes: $0) }
        }
    }
}
