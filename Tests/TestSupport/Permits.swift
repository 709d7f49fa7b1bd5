import Foundation

/// Lets a limited number of tasks do the same kind of work at the same time, in the order in which they asked.
final class Permits: @unchecked Sendable {
    /// Tests with sockets: see ``Turns``. Those that wait for a broker to start are not counted: see ``Turn``.
    static let turns = Permits(4)

    /// Starts of RabbitMQ, ActiveMQ and Chromium. Each of them occupies every core for some seconds; all of them at once
    /// need minutes, and so does everything that runs beside them.
    static let starts = Permits(2)

    // Sendable because the `var`s are touched with `lock` held only. A lock that the thread sanitizer knows, unlike `Mutex`:
    // every test with sockets takes a permit.
    private let lock = NSLock()
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) {
        free = count
    }

    /// Runs `body` once a permit is free, and returns the permit afterwards.
    func hold<Success>(_ body: () async throws -> Success) async rethrows -> Success {
        await acquire()
        defer { release() }
        return try await body()
    }

    /// Runs `body` while another task has the permit of the caller, who gets the next one that is free.
    func lend<Success>(_ body: () async throws -> Success) async rethrows -> Success {
        release()
        let result: Success
        do {
            result = try await body()
        } catch {
            await acquire(first: true)
            throw error
        }
        await acquire(first: true)
        return result
    }

    private func acquire(first: Bool = false) async {
        await withCheckedContinuation { continuation in
            let isFree = lock.withLock {
                if free > 0 {
                    free -= 1
                    return true
                }
                waiting.insert(continuation, at: first ? 0 : waiting.count)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func release() {
        let next = lock.withLock { () -> CheckedContinuation<Void, Never>? in
            if waiting.isEmpty {
                free += 1
                return nil
            }
            return waiting.removeFirst()
        }
        next?.resume()
    }
}
