#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Sizes of the randomised campaigns, all taken from one environment variable.
///
/// `CAMPAIGN=1` runs them whole; a plain `swift test` runs a hundredth.
public enum Campaign {
    public static let scale: Double = environment("CAMPAIGN").flatMap(Double.init) ?? 0.01

    /// The seed that all campaigns start from; a failing one prints its own, to be replayed as `CAMPAIGN_SEED=…`.
    public static let seed: UInt64 = environment("CAMPAIGN_SEED").flatMap(UInt64.init) ?? 0x5EED

    /// The number of rounds to run of a campaign that has `full` rounds, at least `least`.
    public static func rounds(_ full: Int, least: Int = 1) -> Int {
        max(least, Int(Double(full) * scale))
    }

    /// The value of an environment variable, or nil when it is unset or empty.
    public static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }
}
