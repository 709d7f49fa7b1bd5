import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// Values of a live source, which go out when they are read.
@Suite(.turns)
struct LiveReplayTests {
    private static let second: Int64 = 1_000_000_000

    /// What goes out, and when, if all `values` are there at once.
    private func sent(
        _ values: [Int], interval: Duration, isWanted: @escaping @Sendable (Int) -> Bool = { _ in true }
    ) async throws -> [String] {
        let source = LiveSource<Int>()
        for value in values { source.send(value) }
        source.finish()
        let replay = Replay(clock: VirtualClock())
        var sent: [String] = []
        _ = try await replay.play(source, interval: interval, isWanted: isWanted) { value in
            sent.append("\(value)@\(replay.elapsed / 1_000_000)")
        }
        return sent
    }

    @Test func `values go out when they are read`() async throws {
        #expect(try await sent([0, 1, 2], interval: .zero) == ["0@0", "1@0", "2@0"])
        #expect(try await sent([0, 1, 2], interval: .seconds(1e-10)) == ["0@0", "1@0", "2@0"])
        #expect(try await sent([], interval: .zero) == [])
        #expect(try await sent([], interval: .seconds(1)) == [])
    }

    @Test func `with an interval the first and the last value go out, and never two within one interval`() async throws
    {
        #expect(try await sent([5], interval: .seconds(1)) == ["5@0"])
        #expect(try await sent([5, 6], interval: .seconds(1)) == ["5@0", "6@1000"])
        let many = try await sent(Array(0..<200), interval: .seconds(1))
        #expect(many.first == "0@0")
        #expect(many.last?.hasPrefix("199@") == true)
        let times = many.compactMap { Int($0.drop { $0 != "@" }.dropFirst()) }
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 1000 })
    }

    @Test(arguments: [Duration.zero, .seconds(1)])
    func `a skipped value is followed by the next one at once`(interval: Duration) async throws {
        #expect(try await sent([-1, -2, 7], interval: interval, isWanted: { $0 > 0 }) == ["7@0"])
    }

    @Test func `a value goes out before the next one is there`() async throws {
        let source = LiveSource<Int>()
        source.send(0)
        let replay = Replay(clock: VirtualClock())
        var count = 0
        _ = try await replay.play(source, interval: .zero) { value in
            #expect(value == count)
            count += 1
            if count < 3 { source.send(count) } else { source.finish() }
        }
        #expect(count == 3)
    }

    @Test func `what came before a malformed row goes out before the failure`() async throws {
        let source = LiveSource<Int>()
        for value in 0..<3 { source.send(value) }
        source.finish(DeviceFailure(.dataError, "line 4"))
        let replay = Replay(clock: VirtualClock())
        var last: Int?
        await #expect(throws: DeviceFailure(.dataError, "line 4")) {
            _ = try await replay.play(source, interval: .seconds(1)) { last = $0 }
        }
        #expect(last == 2)
    }

    @Test(arguments: [Duration.zero, .seconds(1)])
    func `cancelling ends the wait for a value`(interval: Duration) async throws {
        let source = LiveSource<Int>()
        source.send(1)
        let (sent, isSent) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await Replay(clock: ContinuousClock()).play(source, interval: interval) { _ in
                isSent.finish()
            }
        }
        for await _ in sent {}
        task.cancel()
        #expect(try await task.value == .stopped)
    }
}
