extension MQTTClient: CustomStringConvertible, CustomReflectable {
    /// The client identifier and the state of the connection.
    public nonisolated var description: String { "MQTTClient(\(clientID), \(state))" }
    // What is inside changes on other threads, and holds credentials.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["clientID": clientID, "state": state]) }
}
