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
