import MessagingWire

/// The topic aliases that we give out on one connection: the least recently used one is given to a new topic.
///
/// Topics are compared as bytes: two spellings that Swift's `==` takes for equal are different topics
/// [MQTT 5.0 4.7.3-4]. No mapping outlives its connection [MQTT 5.0 3.3.2-7].
struct OutboundAliases: Sendable {
    /// What to write for a topic.
    struct Choice {
        var alias: UInt16
        /// The peer knows the alias already, so that the topic is left empty.
        var isKnown: Bool
    }

    private struct Entry: Sendable {
        var hash: UInt64
        var lastUse: UInt64
        var topic: [UInt8]
    }

    private var entries: [Entry] = []
    private var clock: UInt64 = 0
    private var last: UInt16 = 0
    /// The largest alias that may be used; 0 for none [MQTT 5.0 3.3.2-9].
    private(set) var maximum: UInt16 = 0

    /// Forgets all aliases and allows `maximum` of them.
    mutating func reset(maximum: UInt16) {
        self.maximum = maximum
        entries.removeAll(keepingCapacity: maximum != 0)
        last = 0
    }

    /// The alias of a topic, given out now if it has none.
    mutating func choose(_ topic: RawSpan) -> Choice {
        clock &+= 1
        if last < entries.count, matches(Int(last), topic) { return known(Int(last)) }
        let hash = topic.hashed
        var oldest = 0
        for index in entries.indices {
            if entries[index].hash == hash, matches(index, topic) { return known(index) }
            if entries[index].lastUse < entries[oldest].lastUse { oldest = index }
        }
        let bytes = (0..<topic.byteCount).map { topic.byte(at: $0) }
        let entry = Entry(hash: hash, lastUse: clock, topic: bytes)
        if entries.count < maximum {
            entries.append(entry)
            last = UInt16(entries.count - 1)
        } else {
            entries[oldest] = entry
            last = UInt16(oldest)
        }
        return Choice(alias: last + 1, isKnown: false)
    }

    /// Withdraws the alias that was assigned last: the packet that introduces it was not written.
    mutating func withdrawLast() {
        entries[Int(last)].topic = []
        entries[Int(last)].lastUse = 0
    }

    private func matches(_ index: Int, _ topic: RawSpan) -> Bool {
        let known = entries[index].topic
        // The bytes of an array of bytes: nothing to reinterpret.
        return unsafe known.count == topic.byteCount && known.span.bytes.isEqual(at: 0, to: topic)
    }

    private mutating func known(_ index: Int) -> Choice {
        entries[index].lastUse = clock
        last = UInt16(index)
        return Choice(alias: UInt16(index + 1), isKnown: true)
    }
}

/// The topic aliases that the peer gave out on one connection, up to the maximum that we advertised
/// [MQTT 5.0 3.3.2-10].
struct InboundAliases: Sendable {
    /// Where the bytes of a topic are.
    struct Topic {
        var start: Int
        var count: Int
        /// Whether they are in ``MQTTEffects/aliasTopics`` rather than among the bytes that were received.
        var isAliased = false
    }

    private struct Entry: Sendable {
        var topic: [UInt8] = []
        /// Where it was copied to for the messages of a read, and for which read.
        var start = 0
        var read: UInt64 = 0
    }

    private var entries: [Entry] = []
    private(set) var maximum = 0
    private var read: UInt64 = 1

    /// Forgets all aliases and allows `maximum` of them.
    mutating func reset(maximum: UInt16) {
        self.maximum = Int(maximum)
        entries = []
    }

    /// The topics that were copied for earlier messages are no longer in the effects.
    mutating func beginRead() { read += 1 }

    /// Remembers the topic of an alias, which is at most `maximum` and not 0.
    mutating func set(_ alias: Int, _ topic: RawSpan) {
        while entries.count < alias { entries.append(Entry()) }
        entries[alias - 1] = Entry(topic: topic.copied)
    }

    /// Forgets the topic of an alias, which is at most `maximum` and not 0.
    mutating func remove(_ alias: Int) { if alias <= entries.count { entries[alias - 1] = Entry() } }

    /// The topic of an alias, copied to the end of `topics` once for each read, so that many messages to a long topic take
    /// no more memory than the aliases themselves. Nil if the alias was never set.
    mutating func topic(of alias: Int, in topics: inout [UInt8]) -> Topic? {
        guard alias <= entries.count, !entries[alias - 1].topic.isEmpty else { return nil }
        if entries[alias - 1].read != read {
            entries[alias - 1].read = read
            entries[alias - 1].start = topics.count
            topics += entries[alias - 1].topic
        }
        return Topic(start: entries[alias - 1].start, count: entries[alias - 1].topic.count, isAliased: true)
    }

    /// The topic of an alias as text; nil if the alias was never set.
    func name(of alias: UInt16) -> String? {
        guard alias > 0, alias <= entries.count, !entries[Int(alias) - 1].topic.isEmpty else { return nil }
        return String(decoding: entries[Int(alias) - 1].topic, as: UTF8.self)
    }
}

extension MQTTEngine {
    /// The topic that an alias of the peer currently stands for, so that a packet which is kept from this engine can be
    /// shown.
    package func topic(ofInboundAlias alias: UInt16) -> String? { inboundAliases.name(of: alias) }
}
