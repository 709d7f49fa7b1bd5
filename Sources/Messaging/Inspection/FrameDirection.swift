/// Which way a frame went, as the client sees it.
public enum FrameDirection: Sendable, Hashable {
    case sent
    case received
}
