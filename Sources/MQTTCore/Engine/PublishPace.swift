import Wire

/// How many messages, and bytes of topics and payloads, may leave in a second.
///
/// Within any second no more messages than the limit leave, and no more bytes unless a message has more than a quarter of
/// them: a short burst leaves at once, and what follows is spread.
struct PublishPace: Sendable {
    /// A bucket that drains at a constant rate. A message may leave while it holds no more than is tolerated.
    private struct Bucket {
        let unitsPerSecond: Int64
        let toleratedNanoseconds: Int64
        /// When it is empty.
        private var emptied = Int64.min

        init(unitsPerSecond: Int64, tolerated: Int64) {
            self.unitsPerSecond = max(1, unitsPerSecond)
            toleratedNanoseconds = tolerated * (1_000_000_000 / self.unitsPerSecond)
        }

        mutating func add(_ units: Int, at now: Int64) {
            // Rounded up. A packet has at most 256 MiB.
            emptied = max(emptied, now).advanced(byNanoseconds: Int64(units) * 1_000_000_000 / unitsPerSecond + 1)
        }

        /// From when on another message may leave.
        var opening: Int64 { emptied == .min ? .min : emptied - toleratedNanoseconds }
    }

    private var messages: Bucket?
    private var bytes: Bucket?

    init(maximumMessages: Int?, maximumBytes: Int?) {
        messages = maximumMessages.map {
            // The burst and what drains within a second are the limit together.
            let limit = Int64(min(max(1, $0), 1_000_000_000))
            let burst = max(1, limit / 10)
            return Bucket(unitsPerSecond: limit - burst, tolerated: burst - 1)
        }
        bytes = maximumBytes.map {
            // A quarter is left for the message that follows the burst.
            let limit = Int64(max(1, min($0, 1 << 30)))
            return Bucket(unitsPerSecond: limit / 8 * 5, tolerated: limit / 8)
        }
    }

    /// A message has left.
    mutating func add(byteCount: Int, at now: Int64) {
        messages?.add(1, at: now)
        bytes?.add(byteCount, at: now)
    }

    /// From when on another message may leave.
    var opening: Int64 { max(messages?.opening ?? .min, bytes?.opening ?? .min) }
}

extension MQTTEngine {
    /// Whether what leaves in a second is limited: then every message goes through the pace, or waits in the queue for it.
    var isPaced: Bool {
        options.value.maximumPublishesPerSecond != nil || options.value.maximumPublishedBytesPerSecond != nil
    }

    /// Whether messages may be written, as far as the connection is concerned.
    var mayPump: Bool {
        messagesMayLeave || (isPaced && phase == .connected && subscribingStage == .done && !isCareful)
    }

    /// Publishes at once if the pace allows it; otherwise the message waits in the queue.
    mutating func publishAtPace(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        guard mayPump else { return try queueForLater(head, payload, properties, token, now) }
        guard now >= paceOpening else {
            let outcome = try queueForLater(head, payload, properties, token, now)
            paceDeadline = paceOpening
            return outcome
        }
        let outcome = try publishNow(head, payload, properties, token, now)
        if case .written = outcome { addToPace(head.topic.utf8.count + payload.count, at: now) }
        return outcome
    }

    mutating func addToPace(_ byteCount: Int, at now: Int64) {
        var pace =
            self.pace.value
            ?? PublishPace(
                maximumMessages: options.value.maximumPublishesPerSecond,
                maximumBytes: options.value.maximumPublishedBytesPerSecond)
        pace.add(byteCount: byteCount, at: now)
        self.pace.value = pace
    }

    /// Whether a message that waits may leave; otherwise it gets its deadline.
    mutating func paceAllows(at now: Int64) -> Bool {
        let opening = paceOpening
        if now >= opening { return true }
        paceDeadline = opening
        return false
    }

    private var paceOpening: Int64 { pace.value?.opening ?? .min }
}
