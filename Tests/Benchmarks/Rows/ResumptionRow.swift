import Foundation
import Synchronization

/// What the pool itself costs: tasks that wait, and that a thread outside it resumes one after the other. No library is
/// involved, so that nothing that awaits an answer on the pool can cost less.
struct ResumptionRow {
    let rounds: Int
    let scale: Double

    func rows() async -> [Row] {
        var rows: [Row] = []
        for tasks in [1, 10, 100, 1_024] {
            var row = Row(
                "Resuming \(tasks) tasks of the pool from another thread, a task", unit: "ns", isRate: false, goal: "–")
            let turns = max(1, Int((tasks == 1 ? 20_000 : 1_000_000 / Double(tasks)) * scale))
            for _ in 0..<rounds {
                let costs = await measured { await Gathering(tasks).run(turns: turns) }
                row.add(ours: costs.seconds * 1e9 / Double(turns * tasks))
                row.addCosts(costs, turns * tasks)
            }
            rows.append(row)
        }
        return rows
    }
}

/// Tasks that all wait until a thread resumes them.
private final class Gathering: Sendable {
    private let count: Int
    private let waiting = Mutex<[UnsafeContinuation<Void, Never>]>([])
    private let isComplete = DispatchSemaphore(value: 0)

    init(_ count: Int) { self.count = count }

    func run(turns: Int) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask { for _ in 0..<turns { await self.wait() } }
            }
            await withUnsafeContinuation { end in
                Thread.detachNewThread {
                    for _ in 0..<turns { self.resumeAll() }
                    end.resume()
                }
            }
        }
    }

    private func wait() async {
        await withUnsafeContinuation { continuation in
            let isLast = waiting.withLock { waiting in
                waiting.append(continuation)
                return waiting.count == count
            }
            if isLast { isComplete.signal() }
        }
    }

    private func resumeAll() {
        isComplete.wait()
        let all = waiting.withLock { waiting in
            defer { waiting.removeAll(keepingCapacity: true) }
            return waiting
        }
        for continuation in all { continuation.resume() }
    }
}
