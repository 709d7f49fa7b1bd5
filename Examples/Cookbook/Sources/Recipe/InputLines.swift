import Dispatch
import Synchronization

/// The lines of standard input, each read when it is asked for, without holding up other tasks.
public func inputLines() -> AsyncStream<String> {
    let reader = LineReader()
    return AsyncStream {
        await reader.next()
    } onCancel: {
        reader.resume(returning: nil)
    }
}

/// Waits for a line on a thread of its own, which cancellation does not have to wait for.
private final class LineReader: Sendable {
    private let queue = DispatchQueue(label: "standard input")
    private let waiting = Mutex<CheckedContinuation<String?, Never>?>(nil)

    func next() async -> String? {
        await withCheckedContinuation { continuation in
            waiting.withLock { $0 = continuation }
            if Task.isCancelled { return resume(returning: nil) }
            queue.async { self.resume(returning: readLine()) }
        }
    }

    func resume(returning line: String?) {
        waiting.withLock { $0.take() }?.resume(returning: line)
    }
}
