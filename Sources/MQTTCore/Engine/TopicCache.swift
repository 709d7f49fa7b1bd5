import Wire

/// Topic bytes to validated `String`, so that UTF-8 and wildcards are checked, and a `String` is made, once for each
/// distinct topic and not for each message.
///
/// Sets of two entries, found by a hash of the bytes; the last hit is compared first, eight bytes at a time from the
/// end, since topics share prefixes. Nothing is allocated before the first message. The directory starts with 16
/// entries and grows fourfold, at most to 1,024, when topics keep pushing each other out.
///
/// An index handed out during a batch keeps its meaning until the next batch begins. When both entries of a set were
/// used in this batch, the topic gets an entry of its own past the directory, which is dropped when the next batch
/// begins; their number is bounded by the bytes of the batch. Each assignment of an index has its own generation, so
/// that a caller may keep what it knows about an index (a route) as long as the generation stays the same.
struct TopicCache: Sendable {
    private struct Entry: Sendable {
        var hash: UInt64 = 0
        var generation: UInt64 = 0
        var start: UInt32 = 0
        var capacity: UInt32 = 0
        var count: UInt32 = 0
        var batch: UInt32 = 0
    }

    private var entries: [Entry] = []
    private var strings: [String] = []
    private var slab: [UInt8] = []
    private var lastGeneration: UInt64 = 0
    private var batch: UInt32 = 1
    /// The number of entries in sets; those past it are dropped when the next batch begins.
    private var directory: Int32 = 0
    /// Topics that lost their entry to another one since the directory was made.
    private var evictions: Int32 = 0

    // As small as the places of the entries are.
    private var hitIndex: Int32 = 0
    private var hitStart: Int32 = 0
    /// -1 while there is no last hit; a topic has at least one byte.
    private var hitCount: Int32 = -1

    private static let largestDirectory = 1024

    /// The topic of an index.
    func string(at index: Int) -> String { strings[index] }

    /// A number that changes whenever the index gets another topic; 0 for an index never given.
    func generation(at index: Int) -> UInt64 { index < entries.count ? entries[index].generation : 0 }

    /// The indexes handed out so far need not be kept any longer.
    mutating func beginBatch() {
        batch &+= 1
        if entries.count > directory || evictions > directory &* 4 || slab.count > slabLimit { makeRoom() }
        if hitCount >= 0 { entries[Int(hitIndex)].batch = batch }
    }

    /// Says that an index known from earlier is used in this batch. False if it has another topic by now.
    mutating func use(_ index: Int, generation: UInt64) -> Bool {
        guard index < entries.count, entries[index].generation == generation else { return false }
        entries[index].batch = batch
        return true
    }

    /// The index of a topic; throws if its bytes are no topic name.
    @inline(__always)
    mutating func index(of topic: RawSpan) throws(MQTTProtocolError) -> Int {
        // The bytes of an array of bytes: nothing to reinterpret.
        if topic.byteCount == hitCount, unsafe slab.span.bytes.isEqual(at: Int(hitStart), to: topic) {
            return Int(hitIndex)
        }
        return try search(topic)
    }

    private mutating func search(_ topic: RawSpan) throws(MQTTProtocolError) -> Int {
        if directory == 0 { allocate(16) }
        let hash = topic.hashed
        let first = Int(truncatingIfNeeded: hash >> 32) & (Int(directory) - 1)
        if matches(first, hash, topic) { return hit(first) }
        if matches(first ^ 1, hash, topic) { return hit(first ^ 1) }
        return try miss(hash, first, topic)
    }

    @inline(never)
    private mutating func miss(_ hash: UInt64, _ first: Int, _ topic: RawSpan) throws(MQTTProtocolError) -> Int {
        for index in max(Int(directory), entries.count - 8)..<entries.count where matches(index, hash, topic) {
            return hit(index)
        }
        let string = try MQTTTopicName.string(topic, 0..<topic.byteCount)
        if entries[first].batch != batch { return assign(first, hash, topic, string) }
        if entries[first ^ 1].batch != batch { return assign(first ^ 1, hash, topic, string) }
        entries.append(Entry())
        strings.append("")
        return assign(entries.count - 1, hash, topic, string)
    }

    @inline(__always)
    private func matches(_ index: Int, _ hash: UInt64, _ topic: RawSpan) -> Bool {
        let entry = entries[index]
        return entry.hash == hash && Int(entry.count) == topic.byteCount && entry.generation != 0
            // The bytes of an array of bytes: nothing to reinterpret.
            && (unsafe slab.span.bytes.isEqual(at: Int(entry.start), to: topic))
    }

    @inline(__always)
    private mutating func hit(_ index: Int) -> Int {
        if entries[index].batch != batch { entries[index].batch = batch }
        hitIndex = Int32(truncatingIfNeeded: index)
        hitStart = Int32(truncatingIfNeeded: entries[index].start)
        hitCount = Int32(truncatingIfNeeded: entries[index].count)
        return index
    }

    private mutating func assign(_ index: Int, _ hash: UInt64, _ topic: RawSpan, _ string: String) -> Int {
        let count = topic.byteCount
        if Int(entries[index].capacity) < count {
            entries[index].start = UInt32(slab.count)
            entries[index].capacity = UInt32(count + 15 & ~15)
            slab.append(contentsOf: repeatElement(0, count: Int(entries[index].capacity)))
        }
        let start = Int(entries[index].start)
        for offset in 0..<count { slab[start + offset] = topic.byte(at: offset) }
        lastGeneration += 1
        if entries[index].generation != 0 { evictions += 1 }
        entries[index].hash = hash
        entries[index].count = UInt32(count)
        entries[index].generation = lastGeneration
        strings[index] = string
        return hit(index)
    }

    private mutating func allocate(_ size: Int) {
        directory = Int32(size)
        entries = Array(repeating: Entry(), count: size)
        strings = Array(repeating: "", count: size)
        slab = []
        evictions = 0
        hitCount = -1
    }

    private var slabLimit: Int { Int(directory) * 128 + 65_536 }

    /// A larger directory if there may be one; otherwise only what is past it goes.
    private mutating func makeRoom() {
        evictions = 0
        if directory < TopicCache.largestDirectory || slab.count > slabLimit {
            allocate(min(max(16, Int(directory) * 4), TopicCache.largestDirectory))
        } else {
            if hitIndex >= directory { hitCount = -1 }
            entries.removeLast(entries.count - Int(directory))
            strings.removeLast(strings.count - Int(directory))
        }
    }
}
