/// What an engine needs before a connection opens: its role, what a client sends in CONNECT, and every bound.
///
/// It may be changed between connections (fresh credentials, for example); a change takes effect when the next
/// connection opens. Times are nanoseconds; `Int64.max` means never.
public struct STOMPEngineConfiguration: Sendable {
    /// Which end of the connection this engine plays. Default: client.
    public var role: STOMPRole
    /// What a client sends in CONNECT.
    public var connect: STOMPConnectOptions
    /// Bounds on what the peer sends.
    public var limits = STOMPLimits()
    /// From `connectionOpened` to CONNECTED, or at a server to CONNECT. Default: 30 seconds.
    public var connectTimeout: Int64 = 30_000_000_000
    /// From DISCONNECT to the end of the connection, whatever the server does. Default: 5 seconds.
    public var disconnectTimeout: Int64 = 5_000_000_000
    /// How long a receipt is awaited, the same for all. Default: 60 seconds.
    public var receiptTimeout: Int64 = 60_000_000_000
    /// The longest time without any RECEIPT while a client awaits some, transactions aside; then the connection ends with
    /// ``STOMPConnectionFailure/Reason/acknowledgementTimeout``. It is counted from the last RECEIPT, or from the time when
    /// the peer's system acknowledged the bytes of what is awaited. It doubles with each connection in a row that ended for
    /// it, until a RECEIPT arrives. Default: 30 seconds.
    public var acknowledgementTimeout: Int64 = 30_000_000_000
    /// The number of receipts that may be awaited at the same time, and a sixteenth of the number of receipts after the oldest
    /// of them, answered or not; those of SUBSCRIBE, UNSUBSCRIBE, COMMIT and ABORT may exceed both. Default: 65,536.
    public var maximumReceipts = 65_536
    /// Replaces the profile that the `server` header selects. Default: none.
    public var profile: STOMPBrokerProfile?
    /// The versions that a server accepts. Default: all.
    public var serverVersions: [STOMPVersion] = STOMPVersion.allCases

    public init(role: STOMPRole = .client, connect: STOMPConnectOptions = STOMPConnectOptions()) {
        self.role = role
        self.connect = connect
    }

    /// Throws if ``connect`` holds what CONNECT cannot carry. Checked before each CONNECT is written, and by clients
    /// before they open a connection.
    public func checkConnect() throws(STOMPUsageError) {
        if role == .client { _ = try connect.encoded() }
    }
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
    /// Bytes of one body. A frame that arrives takes memory as its bytes come, until it is complete and its message has been
    /// copied.
    public var maximumBodyBytes = 64 * 1024 * 1024

    public init() {}

    public init(maximumLineBytes: Int, maximumHeaders: Int, maximumHeaderBytes: Int, maximumBodyBytes: Int) {
        self.maximumLineBytes = maximumLineBytes
        self.maximumHeaders = maximumHeaders
        self.maximumHeaderBytes = maximumHeaderBytes
        self.maximumBodyBytes = maximumBodyBytes
    }

    /// For frames that are in memory already.
    package static let unbounded = STOMPLimits(
        maximumLineBytes: .max, maximumHeaders: .max, maximumHeaderBytes: .max, maximumBodyBytes: .max
    ).clamped

    /// Offsets inside a frame are 32 bits wide, so no bound may reach further than a gigabyte.
    var clamped: STOMPLimits {
        func clamp(_ value: Int, _ most: Int) -> Int { min(max(value, 0), most) }
        return STOMPLimits(
            maximumLineBytes: clamp(maximumLineBytes, 1 << 24), maximumHeaders: clamp(maximumHeaders, 1 << 20),
            maximumHeaderBytes: clamp(maximumHeaderBytes, 1 << 26), maximumBodyBytes: clamp(maximumBodyBytes, 1 << 30))
    }
}
