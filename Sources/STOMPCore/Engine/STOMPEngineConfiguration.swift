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
