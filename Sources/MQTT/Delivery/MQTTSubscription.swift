public import MQTTCore
import Messaging
import Synchronization
import Transport

/// The messages that match one topic filter, as a sequence; made by ``MQTTClient/subscribe(to:qos:buffer:acknowledgement:options:)``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes. It survives reconnects. Each iterator has a buffer of its own; the first one starts with the first
/// message, later ones with what comes after they were made.
///
/// Iterating throws ``MQTTError`` when the client gives up, when the server refuses the filter after a reconnect, and
/// (with ``MQTTError/Code/cancelled``) when the iterating task is cancelled; it ends after ``MQTTClient/disconnect()``
/// and ``unsubscribe()``.
public struct MQTTSubscription: AsyncSequence, Sendable {
    public typealias Element = MQTTMessage
    public typealias Failure = MQTTError

    let handle: Handle

    /// The topic filter.
    public var filter: String { handle.route.request.filter }
    /// The quality of service that the server granted when the subscription was made.
    public let grantedQoS: QoS
    /// Messages dropped so far because a receiver was slow.
    public var droppedCount: Int { handle.first.droppedCount }

    /// Ends the subscription and waits for the server's answer.
    public nonisolated(nonsending) func unsubscribe() async throws(MQTTError) {
        try await handle.core.unsubscribe(handle.route)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(queue: handle.takeQueue(), handle: handle)
    }

    /// One receiver of the messages.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline var batch: MQTTBatch?
        @usableFromInline var index = 0
        @usableFromInline var count = 0
        let queue: MQTTRoute.Queue
        let handle: Handle

        init(queue: MQTTRoute.Queue, handle: Handle) {
            self.queue = queue
            self.handle = handle
        }

        @inlinable
        public mutating func next() async throws(MQTTError) -> MQTTMessage? {
            if index < count, let batch {
                defer { index += 1 }
                return MQTTMessage(batch: batch, index: index)
            }
            return try await nextBatch()
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(MQTTError) -> MQTTMessage? {
            if index < count, let batch {
                defer { index += 1 }
                return MQTTMessage(batch: batch, index: index)
            }
            return try await nextBatch()
        }

        @usableFromInline
        nonisolated(nonsending) mutating func nextBatch() async throws(MQTTError) -> MQTTMessage? {
            batch = nil
            count = 0
            while true {
                switch await queue.next() {
                case .batch(let next):
                    guard next.count > 0 else { continue }
                    batch = next
                    count = next.count
                    index = 1
                    return MQTTMessage(batch: next, index: 0)
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

    /// Ties the subscription to the life of its sequence and iterators.
    final class Handle: Sendable {
        let core: MQTTClientCore
        let route: MQTTRoute
        let first: MQTTRoute.Queue
        private let firstIsTaken = Atomic(false)

        init(core: MQTTClientCore, route: MQTTRoute, first: MQTTRoute.Queue) {
            self.core = core
            self.route = route
            self.first = first
        }

        deinit {
            let (core, route) = (core, route)
            core.loop.execute { core.remove(route) }
        }

        /// The queue that was filled from the start for the first iterator, a fresh one for each later.
        func takeQueue() -> MQTTRoute.Queue {
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
