extension STOMPConfiguration {
    /// Every option and its value, with secrets hidden.
    package var options: [(label: String, value: Any)] {
        [
            ("versions", versions), ("host", host),
            ("serverOrder", serverOrder), ("credentials", credentials as Any),
            ("credentialsProvider", credentialsProvider as Any), ("clientID", clientID as Any),
            ("outgoingHeartBeat", outgoingHeartBeat), ("incomingHeartBeat", incomingHeartBeat),
            ("connectHeaders", connectHeaders), ("connectEscaping", connectEscaping), ("profile", profile as Any),
            ("tls", tls), ("webSocket", webSocket), ("proxy", proxy), ("reconnect", reconnect),
            ("connectTimeout", connectTimeout), ("requestTimeout", requestTimeout), ("limits", limits),
            ("maximumReceipts", maximumReceipts), ("maximumOutboxBytes", maximumOutboxBytes),
            ("maximumUnreadBytes", maximumUnreadBytes),
        ]
    }
}

extension STOMPConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Every option and its value, with secrets hidden.
    public var description: String {
        "STOMPConfiguration(\(options.map { "\($0.label): \($0.value)" }.joined(separator: ", ")))"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(self, children: options.map { (label: $0.label, value: $0.value) }, displayStyle: .struct)
    }
}
