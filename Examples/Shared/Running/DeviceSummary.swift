import Synchronization

/// What one device did, or a fleet together.
package struct DeviceSummary: Sendable, Equatable {
    package var sent = 0
    /// Fixes that were too old to send.
    package var skipped = 0
    /// Of those sent, how many the broker has not confirmed; nil if it is not asked to.
    package var unconfirmed: Int?
    /// Texts or alerts.
    package var received = 0
    package var reconnects = 0

    package init(
        sent: Int = 0, skipped: Int = 0, unconfirmed: Int? = nil, received: Int = 0, reconnects: Int = 0
    ) {
        self.sent = sent
        self.skipped = skipped
        self.unconfirmed = unconfirmed
        self.received = received
        self.reconnects = reconnects
    }

    package static func + (left: DeviceSummary, right: DeviceSummary) -> DeviceSummary {
        DeviceSummary(
            sent: left.sent + right.sent, skipped: left.skipped + right.skipped,
            unconfirmed: left.unconfirmed.map { $0 + (right.unconfirmed ?? 0) } ?? right.unconfirmed,
            received: left.received + right.received, reconnects: left.reconnects + right.reconnects)
    }

    /// `104 fixes sent`, `0 unconfirmed`, `2 texts received`, `1 reconnect`, `8:34 elapsed`.
    package func items(for device: Device, devices: Int, elapsed: Duration) -> [String] {
        func count(_ number: Int, _ one: String, _ many: String) -> String {
            "\(number) \(number == 1 ? one : many)"
        }
        var parts: [String] = []
        if devices > 1 { parts.append("\(devices) devices") }
        switch device {
        case .locations:
            parts.append(count(sent, "fix", "fixes") + " sent")
            if skipped > 0 { parts.append(count(skipped, "old fix", "old fixes") + " skipped") }
            if let unconfirmed { parts.append("\(unconfirmed) unconfirmed") }
            parts.append(count(received, "text", "texts") + " received")
        case .motions:
            parts.append(count(sent, "motion", "motions") + " sent")
            parts.append(count(received, "alert", "alerts") + " received")
        }
        if reconnects > 0 { parts.append(count(reconnects, "reconnect", "reconnects")) }
        parts.append(ReplayProgress.time(elapsed.wholeNanoseconds) + " elapsed")
        return parts
    }
}

/// Counts for one device's summary, from wherever things happen.
package final class Tally: Sendable {
    private let counts = Mutex(DeviceSummary())

    package init() {}

    package var summary: DeviceSummary { counts.withLock { $0 } }

    package func add(_ change: (inout DeviceSummary) -> Void) {
        counts.withLock { change(&$0) }
    }
}

/// The value that came last: what a shaken device sends again.
package final class Latest<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)

    package init() {}

    package var value: Value? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
