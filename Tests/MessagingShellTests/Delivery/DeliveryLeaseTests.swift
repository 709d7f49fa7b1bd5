import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell

/// Who reads a subscription: each state of its queue with each event, without a network and a clock.
@Suite struct DeliveryLeaseTests {
    struct Failure: Error { let name: String }
    typealias Queue = DeliveryQueue<NumberBatch, Failure>
    typealias Cursor = DeliveryCursor<NumberBatch, Failure>

    struct Source: DeliverySource {
        let queue: Queue

        nonisolated(nonsending) func next(
            _ count: Int, lease: UInt32
        ) async throws(Failure) -> DeliveryLease<NumberBatch>? {
            try await queue.next(
                count, lease: lease, cancelled: Failure(name: "cancelled"), replaced: Failure(name: "replaced"))
        }

        func release(_ lease: UInt32) { queue.release(lease) }
    }

    /// Runs jobs on the caller's thread, when it says so.
    final class Steps: TaskExecutor {
        private let jobs = Mutex<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        func run(newestFirst: Bool) {
            while let job = jobs.withLock({ newestFirst || $0.isEmpty ? $0.popLast() : $0.removeFirst() }) {
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
    }

    enum Event: String, CaseIterable {
        case aNext = "A"
        case bNext = "B"
        case aBatch = "A batch"
        case push, finish
        case aCancelled = "A cancelled"
        case aReleased = "A released"
        case bReleased = "B released"
        case late = "D, cancelled before"
    }

    /// A queue and iterators of its subscription.
    final class Bench: @unchecked Sendable {
        // Sendable because `steps` runs all tasks on the thread of the test.
        private let steps = Steps()
        private let queue = Queue(
            policy: BufferPolicy(messages: 3), unread: UnreadBytes(maximum: .max) {})
        private var cursors: [Character: Cursor] = [:]
        private var tasks: [Character: Task<Void, Never>] = [:]
        private var pushed = 0
        private var log: [String] = []

        private func cursor(_ name: Character) -> Cursor {
            let cursor = cursors[name] ?? Cursor(source: Source(queue: queue), hook: nil)
            cursors[name] = cursor
            return cursor
        }

        private func next(_ name: Character, batch: Bool = false) {
            let cursor = cursor(name)
            tasks[name] = Task(executorPreference: steps) {
                do throws(Failure) {
                    if batch {
                        let messages = try await cursor.takeBatch()
                        self.log.append("\(name)\(messages.map { "\(Array($0))" } ?? " ends")")
                    } else {
                        let fast = cursor.next()
                        let message = if let fast { Optional(fast) } else { try await cursor.nextBatch() }
                        self.log.append("\(name)\(message.map { "\($0)" } ?? " ends")")
                    }
                } catch {
                    self.log.append("\(name) \(error.name)")
                }
                self.tasks[name] = nil
            }
        }

        /// When the tasks run that an event resumes.
        enum Runs { case now, later, newestFirst }

        /// Does one thing. Returns false if it is impossible.
        func perform(_ event: Event, _ runs: Runs = .now) -> Bool {
            switch event {
            case .aNext, .aBatch:
                guard tasks["A"] == nil else { return false }
                next("A", batch: event == .aBatch)
            case .bNext:
                guard tasks["B"] == nil else { return false }
                next("B")
            case .late:
                next("D")
                tasks["D"]?.cancel()
            case .push:
                _ = queue.push(NumberBatch(pushed..<(pushed + 3)))
                pushed += 3
            case .finish: queue.finish()
            case .aCancelled:
                guard let task = tasks["A"] else { return false }
                task.cancel()
            case .aReleased, .bReleased:
                let name: Character = event == .aReleased ? "A" : "B"
                guard tasks[name] == nil, cursors[name] != nil else { return false }
                cursors[name] = nil
            }
            if runs != .later { steps.run(newestFirst: runs == .newestFirst) }
            return true
        }

        /// What the event has led to, and what is left for a third iterator.
        func result() -> String {
            log += tasks.keys.sorted().map { "\($0) waits" }
            let now = log.joined(separator: ", ")
            log = []
            repeat {
                next("C")
                steps.run(newestFirst: false)
            } while tasks["C"] == nil && log.last != "C ends"
            if tasks["C"] != nil { queue.finish() }
            steps.run(newestFirst: false)
            return now + " | " + log.joined(separator: " ")
        }

        func clearLog() { log = [] }
    }

    /// How each state comes about. The task that the last event has resumed has not run yet where the name says "woken"; "slow" if it
    /// runs after what the next event resumes.
    static let states: [(name: String, events: [Event])] = [
        ("new", []),
        ("stored", [.push]),
        ("A in the middle", [.push, .aNext]),
        ("A at the end of a batch", [.push, .aNext, .aNext, .aNext]),
        ("A in the middle, more stored", [.push, .aNext, .push]),
        ("A took a batch", [.push, .aBatch]),
        ("A left in the middle", [.push, .aNext, .aReleased]),
        ("A waits", [.aNext]),
        ("A woken", [.aNext, .push]),
        ("A woken, slow", [.aNext, .push]),
        ("A woken by the end", [.aNext, .finish]),
        ("A cancelled", [.aNext, .aCancelled]),
        ("B took over in the middle", [.push, .aNext, .bNext]),
        ("B took over and waits", [.push, .aBatch, .bNext]),
        ("B replaced A, which waited", [.aNext, .bNext]),
        ("ended", [.finish]),
        ("ended, A in the middle", [.push, .aNext, .finish]),
        ("ended, A at the end", [.push, .aBatch, .finish]),
    ]

    @Test func `an iterator that takes over gets no message that the earlier one hands out meanwhile`() async throws {
        let queue = Queue(policy: BufferPolicy(messages: 3), unread: UnreadBytes(maximum: .max) {})
        let batch = NumberBatch([1, 2])
        _ = queue.push(batch)
        let (a, b) = (Cursor(source: Source(queue: queue), hook: nil), Cursor(source: Source(queue: queue), hook: nil))
        #expect(try await a.nextBatch() == 1)
        _ = queue.push(NumberBatch([3]))
        batch.beforeMove = { #expect(a.next() == 2) }
        #expect(try await b.nextBatch() == 3)
    }

    @Test func `each state of a queue with each event`() {
        var table: [String] = []
        for (name, events) in Self.states {
            table.append("\(name):")
            for event in Event.allCases {
                let bench = Bench()
                for (index, earlier) in events.enumerated() {
                    let isLater = index == events.count - 1 && name.contains("woken")
                    #expect(bench.perform(earlier, isLater ? .later : .now), "\(name)")
                }
                bench.clearLog()
                guard bench.perform(event, name.contains("slow") ? .newestFirst : .now) else { continue }
                table.append("  \(event.rawValue): \(bench.result())")
            }
        }
        #expect(table.joined(separator: "\n") == Self.table)
    }

    /// What each event leads to, and after the bar what is left for a third iterator. Events that are missing are impossible.
    static let table = """
        new:
          A: A waits | A replaced C ends
          B: B waits | B replaced C ends
          A batch: A waits | A replaced C ends
          push:  | C0 C1 C2 C ends
          finish:  | C ends
          D, cancelled before: D cancelled | C ends
        stored:
          A: A0 | C1 C2 C ends
          B: B0 | C1 C2 C ends
          A batch: A[0, 1, 2] | C ends
          push:  | C3 C4 C5 C ends
          finish:  | C0 C1 C2 C ends
          D, cancelled before: D0 | C1 C2 C ends
        A in the middle:
          A: A1 | C2 C ends
          B: B1 | C2 C ends
          A batch: A[1, 2] | C ends
          push:  | C1 C2 C3 C4 C5 C ends
          finish:  | C1 C2 C ends
          A released:  | C1 C2 C ends
          D, cancelled before: D cancelled | C1 C2 C ends
        A at the end of a batch:
          A: A waits | A replaced C ends
          B: B waits | B replaced C ends
          A batch: A waits | A replaced C ends
          push:  | C3 C4 C5 C ends
          finish:  | C ends
          A released:  | C ends
          D, cancelled before: D cancelled | C ends
        A in the middle, more stored:
          A: A1 | C2 C3 C4 C5 C ends
          B: B1 | C2 C3 C4 C5 C ends
          A batch: A[1, 2] | C3 C4 C5 C ends
          push:  | C1 C2 C6 C7 C8 C ends
          finish:  | C1 C2 C3 C4 C5 C ends
          A released:  | C1 C2 C3 C4 C5 C ends
          D, cancelled before: D cancelled | C1 C2 C3 C4 C5 C ends
        A took a batch:
          A: A waits | A replaced C ends
          B: B waits | B replaced C ends
          A batch: A waits | A replaced C ends
          push:  | C3 C4 C5 C ends
          finish:  | C ends
          A released:  | C ends
          D, cancelled before: D cancelled | C ends
        A left in the middle:
          A: A1 | C2 C ends
          B: B1 | C2 C ends
          A batch: A[1, 2] | C ends
          push:  | C1 C2 C3 C4 C5 C ends
          finish:  | C1 C2 C ends
          D, cancelled before: D1 | C2 C ends
        A waits:
          B: A replaced, B waits | B replaced C ends
          push: A0 | C1 C2 C ends
          finish: A ends | C ends
          A cancelled: A cancelled | C ends
          D, cancelled before: D cancelled, A waits | A replaced C ends
        A woken:
          B: A0, B1 | C2 C ends
          push: A3 | C4 C5 C ends
          finish: A0 | C1 C2 C ends
          A cancelled: A cancelled | C0 C1 C2 C ends
          D, cancelled before: A0, D cancelled | C1 C2 C ends
        A woken, slow:
          B: B0, A replaced | C1 C2 C ends
          push: A3 | C4 C5 C ends
          finish: A0 | C1 C2 C ends
          A cancelled: A cancelled | C0 C1 C2 C ends
          D, cancelled before: D cancelled, A0 | C1 C2 C ends
        A woken by the end:
          B: A ends, B ends | C ends
          push: A ends | C ends
          finish: A ends | C ends
          A cancelled: A cancelled | C ends
          D, cancelled before: A ends, D ends | C ends
        A cancelled:
          A: A waits | A replaced C ends
          B: B waits | B replaced C ends
          A batch: A waits | A replaced C ends
          push:  | C0 C1 C2 C ends
          finish:  | C ends
          A released:  | C ends
          D, cancelled before: D cancelled | C ends
        B took over in the middle:
          A: A replaced | C2 C ends
          B: B2 | C ends
          A batch: A replaced | C2 C ends
          push:  | C2 C3 C4 C5 C ends
          finish:  | C2 C ends
          A released:  | C2 C ends
          B released:  | C2 C ends
          D, cancelled before: D cancelled | C2 C ends
        B took over and waits:
          A: A replaced, B waits | B replaced C ends
          A batch: A replaced, B waits | B replaced C ends
          push: B3 | C4 C5 C ends
          finish: B ends | C ends
          A released: B waits | B replaced C ends
          D, cancelled before: D cancelled, B waits | B replaced C ends
        B replaced A, which waited:
          A: B replaced, A waits | A replaced C ends
          A batch: B replaced, A waits | A replaced C ends
          push: B0 | C1 C2 C ends
          finish: B ends | C ends
          A released: B waits | B replaced C ends
          D, cancelled before: D cancelled, B waits | B replaced C ends
        ended:
          A: A ends | C ends
          B: B ends | C ends
          A batch: A ends | C ends
          push:  | C ends
          finish:  | C ends
          D, cancelled before: D ends | C ends
        ended, A in the middle:
          A: A1 | C2 C ends
          B: B1 | C2 C ends
          A batch: A[1, 2] | C ends
          push:  | C1 C2 C ends
          finish:  | C1 C2 C ends
          A released:  | C1 C2 C ends
          D, cancelled before: D cancelled | C1 C2 C ends
        ended, A at the end:
          A: A ends | C ends
          B: B ends | C ends
          A batch: A ends | C ends
          push:  | C ends
          finish:  | C ends
          A released:  | C ends
          D, cancelled before: D cancelled | C ends
        """
}
