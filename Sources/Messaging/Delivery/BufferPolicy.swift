import Synchronization

/// The bounds of a subscription's buffer, and what happens when it is full.
public struct BufferPolicy: Sendable, Equatable {
    /// What happens to messages without a delivery guarantee (MQTT QoS 0, STOMP `auto`) when the buffer is full.
    ///
    /// Messages with a guarantee are never dropped: their acknowledgements are withheld until there is room, so that
    /// the server stops sending.
    public struct Overflow: Sendable, Equatable {
        package enum Kind: Sendable { case dropOldest, pauseReading }
        package let kind: Kind

        /// Drops the oldest waiting messages; the `droppedBefore` of the next received message counts them.
        public static let dropOldest = Overflow(kind: .dropOldest)
        /// Reads nothing more from the connection until the receiver has caught up. All subscriptions of the connection
        /// wait with it; keep-alives are still sent.
        public static let pauseReading = Overflow(kind: .pauseReading)
    }

    /// The maximum number of waiting messages. Default: 65,536.
    public var messages: Int
    /// The maximum memory of waiting messages in bytes: their bytes, about 40 more for each, and 256 for those of one read.
    /// One read of the socket, up to 512 KiB, may exceed it. Default: 16 MiB.
    public var bytes: Int
    /// What happens to messages without a guarantee when either bound is reached. Default: `dropOldest`.
    public var overflow: Overflow

    /// Makes a policy. Default: 65,536 messages, 16 MiB, and the oldest are dropped. Both bounds are at least 1.
    public init(messages: Int = 65_536, bytes: Int = 16 << 20, overflow: Overflow = .dropOldest) {
        self.messages = max(1, messages)
        self.bytes = max(1, bytes)
        self.overflow = overflow
    }
}

/// Bytes of messages that wait in all subscriptions of one connection, against their bound.
///
/// The loop adds, and pauses reading when the bound is reached. The receiver that reduces the count to half of it calls
/// `drained`, so that the loop reads again; so does one that empties its own full queue to half, or ends it.
package final class UnreadBytes: Sendable {
    package let maximum: Int
    private let count = Atomic(0)
    private let reached = Atomic(false)
    let drained: @Sendable () -> Void

    /// - Parameter drained: called without any lock held, on the thread of that receiver.
    package init(maximum: Int, drained: @escaping @Sendable () -> Void) {
        self.maximum = max(1, maximum)
        self.drained = drained
    }

    /// The bytes that wait now.
    package var bytes: Int { count.load(ordering: .relaxed) }

    /// Whether the bound was reached and half of it is not free again.
    package var isFull: Bool { reached.load(ordering: .sequentiallyConsistent) }

    func change(by difference: Int) {
        guard difference != 0 else { return }
        let now = count.add(difference, ordering: .sequentiallyConsistent).newValue
        if difference > 0, now >= maximum {
            reached.store(true, ordering: .sequentiallyConsistent)
            // Others may have taken everything out before they could see that.
            releaseIfDrained(count.load(ordering: .sequentiallyConsistent))
        } else if difference < 0 {
            releaseIfDrained(now)
        }
    }

    private func releaseIfDrained(_ now: Int) {
        guard now <= maximum / 2, isFull else { return }
        let isOurs = reached.compareExchange(expected: true, desired: false, ordering: .sequentiallyConsistent)
            .exchanged
        if isOurs { drained() }
    }
}

/// The subscriptions with a full buffer, for which reading pauses. On the loop's thread.
package struct PausedRoutes<Route: DeliveryRoute> {
    private var routes: [Route] = []

    package init() {}

    package var isEmpty: Bool { routes.isEmpty }

    package mutating func add(_ route: Route) {
        if !routes.contains(where: { $0 === route }) { routes.append(route) }
    }

    /// Removes a route. Returns whether it was there.
    package mutating func remove(_ route: Route) -> Bool {
        let count = routes.count
        routes.removeAll { $0 === route }
        return routes.count < count
    }

    /// Removes the routes that have room again.
    package mutating func removeDrained() { routes.removeAll { !$0.isFull } }

    package mutating func removeAll() { routes = [] }
}
