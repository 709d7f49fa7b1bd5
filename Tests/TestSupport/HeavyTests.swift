import Foundation
import Synchronization
public import Testing

/// Runs tests that compute for long on a thread of their own, one after the other.
///
/// Swift's cooperative pool has one thread for each core. A few tests that compute for seconds would occupy all of it,
/// and every test that waits for an answer in time would wait for them.
///
/// Each may take an hour from when it begins, which only a test that hangs does; a whole campaign takes as long as it was
/// asked to.
public struct HeavyTests: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    private var limit: Duration { Campaign.scale < 1 ? .seconds(3_600) : .seconds(86_400) }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(HeavyExecutor.shared) {
            try await limited(to: limit, "after it had begun", test, function)
        }
    }
}

extension Trait where Self == HeavyTests {
    /// Computes for more than a moment: see ``HeavyTests``.
    public static var heavy: HeavyTests { HeavyTests() }
}

/// One thread that runs the jobs of all heavy tests.
private final class HeavyExecutor: TaskExecutor {
    static let shared = HeavyExecutor()

    private let jobs = Mutex<[UnownedJob]>([])
    private let available = DispatchSemaphore(value: 0)

    private init() {
        let thread = Thread { [self] in
            while true {
                available.wait()
                let job = jobs.withLock { $0.removeFirst() }
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
        thread.stackSize = 8 << 20
        thread.name = "heavy-tests"
        thread.start()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        jobs.withLock { $0.append(unowned) }
        available.signal()
    }
}
