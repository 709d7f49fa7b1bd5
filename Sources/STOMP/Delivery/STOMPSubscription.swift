import Messaging
public import STOMPCore
import Synchronization
import Transport

/// The messages of one subscription, as a sequence; made by ``STOMPClient/subscribe(to:ack:options:buffer:)``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes; what is durable stays at the broker. It survives reconnects. Each iterator has a buffer of its own, which
/// goes with it; the first one starts with the first message, later ones with what comes after they were made.
///
/// Iterating throws ``STOMPError`` when the client gives up, when the broker refuses the destination after a reconnect, and
/// (with ``STOMPError/Code/cancelled``) when the iterating task is cancelled; it ends after ``STOMPClient/disconnect()``
/// and ``unsubscribe()``.
public struct STOMPSubscription: AsyncSequence, Sendable {
    public typealias Element = STOMPMessage
    public typealias Failure = STOMPError

    let handle: Handle

    /// The destination that was subscribed.
    public var destination: String { handle.route.destination }
    /// How its messages are acknowledged.
    public var ack: STOMPAckMode { handle.route.ack }
    /// Messages dropped so far because a receiver was slow.
    public var droppedCount: Int { handle.first.droppedCount }

    /// Ends the subscription and waits for the server's answer. A durable one is deleted with all that waits in it; to
    /// keep it, release the sequence or disconnect.
    public nonisolated(nonsending) func unsubscribe() async throws(STOMPError) {
        try await handle.core.unsubscribe(handle.route)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(hold: Hold(queue: handle.takeQueue(), handle: handle))
    }

    /// One receiver of the messages.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline var batch: STOMPBatch?
        @usableFromInline var index = 0
        @usableFromInline var count = 0
        let hold: Hold

        init(hold: Hold) {
            self.hold = hold
        }

        @inlinable
        public mutating func next() async throws(STOMPError) -> STOMPMessage? {
            if index < count, let batch {
                defer { index += 1 }
                return STOMPMessage(batch: batch, index: index)
            }
            return try await nextBatch()
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(STOMPError) -> STOMPMessage? {
            if index < count, let batch {
                defer { index += 1 }
                return STOMPMessage(batch: batch, index: index)
            }
            return try await nextBatch()
        }

        @usableFromInline
        nonisolated(nonsending) mutating func nextBatch() async throws(STOMPError) -> STOMPMessage? {
            batch = nil
            count = 0
            while true {
                switch await hold.queue.next() {
                case .batch(let next):
                    guard next.count > 0 else { continue }
                    batch = next
                    count = next.count
                    index = 1
                    return STOMPMessage(batch: next, index: 0)
                case .finished:
                    return nil
                case .failed(let error):
                    throw error
                case nil:
                    throw .cancelledWait
                }
            }
        }
    }

    /// Ties a buffer to the life of its iterator, so that one that nobody reads holds nothing up.
    final class Hold: Sendable {
        let queue: STOMPRoute.Queue
        private let handle: Handle

        init(queue: STOMPRoute.Queue, handle: Handle) {
            self.queue = queue
            self.handle = handle
        }

        deinit {
            queue.abandon()
            let (queue, route) = (queue, handle.route)
            handle.core.loop.execute { route.drop(queue) }
        }
    }

    /// Ties the subscription to the life of its sequence and iterators.
    final class Handle: Sendable {
        let core: STOMPClientCore
        let route: STOMPRoute
        let first: STOMPRoute.Queue
        private let firstIsTaken = Atomic(false)

        init(core: STOMPClientCore, route: STOMPRoute, first: STOMPRoute.Queue) {
            self.core = core
            self.route = route
            self.first = first
        }

        deinit {
            let (core, route) = (core, route)
            core.loop.execute { core.remove(route) }
        }

        /// The queue that was filled from the start for the first iterator, a fresh one for each later.
        func takeQueue() -> STOMPRoute.Queue {
            if firstIsTaken.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged {
                return first
            }
            let queue = core.makeQueue(route.policy)
            let route = route
            core.loop.execute { route.add(queue) }
            return queue
        }
    }
}
