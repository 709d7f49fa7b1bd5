/// The protocol, without sockets, clocks or tasks: bytes and time in; bytes, effects and one deadline out.
///
/// *Life.* An engine lives as long as its client or its place in a server; connections come and go on it:
/// `connectionOpened`, any number of `receive` and operations, `connectionClosed`. What belongs to one connection
/// (version, subscriptions, transactions, receipts) ends with it. The caller subscribes anew after `connected`.
///
/// *Kinds of methods.* Inputs (`connectionOpened`, `receive`, `readingPaused`, `handleTimeout`, `connectionClosed`)
/// never fail: what a peer does wrong becomes `connectionFailed` and a request to close. Operations (`send`,
/// `subscribe`, `accept`, …) throw `STOMPUsageError` before they write anything.
///
/// *Order of draining.* After each input and each operation: take `output` and write it; after an input perform the
/// effects; close when `shouldClose` says so and the output is written; ask `nextDeadline` anew. Late, early and
/// repeated timeouts do no harm.
///
/// *Time* is nanoseconds on a clock of the caller that never goes back; `Int64.max` is "no deadline".
///
/// *Roles.* A client sends CONNECT as soon as the stream is open. A server awaits it, picks the version, and leaves the
/// answer and all routing to its owner.
///
/// *The end* comes once per connection: `disconnected` or `connectionFailed`. From then on the engine reads nothing
/// and writes nothing, even if the stream stays open: RabbitMQ sends RECEIPT after ERROR, and it must not count.
public struct STOMPEngine: ~Copyable, Sendable {
    public enum Phase: UInt8, Sendable {
        /// There is no connection.
        case closed
        /// A client awaits CONNECTED, a server awaits CONNECT.
        case connecting
        /// A server received CONNECT and has not answered yet.
        case deciding
        /// The connection is accepted.
        case connected
        /// DISCONNECT was sent and its RECEIPT is awaited; nothing new is begun.
        case leaving
        /// The end was reported; whatever arrives is ignored.
        case closing
    }

    /// What the next connection uses; while one is open, a change waits for the next. The role never changes.
    public var configuration: STOMPEngineConfiguration
    let role: STOMPRole

    /// Bytes for the wire. The driver swaps them out.
    public var output: [UInt8] = []

    public internal(set) var phase = Phase.closed
    /// Counts connections from 1. Messages and transactions are good for the connection that they belong to.
    public internal(set) var connection: UInt32 = 0
    /// The version of this connection; 1.2 before it is known.
    public internal(set) var version = STOMPVersion.v12
    /// What is known about the broker; ``STOMPBrokerProfile/generic`` before CONNECTED.
    public internal(set) var profile = STOMPBrokerProfile.generic
    /// What both sides agreed on, in milliseconds; zeros before CONNECTED.
    public internal(set) var heartBeat = STOMPHeartBeat.none
    /// Frames and heart-beats that came over all connections.
    public internal(set) var framesReceived: UInt64 = 0
    public internal(set) var lineEndsReceived: UInt64 = 0
    public internal(set) var heartBeatsSent: UInt64 = 0

    var limits: STOMPLimits

    var scanner = FrameScanner()
    /// What the last `receive` left over: only bytes beyond it are signs of life.
    var bytesLeft = 0
    var subscriptions = SubscriptionTable()
    var receipts = ReceiptTable()
    var transactions: Set<UInt32> = []
    var nextTransaction: UInt32 = 1
    /// The receipt of DISCONNECT.
    var disconnectReceipt: UInt64?
    /// What the client of a server side promised and asked.
    var peerHeartBeat = STOMPHeartBeat.none

    /// Until CONNECTED, until the end of DISCONNECT, or until the stream is to be closed.
    var phaseDeadline = Int64.max
    var timing = HeartBeatTiming()
    var sendHead = SendHead()

    /// An engine without a connection.
    public init(configuration: STOMPEngineConfiguration) {
        self.configuration = configuration
        role = configuration.role
        limits = configuration.limits.clamped
    }

    /// The time at which ``handleTimeout(at:into:)`` is to be called; `Int64.max` for never.
    public var nextDeadline: Int64 {
        phase == .closed ? .max : min(phaseDeadline, receipts.nextDeadline, timing.nextDeadline)
    }

    /// Whether the connection is over: write ``output``, then close it and call ``connectionClosed(at:into:)``.
    public var shouldClose: Bool { phase == .closing }

    /// The number of receipts that are awaited.
    public var pendingReceipts: Int { receipts.pending }

    func require(
        _ condition: Bool, _ code: STOMPUsageError.Code, _ message: @autoclosure () -> String
    ) throws(STOMPUsageError) {
        guard condition else { throw STOMPUsageError(code, message()) }
    }
}
