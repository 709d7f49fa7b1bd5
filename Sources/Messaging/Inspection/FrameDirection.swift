/// Which way a frame went, as the client sees it.
public enum FrameDirection: Sendable, Hashable {
    /// From the client to the server.
    case sent
    /// From the server to the client.
    case received
}
