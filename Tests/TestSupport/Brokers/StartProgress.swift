import Foundation

/// Tells a broker that is slow to start, because the machine is busy, from one that hangs.
///
/// What it writes and the processor time that it uses are progress. A broker that hangs does little of either; how much
/// time passes while others occupy the processor says nothing about it.
struct StartProgress {
    private let start = ContinuousClock.now
    private var last = ContinuousClock.now
    private var output = 0
    private var processorTime = 0.0

    /// Without progress for that long, a start has failed.
    private static let patience = Duration.patience
    /// A start that takes longer has failed whatever it does.
    private static let bound = Duration.seconds(2_700)
    /// An idle virtual machine with its timers uses less in `patience`, a starting one more in a second.
    private static let leastProcessorTime = 2.0

    /// What to report when the start has failed; nil while it may succeed.
    mutating func failure(output: Int, processID: Int32) -> String? {
        let now = ContinuousClock.now
        let used = Self.processorTime(of: processID)
        if output > self.output || used >= processorTime + Self.leastProcessorTime {
            (self.output, processorTime, last) = (output, used, now)
            AtWork.note("progress", "\(processID)")
        }
        if now - last > Self.patience { return "made no progress towards being ready for \(Self.patience)" }
        if now - start > Self.bound { return "was not ready after \(Self.bound)" }
        return nil
    }

    /// Seconds of processor time that a process has used; 0 where the system does not tell, or it is gone.
    private static func processorTime(of processID: Int32) -> Double {
        guard let text = try? String(contentsOfFile: "/proc/\(processID)/stat", encoding: .utf8) else { return 0 }
        // The second field, the program's name in parentheses, may contain anything; the third follows it.
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
