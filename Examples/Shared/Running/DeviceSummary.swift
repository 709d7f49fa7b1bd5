/// What the devices of a program did together.
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
