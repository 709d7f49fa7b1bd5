import Foundation

/// A file with what has begun and ended and when, in milliseconds, if the environment names one as `TESTS_AT_WORK`:
/// tests, and starts of brokers.
///
/// Of the tests that take turns, the events of Swift Testing do not tell the few that have begun from the hundreds that
/// wait. `.ci/watched` ends a run when nothing is added here and no event comes; `.ci/unfinished` reads this.
enum AtWork {
    private static let file = Campaign.environment("TESTS_AT_WORK").map {
        open($0, O_WRONLY | O_APPEND | O_CREAT, 0o644)
    }

    /// Adds a line. `begin` and `end` are a test's; a broker's are others.
    static func note(_ what: String, _ name: String) {
        guard let file else { return }
        let bytes = Array("\(what) \(Int(Date().timeIntervalSince1970 * 1000)) \(name)\n".utf8)
        _ = write(file, bytes, bytes.count)
    }
}
