/// What the onlookers of a connection want of each frame.
package struct FrameWishes: Sendable {
    /// A record with its secrets masked.
    package var masked = false
    /// A record with its secrets.
    package var complete = false
    /// A frame for logs, whole up to this many bytes; nil without a log.
    package var logLimit: Int?

    package init(masked: Bool = false, complete: Bool = false, logLimit: Int? = nil) {
        self.masked = masked
        self.complete = complete
        self.logLimit = logLimit
    }

    package var isEmpty: Bool { !masked && !complete && logLimit == nil }
}

/// One frame, decoded once for all onlookers.
package struct InspectedFrame<Record: Sendable>: Sendable {
    package var masked: Record?
    package var complete: Record?
    package var logged: LoggedFrame?

    package init(masked: Record? = nil, complete: Record? = nil, logged: LoggedFrame? = nil) {
        self.masked = masked
        self.complete = complete
        self.logged = logged
    }
}

/// How many bytes of a frame the logs of a connection keep.
package struct FrameLimits: Sendable {
    /// Larger frames are decoded at once: there is a log that keeps only their beginning.
    package let whole: Int
    /// What the log with the highest bound keeps whole.
    package let kept: Int

    package init(whole: Int, kept: Int) {
        self.whole = whole
        self.kept = kept
    }
}
