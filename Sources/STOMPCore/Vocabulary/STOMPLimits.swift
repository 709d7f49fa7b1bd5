/// Bounds for what a peer may make us hold, each checked before memory is taken (STOMP 1.2 "Size Limits").
///
/// The defaults are above what the brokers themselves send; a lower bound on the body is the one worth setting.
public struct STOMPLimits: Sendable, Hashable {
    /// Octets of one line: the command or a header, without its end.
    public var lineLength = 128 * 1024
    /// Header lines of one frame.
    public var headerCount = 2_048
    /// Octets of the command and all headers of one frame.
    public var headerBytes = 512 * 1024
    /// Octets of one body.
    public var bodyBytes = 64 * 1024 * 1024

    public init() {}

    public init(lineLength: Int, headerCount: Int, headerBytes: Int, bodyBytes: Int) {
        self.lineLength = lineLength
        self.headerCount = headerCount
        self.headerBytes = headerBytes
        self.bodyBytes = bodyBytes
    }

    /// Offsets inside a frame are 32 bits wide, so no bound may reach further than a gigabyte.
    var clamped: STOMPLimits {
        func clamp(_ value: Int, _ most: Int) -> Int { min(max(value, 0), most) }
        return STOMPLimits(
            lineLength: clamp(lineLength, 1 << 24), headerCount: clamp(headerCount, 1 << 20),
            headerBytes: clamp(headerBytes, 1 << 26), bodyBytes: clamp(bodyBytes, 1 << 30))
    }
}
