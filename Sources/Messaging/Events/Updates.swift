import Synchronization

/// Values as they come, for anyone who iterates: each iterator has its own bounded buffer and keeps the newest.
///
/// The sequence ends when the client is gone, or with the task that iterates.
public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Never
    let broadcaster: Broadcaster<Element>

    public func makeAsyncIterator() -> Iterator {
        Iterator(buffer: broadcaster.subscribe())
    }

    public struct Iterator: AsyncIteratorProtocol {
        let buffer: UpdateBuffer<Element>

        public mutating func next() async -> Element? {
            await buffer.next()
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await buffer.next()
        }
    }
}

/// Sends values to everybody who iterates at the moment.
package final class Broadcaster<Element: Sendable>: Sendable {
    private struct State {
        var buffers: [WeakBuffer] = []
        var latest: Element?
        var isFinished = false
    }

    private struct WeakBuffer: Sendable {
        weak let buffer: UpdateBuffer<Element>?
    }

    private let state: Mutex<State>
    private let capacity: Int
    private let replaysLatest: Bool

    /// - Parameters:
    ///   - capacity: values that wait for a slow iterator; the oldest go first.
    ///   - replaysLatest: whether a new iterator starts with the value that was sent last.
    package init(capacity: Int, initial: Element? = nil, replaysLatest: Bool = false) {
        self.capacity = capacity
        self.replaysLatest = replaysLatest
        state = Mutex(State(latest: initial))
    }

    package var updates: Updates<Element> { Updates(broadcaster: self) }

    /// The value that was sent last.
    package var latest: Element? { state.withLock { $0.latest } }

    /// Whether anybody listens: spares building values for nobody.
    package var hasListeners: Bool { state.withLock { !$0.buffers.isEmpty } }

    package func send(_ element: Element) {
        let buffers = state.withLock { state in
            state.latest = element
            state.buffers.removeAll { $0.buffer == nil }
            return state.buffers
        }
        for weak in buffers { weak.buffer?.push(element) }
    }

    package func finish() {
        let buffers = state.withLock { state in
            state.isFinished = true
            defer { state.buffers = [] }
            return state.buffers
        }
        for weak in buffers { weak.buffer?.finish() }
    }

    func subscribe() -> UpdateBuffer<Element> {
        let buffer = UpdateBuffer<Element>(capacity: capacity)
        let (latest, isFinished) = state.withLock { state in
            if !state.isFinished { state.buffers.append(WeakBuffer(buffer: buffer)) }
            return (replaysLatest ? state.latest : nil, state.isFinished)
        }
        if let latest { buffer.push(latest) }
        if isFinished { buffer.finish() }
        return buffer
    }
}

/// The values that wait for one iterator.
final class UpdateBuffer<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var isFinished = false
        var receiver: UnsafeContinuation<Element?, Never>?
    }

    private let state = Mutex(State())
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
    }

    func push(_ element: Element) {
        let receiver = state.withLock { state -> UnsafeContinuation<Element?, Never>? in
            if let waiting = state.receiver {
                state.receiver = nil
                return waiting
            }
            if state.elements.count >= capacity { state.elements.removeFirst() }
            state.elements.append(element)
            return nil
        }
        receiver?.resume(returning: element)
    }

    func finish() {
        let receiver = state.withLock { state in
            state.isFinished = true
            defer { state.receiver = nil }
            return state.receiver
        }
        receiver?.resume(returning: nil)
    }

    nonisolated(nonsending) func next() async -> Element? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let ready = state.withLock { state -> Element?? in
                    if !state.elements.isEmpty { return .some(state.elements.removeFirst()) }
                    if state.isFinished || Task.isCancelled || state.receiver != nil { return .some(nil) }
                    state.receiver = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let receiver = state.withLock { state in
                defer { state.receiver = nil }
                return state.receiver
            }
            receiver?.resume(returning: nil)
        }
    }
}
