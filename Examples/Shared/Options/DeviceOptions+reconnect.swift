package import Messaging

extension DeviceOptions {
    /// Back-off from half a second to ten. A broker that was never there is given up after five attempts, one that was
    /// is waited for.
    package var reconnectPolicy: ReconnectPolicy {
        guard reconnects else { return .never }
        return ReconnectPolicy(
            initialDelay: .milliseconds(500), maximumDelay: .seconds(10), firstConnectAttempts: 5)
    }
}
