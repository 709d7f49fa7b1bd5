package import Messaging

extension DeviceOptions {
    /// Back-off from half a second to ten. The first connection fails after five attempts; a lost one is tried again
    /// until it is back.
    package var reconnectPolicy: ReconnectPolicy {
        guard reconnects else { return .never }
        return ReconnectPolicy(
            initialDelay: .milliseconds(500), maximumDelay: .seconds(10), firstConnectAttempts: 5)
    }
}
