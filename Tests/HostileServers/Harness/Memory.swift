import Foundation

/// The memory of this process.
enum Memory {
    /// Lets the peak begin anew at what is in memory now.
    static func forgetPeak() {
        try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    }

    /// The most that was in memory since ``forgetPeak()``, in bytes.
    static var peak: Int { status("VmHWM:") }

    /// What is in memory now, in bytes.
    static var resident: Int { status("VmRSS:") }

    private static func status(_ name: String) -> Int {
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8))?.split(separator: "\n") ?? []
        let words = lines.first { $0.hasPrefix(name) }?.split(whereSeparator: \.isWhitespace) ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * 1024 : 0
    }
}
