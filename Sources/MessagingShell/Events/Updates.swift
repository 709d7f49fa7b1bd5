import MessagingWire
import Synchronization
import Transport

/// A sequence of values; each iterator has its own bounded buffer, which keeps the newest.
///
/// It starts when the sequence is created: values that are sent before the first iteration wait in the buffer. A further
/// iterator of the same sequence starts when it is made. The sequence ends when the client is released, and when the
/// iterating task is cancelled.
public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Never
    private let subscribe: @Sendable () -> UpdateBuffer<Element>
    private let first: FirstBuffer<Element>

    /// - Parameter subscribe: makes the buffer of one more iterator, which gets the values from then on.
    init(_ subscribe: @escaping @Sendable () -> UpdateBuffer<Element>) {
        self.subscribe = subscribe
        first = FirstBuffer(subscribe())
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(buffer: first.take() ?? subscribe())
    }

    /// One receiver of the values.
    public struct Iterator: AsyncIteratorProtocol {
        let buffer: UpdateBuffer<Element>

        /// How many values this iterator has missed so far because it was slow.
        public var missedCount: Int { buffer.missedCount }

        public mutating func next() async -> Element? {
            await buffer.next()
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await buffer.next()
        }
    }
}

/// The values since a sequence was created, until its first iterator takes them over.
private final class FirstBuffer<Element: Sendable>: Sendable {
    private let buffer: Lock<UpdateBuffer<Element>?>

    init(_ buffer: UpdateBuffer<Element>) {
        self.buffer = Lock(buffer)
    }

    func take() -> UpdateBuffer<Element>? { buffer.withLock { $0.take() } }
}

/// Sends values to the present listeners.
package final class Broadcaster<Element: Sendable>: Sendable {
    private struct State {
        var buffers: [WeakBuffer] = []
        var latest: Element?
        var isFinished = false
    }

    private struct WeakBuffer {
        weak var buffer: UpdateBuffer<Element>?
    }

    private let state: Lock<State>
    private let capacity: Int
    private let replaysLatest: Bool

    /// - Parameters:
    ///   - capacity: values that wait for a slow iterator, at least one; the oldest are dropped first.
    ///   - replaysLatest: whether a new iterator starts with the value that was sent last.
    package init(capacity: Int, initial: Element? = nil, replaysLatest: Bool = false) {
        self.capacity = max(1, capacity)
        self.replaysLatest = replaysLatest
        state = Lock(State(latest: initial))
    }

    deinit {
        finish()
    }

    package var updates: Updates<Element> { Updates { self.subscribe() } }

    package func send(_ element: Element) {
        // Stored in all buffers under one lock, so that every iterator sees the same order and ends with the latest.
        var receivers = UniqueArray<UpdateBuffer<Element>.Receiver>()
        state.withLock { state in
            guard !state.isFinished else { return }
            state.latest = element
            state.buffers.removeAll { $0.buffer == nil }
            for weak in state.buffers {
                if let receiver = weak.buffer?.store(element) { receivers.append(receiver) }
            }
        }
        receivers.resume(returning: true)
    }

    package func finish() {
        var receivers = UniqueArray<UpdateBuffer<Element>.Receiver>()
        state.withLock { state in
            state.isFinished = true
            for weak in state.buffers {
                if let receiver = weak.buffer?.end() { receivers.append(receiver) }
            }
            state.buffers = []
        }
        receivers.resume(returning: false)
    }

    func subscribe() -> UpdateBuffer<Element> {
        let buffer = UpdateBuffer<Element>(capacity: capacity)
        // The buffer is new and has no waiting receiver to resume.
        state.withLock { state in
            if replaysLatest, let latest = state.latest { _ = buffer.store(latest) }
            if state.isFinished { _ = buffer.end() } else { state.buffers.append(WeakBuffer(buffer: buffer)) }
        }
        return buffer
    }
}

/// The values that wait for one iterator. Its lock is only ever taken inside its broadcaster's, or alone.
final class UpdateBuffer<Element: Sendable>: Sendable {
    /// Waits for values; it is resumed with false when there will be none.
    typealias Receiver = Waiter<Bool>
    /// Makes the values that a source has since the last call, and returns how many were lost.
    typealias Source = @Sendable () -> (elements: [Element], missedCount: Int)

    private struct State: ~Copyable {
        var elements: ArraySlice<Element> = []
        /// Whether the source has values that were not read.
        var sourceHasMore = false
        var isFinished = false
        var missedCount = 0
        var receiver: Receiver?
    }

    private let state = Lock(State())
    private let capacity: Int
    private let source: Source?

    /// - Parameter source: where the iterator gets the values itself; nil if they are stored.
    init(capacity: Int, source: Source? = nil) {
        self.capacity = capacity
        self.source = source
    }

    var missedCount: Int { state.withLock { $0.missedCount } }

    /// Stores the element; returns the receiver to resume.
    func store(_ element: Element) -> Receiver? {
        state.withLock { state in
            if state.elements.count >= capacity {
                state.elements.removeFirst()
                state.missedCount += 1
            }
            state.elements.append(element)
            return state.receiver.take()
        }
    }

    /// Ends the buffer; returns the receiver to resume.
    func end() -> Receiver? {
        state.withLock { state in
            state.isFinished = true
            return state.receiver.take()
        }
    }

    /// The source has values, or will have no others.
    func sourceChanged(isLast: Bool) {
        let receiver = state.withLock { state in
            if isLast { state.isFinished = true } else { state.sourceHasMore = true }
            return state.receiver.take()
        }
        receiver?.resume(returning: !isLast)
    }

    nonisolated(nonsending) func next() async -> Element? {
        while true {
            if let element = state.withLock({ $0.elements.popFirst() }) { return element }
            if readSource() { continue }
            guard await waitForMore() else { return nil }
        }
    }

    /// Returns false if the source has nothing new.
    private func readSource() -> Bool {
        let hasMore = state.withLock { state in
            defer { state.sourceHasMore = false }
            return state.sourceHasMore
        }
        guard hasMore, let source else { return false }
        let (elements, missedCount) = source()
        state.withLock { state in
            state.elements += elements
            state.missedCount += missedCount
        }
        return true
    }

    private nonisolated(nonsending) func waitForMore() async -> Bool {
        await waiting { waiter in
            var waiter: Receiver? = waiter
            let ready = state.withLock { state -> Bool? in
                if !state.elements.isEmpty || state.sourceHasMore { return true }
                if state.isFinished || Task.isCancelled || state.receiver != nil { return false }
                state.receiver = waiter.take()
                return nil
            }
            if let ready { waiter.take()?.resume(returning: ready) }
        } onCancel: {
            let receiver = state.withLock { $0.receiver.take() }
            receiver?.resume(returning: false)
        }
    }
}
