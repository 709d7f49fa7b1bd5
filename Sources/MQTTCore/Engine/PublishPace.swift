import MessagingWire

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
        /// When something was last put in.
        private var filled = Int64.min

        init(unitsPerSecond: Int64, tolerated: Int64, after earlier: Bucket?) {
            self.unitsPerSecond = max(1, unitsPerSecond)
            toleratedNanoseconds = tolerated * (1_000_000_000 / self.unitsPerSecond)
            guard let earlier, earlier.emptied > earlier.filled else { return }
            // What it holds drains at the faster of the two rates. The product is what it held in billionths: no more than
            // a packet and what is tolerated.
            let content = (earlier.emptied - earlier.filled) * earlier.unitsPerSecond
            filled = earlier.filled
            emptied = min(earlier.emptied, filled.advanced(byNanoseconds: content / self.unitsPerSecond + 1))
        }

        mutating func add(_ units: Int, at now: Int64) {
            filled = now
            // Rounded up. A packet has at most 256 MiB.
            emptied = max(emptied, now).advanced(byNanoseconds: Int64(units) * 1_000_000_000 / unitsPerSecond + 1)
        }

        /// From when on another message may leave.
        var opening: Int64 { emptied == .min ? .min : emptied - toleratedNanoseconds }
    }

    private var messages: Bucket?
    private var bytes: Bucket?

    /// - Parameter earlier: the pace with other limits that has been kept so far.
    init(maximumMessages: Int?, maximumBytes: Int?, after earlier: PublishPace? = nil) {
        messages = maximumMessages.map {
            // A burst and the messages that drain within a second make up the limit. From a limit of ten on, one
            // message less is tolerated, because messages do not all need the same time; with a smaller limit one would
            // be much.
            let limit = Int64(min(max(1, $0), 1_000_000_000))
            let burst = limit / 10
            return Bucket(unitsPerSecond: limit - burst, tolerated: max(0, burst - 1), after: earlier?.messages)
        }
        bytes = maximumBytes.map {
            // A quarter is left for the message that follows the burst.
            let limit = Int64(max(1, min($0, 1 << 30)))
            return Bucket(unitsPerSecond: limit / 8 * 5, tolerated: limit / 8, after: earlier?.bytes)
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
    /// Whether what leaves in a second is limited.
    var isPaced: Bool {
        options.value.maximumPublishesPerSecond != nil || options.value.maximumPublishedBytesPerSecond != nil
    }

    /// The limits may have changed: they count for what waits, and for what has left so far.
    mutating func changePace() {
        guard let known = pace.value else { return }
        pace.value = isPaced ? makePace(after: known) : nil
        // At once: times are not negative.
        if paceDeadline != .max { paceDeadline = 0 }
    }

    private func makePace(after earlier: PublishPace? = nil) -> PublishPace {
        PublishPace(
            maximumMessages: options.value.maximumPublishesPerSecond,
            maximumBytes: options.value.maximumPublishedBytesPerSecond, after: earlier)
    }

    /// A message was written. Without a limit nothing is counted.
    mutating func addToPace(_ byteCount: Int, at now: Int64) {
        guard isPaced else { return }
        var pace = self.pace.value ?? makePace()
        pace.add(byteCount: byteCount, at: now)
        self.pace.value = pace
    }

    /// Whether another message may leave; until then it has a deadline.
    mutating func paceAllows(at now: Int64) -> Bool {
        guard isPaced, let opening = pace.value?.opening, now < opening else { return true }
        paceDeadline = opening
        return false
    }
}
