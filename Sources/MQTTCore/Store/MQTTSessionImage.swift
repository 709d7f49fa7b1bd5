import MessagingWire

/// The state that a log of ``MQTTStoreRecord``s adds up to, from which a store writes the shortest log with the same
/// meaning.
public struct MQTTSessionImage: Sendable {
    private struct Unfinished: Sendable {
        var message: MQTTStoreRecord.Message
        /// When PUBREC arrived, as a number that rises with each; 0 if it did not.
        var release: UInt64 = 0
    }

    private var isEstablished = false
    private var messages: [UInt64: Unfinished] = [:]
    private var lastRelease: UInt64 = 0
    private var received: Set<UInt16> = []
    private var retired: Set<UInt16> = []

    private var keptMessages: [UInt64: MQTTStoreRecord.Message] = [:]

    /// Retained messages of QoS 2 whose identifier was not released by PUBREL.
    private var keptIdentifiers: [UInt16: UInt64] = [:]

    /// The records of received messages that the client retains, oldest first.
    public var kept: [MQTTStoreRecord] { keptMessages.sorted { $0.key < $1.key }.map { .kept($0.value) } }

    /// The topic filters that the server may have, and whether each is wanted.
    private(set) var filters: [ByteKey: Bool] = [:]

    /// The bytes of topics and payloads of the messages that are not finished.
    public private(set) var byteCount = 0

    public init() {}

    /// The number of messages that are not finished.
    public var messageCount: Int { messages.count }

    /// Applies a record. Records that make no sense, as a damaged store may hold, are ignored.
    public mutating func apply(_ record: MQTTStoreRecord) {
        switch record {
        case .established: isEstablished = true
        case .message(let message):
            guard messages[message.sequence] == nil, message.qos != .atMostOnce, Self.isUsable(message) else { return }
            messages[message.sequence] = Unfinished(message: message)
            byteCount += Self.size(of: message)
        case .identified(let sequence, let id):
            messages[sequence]?.message.packetID = id
            // With a new identifier it is sent from the start again.
            messages[sequence]?.release = 0
        case .released(let sequence):
            guard let found = messages[sequence], found.release == 0, found.message.qos == .exactlyOnce,
                found.message.packetID != 0
            else { return }
            lastRelease += 1
            messages[sequence]?.release = lastRelease
        case .finished(let sequence):
            guard let found = messages.removeValue(forKey: sequence) else { return }
            byteCount -= Self.size(of: found.message)
        case .received(let id): received.insert(id)
        case .receivedReleased(let id):
            received.remove(id)
            forgetIdentifier(id)
        case .retired(let id): retired.insert(id)
        case .receivedForgotten:
            (received, retired) = ([], [])
            for id in keptIdentifiers.keys { forgetIdentifier(id) }
        case .discarded: self = MQTTSessionImage()
        case .kept(let message):
            guard keptMessages[message.sequence] == nil, message.qos != .atMostOnce, Self.isUsable(message) else {
                return
            }
            keptMessages[message.sequence] = message
            guard message.qos == .exactlyOnce, message.packetID != 0 else { return }
            forgetIdentifier(message.packetID)
            received.insert(message.packetID)
            keptIdentifiers[message.packetID] = message.sequence
        case .keptFinished(let sequence): keptMessages[sequence] = nil
        case .filterWanted(let filter): note(filter, isWanted: true)
        case .filterEnded(let filter): note(filter, isWanted: false)
        case .filterForgotten(let filter): filters[ByteKey(filter)] = nil
        }
    }

    /// Whether a record may have an effect: the end of a message that is not in the image has none.
    package func canChange(by record: MQTTStoreRecord) -> Bool {
        switch record {
        case .finished(let sequence): messages[sequence] != nil
        case .keptFinished(let sequence): keptMessages[sequence] != nil
        default: true
        }
    }

    /// Whether others can follow it, and its topic fits into a packet.
    private static func isUsable(_ message: MQTTStoreRecord.Message) -> Bool {
        message.sequence < 1 << 62 && message.topic.utf8.count <= 65_535
    }

    private mutating func note(_ filter: String, isWanted: Bool) {
        if MQTTTopicFilter.flaw(in: filter) == nil { filters[ByteKey(filter)] = isWanted }
    }

    /// PUBREL arrived: the record of a retained message no longer holds its identifier.
    private mutating func forgetIdentifier(_ id: UInt16) {
        guard let sequence = keptIdentifiers.removeValue(forKey: id) else { return }
        keptMessages[sequence]?.packetID = 0
    }

    private static func size(of message: MQTTStoreRecord.Message) -> Int {
        message.topic.utf8.count + message.payload.count
    }

    /// Sequences of messages whose PUBREC arrived, in the order of PUBREC: PUBREL is sent in the same one [MQTT-4.6.0-4].
    private var released: [UInt64] {
        messages.lazy.filter { $0.value.release > 0 }.sorted { $0.value.release < $1.value.release }.map { $0.key }
    }

    /// The shortest log.
    public var records: [MQTTStoreRecord] {
        (isEstablished ? [.established] : [])
            // Sorting numbers is cheaper than moving the records with them.
            + messages.keys.sorted().compactMap { messages[$0].map { .message($0.message) } }
            + released.map { .released(sequence: $0) }
            + received.sorted().map { .received(packetID: $0) } + retired.sorted().map { .retired(packetID: $0) }
            + kept
            + filters.sorted { $0.key < $1.key }.map { $1 ? .filterWanted($0.text) : .filterEnded($0.text) }
    }
}
