import TestSupport
import Testing

/// What a loop's thread works when much waits: four times as much may take six times as long, not sixteen times.
///
/// Broker and clients share one thread and no time passes, so that the processor time of that thread is that of the
/// operation, on a busy machine too. A row that fails names an operation, not the side that scans.
@Suite(.turns, .serialized) struct GrowthTests {
    private static let limit = 6.0
    /// Shorter operations are measured with more.
    private static let leastTime = Duration.milliseconds(5)
    private static let leastCount = 256
    private static let rounds = 5

    @Test(arguments: GrowthRow.all)
    func `four times as much takes at most six times as long`(row: GrowthRow) async throws {
        var count = Self.leastCount
        var small = try await row.time(count)
        while small < Self.leastTime {
            count *= 2
            small = try await row.time(count)
        }
        var large = try await row.time(4 * count)
        // Both of a round are measured under the same load, which makes memory slower. A row that is known to grow is measured
        // with twice as much each time, where its growth counts for more.
        for _ in 1..<Self.rounds where (large / small > Self.limit) != row.growsStill {
            if row.growsStill { count *= 2 }
            (small, large) = (try await row.time(count), try await row.time(4 * count))
        }
        guard !row.growsStill else {
            // The row fails as soon as it does not grow any more.
            return withKnownIssue { #expect(large / small <= Self.limit) }
        }
        #expect(large / small <= Self.limit, "\(row): \(count) took \(small), \(4 * count) took \(large)")
    }
}

/// An operation on what waits.
struct GrowthRow: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Whether the row is known to exceed the limit.
    var growsStill = false
    /// The processor time of the operation on so many.
    let time: @Sendable (Int) async throws -> Duration

    init(testDescription: String, time: @escaping @Sendable (Int) async throws -> Duration) {
        self.testDescription = testDescription
        self.time = time
    }

    init(_ name: String, _ body: @escaping @Sendable (GrowthBench, Int) async throws -> Duration) {
        self.init(testDescription: name) { count in try await GrowthBench.run { try await body($0, count) } }
    }

    /// The same row, which is known to exceed the limit.
    var knownToGrow: GrowthRow {
        var row = self
        row.growsStill = true
        return row
    }

    static var all: [GrowthRow] { mqtt + stomp + broker }
}
