import Synchronization

/// Counts for one device's summary, from wherever things happen.
package final class Tally: Sendable {
    private let counts = Mutex(DeviceSummary())

    package init() {}

    package var summary: DeviceSummary { counts.withLock { $0 } }

    package func add(_ change: (inout DeviceSummary) -> Void) {
        counts.withLock { change(&$0) }
    }
}
