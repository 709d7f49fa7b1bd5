/// What an engine keeps over all its connections. Times are nanoseconds; `Int64.max` is "never".
public struct STOMPEngineConfiguration: Sendable {
    public var limits = STOMPLimits()
    /// From `connectionOpened` to CONNECTED, or at a server to CONNECT.
    public var connectTimeout: Int64 = 30_000_000_000
    /// From DISCONNECT to the end, whatever the server does.
    public var disconnectTimeout: Int64 = 5_000_000_000
    /// How long a receipt is awaited, the same for all.
    public var receiptTimeout: Int64 = 60_000_000_000
    /// Receipts awaited at the same time.
    public var maximumReceipts = 65_536
    /// Overrules what the `server` header says.
    public var profile: STOMPBrokerProfile?
    /// The versions that a server side speaks.
    public var serverVersions: [STOMPVersion] = STOMPVersion.allCases

    public init() {}
}

/// Bounds for what a peer may make us hold, each checked before memory is taken (STOMP 1.2 "Size Limits").
///
/// The defaults are above what the brokers themselves send; a lower bound on the body is the one worth setting.
public struct STOMPLimits: Sendable, Hashable {
    /// Bytes of one line: the command or a header, without its end.
    public var maximumLineBytes = 128 * 1024
    /// Header lines of one frame.
    public var maximumHeaders = 2_048
    /// Bytes of the command and all headers of one frame.
    public var maximumHeaderBytes = 512 * 1024
    /// Bytes of one body.
    public var maximumBodyBytes = 64 * 1024 * 1024

    public init() {}

    public init(maximumLineBytes: Int, maximumHeaders: Int, maximumHeaderBytes: Int, maximumBodyBytes: Int) {
        self.maximumLineBytes = maximumLineBytes
        self.maximumHeaders = maximumHeaders
        self.maximumHeaderBytes = maximumHeaderBytes
        self.maximumBodyBytes = maximumBodyBytes
    }

    /// Offsets inside a frame are 32 bits wide, so no bound may reach further than a gigabyte.
    var clamped: STOMPLimits {
        func clamp(_ value: Int, _ most: Int) -> Int { min(max(value, 0), most) }
        return STOMPLimits(
            maximumLineBytes: clamp(maximumLineBytes, 1 << 24), maximumHeaders: clamp(maximumHeaders, 1 << 20),
            maximumHeaderBytes: clamp(maximumHeaderBytes, 1 << 26), maximumBodyBytes: clamp(maximumBodyBytes, 1 << 30))
    }
}
