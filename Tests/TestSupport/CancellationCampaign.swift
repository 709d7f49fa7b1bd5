import Synchronization
public import Testing

/// Begins calls from many tasks, cancels each at a random moment, and counts how often each of them ends.
///
/// A continuation that is resumed twice lets a call end twice, if it does not end the process; one that is lost lets a
/// call never end.
public final class CancellationCampaign: Sendable {
    /// What is called, by a name for the report. The generator is the call's own.
    public struct Call: Sendable {
        let name: String
        let body: @Sendable (SeededGenerator) async throws -> Void

        public init(_ name: String, _ body: @escaping @Sendable (SeededGenerator) async throws -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// A row of a campaign's table: what is called on one of the campaign's clients, and which public functions that
    /// covers, as ``PublicCalls`` names them.
    public struct Row<Subject: Sendable>: Sendable {
        public let name: String
        public let covers: Set<String>
        public let body: @Sendable (Subject, inout SeededGenerator) async throws -> Void

        public init(
            _ name: String, _ covers: String...,
            body: @escaping @Sendable (Subject, inout SeededGenerator) async throws -> Void
        ) {
            self.name = name
            self.covers = Set(covers)
            self.body = body
        }

        /// Calls the body with one of the subjects.
        public func call(_ subjects: [Subject]) -> Call {
            Call(name) { random in
                var random = random
                try await body(subjects[Int.random(in: subjects.indices, using: &random)], &random)
            }
        }
    }

    private final class Record: Sendable {
        let ends = Atomic(0)
    }

    private let calls: [Call]
    private let lanes: Int
    private let begun = Atomic(0)
    private let ended = Atomic(0)
    private let wrong = Atomic(0)
    /// The call that each lane waits for.
    private let underWay: [Slot]

    private final class Slot: Sendable {
        let call = Atomic(-1)
    }

    /// - Parameters:
    ///   - calls: chosen at random, each as likely as another.
    ///   - lanes: calls that are under way at the same time.
    public init(_ calls: [Call], lanes: Int = 12) {
        self.calls = calls
        self.lanes = lanes
        underWay = (0..<lanes).map { _ in Slot() }
    }

    /// Makes `count` calls while `fault` is called again and again, and checks that each has ended once.
    ///
    /// - Parameter silence: how long no call at all may end before those under way count as lost.
    public func run(
        _ count: Int, silence: Duration = .patience, sourceLocation: SourceLocation = #_sourceLocation,
        fault: @escaping @Sendable (inout SeededGenerator) async throws -> Void
    ) async throws {
        let faults = Task {
            var random = SeededGenerator(seed: Campaign.seed)
            while !Task.isCancelled {
                try await fault(&random)
                try await Task.sleep(for: .microseconds(Int.random(in: 0...4000, using: &random)))
            }
        }
        for lane in 0..<lanes { Task { await self.run(lane, count) } }
        var seen = -1
        var last = ContinuousClock.now
        while true {
            let now = ended.load(ordering: .acquiring)
            if now == count { break }
            if now != seen { (seen, last) = (now, ContinuousClock.now) }
            if ContinuousClock.now - last > silence {
                let names = underWay.map { $0.call.load(ordering: .relaxed) }.filter { $0 >= 0 }.map { calls[$0].name }
                Issue.record(
                    "\(count - now) of \(count) calls have not ended; under way: \(names)",
                    sourceLocation: sourceLocation)
                break
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        faults.cancel()
        _ = await faults.result
        let twice = wrong.load(ordering: .relaxed)
        #expect(twice == 0, "calls that ended more than once", sourceLocation: sourceLocation)
        #expect(seen <= count, sourceLocation: sourceLocation)
    }

    private func run(_ lane: Int, _ count: Int) async {
        var random = SeededGenerator(seed: Campaign.seed &+ UInt64(lane) &* 7919)
        var records: [Record] = []
        while begun.add(1, ordering: .relaxed).newValue <= count {
            let index = Int.random(in: calls.indices, using: &random)
            underWay[lane].call.store(index, ordering: .relaxed)
            let record = Record()
            records.append(record)
            let body = calls[index].body
            let own = SeededGenerator(seed: random.next())
            let task = Task {
                try? await body(own)
                record.ends.add(1, ordering: .relaxed)
            }
            switch Int.random(in: 0..<16, using: &random) {
            case 0: break
            case 1: try? await Task.sleep(for: .microseconds(Int.random(in: 0...30_000, using: &random)))
            default: for _ in 0..<Int.random(in: 0...150, using: &random) { await Task.yield() }
            }
            task.cancel()
            await task.value
            underWay[lane].call.store(-1, ordering: .relaxed)
            ended.add(1, ordering: .releasing)
        }
        // A second end may come late.
        for record in records where record.ends.load(ordering: .relaxed) != 1 { wrong.add(1, ordering: .relaxed) }
    }
}
