import MessagingWire

/// A count that grows as long as somebody does his work, and since when it has not grown. Its times are those of
/// `EventLoop.timeAwake`: nobody works while the system sleeps.
package struct CountedProgress {
    private var count: UInt64
    package private(set) var since: Int64

    package init(_ count: some BinaryInteger, at now: Int64) {
        (self.count, since) = (UInt64(truncatingIfNeeded: count), now)
    }

    /// Whether the count has stood still for the interval, after which another one begins.
    package mutating func stands(_ count: some BinaryInteger, for interval: Int64, at now: Int64) -> Bool {
        let isSame = UInt64(truncatingIfNeeded: count) == self.count
        if isSame, now < since.advanced(byNanoseconds: interval) { return false }
        self = CountedProgress(count, at: now)
        return isSame
    }
}
