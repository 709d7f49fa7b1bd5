extension STOMPClient: CustomStringConvertible, CustomReflectable {
    /// The server and the state of the connection.
    public nonisolated var description: String { "STOMPClient(\(server.map { "\($0)" } ?? "not connected"), \(state))" }
    // What is inside changes on other threads, and holds credentials.
    public nonisolated var customMirror: Mirror {
        Mirror(self, children: ["server": server as Any, "state": state])
    }
}
