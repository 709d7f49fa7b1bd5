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
    public enum Role: UInt8, Sendable { case client, server }

    public enum Phase: UInt8, Sendable {
        /// No stream.
        case offline
        /// A client has sent CONNECT; a server awaits it.
        case connecting
        /// A server has CONNECT and owes an answer.
        case accepting
        case connected
        /// DISCONNECT is on its way.
        case disconnecting
        /// The end was reported; the stream is still to be closed.
        case ended
    }

    public let role: Role
    public internal(set) var configuration: STOMPEngineConfiguration

    /// Bytes for the wire. The driver swaps them out.
    public var output: [UInt8] = []

    public internal(set) var phase = Phase.offline
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

    var connectOptions: STOMPConnectOptions
    var connectFrame: [UInt8]
    let limits: STOMPLimits

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

    /// A client's engine. Throws when CONNECT cannot say what the options want.
    public init(
        client options: STOMPConnectOptions, configuration: STOMPEngineConfiguration = STOMPEngineConfiguration()
    ) throws(STOMPUsageError) {
        connectFrame = try options.encoded()
        connectOptions = options
        role = .client
        self.configuration = configuration
        limits = configuration.limits.clamped
    }

    /// A server's engine, for one connection after another.
    public init(serverWith configuration: STOMPEngineConfiguration = STOMPEngineConfiguration()) {
        connectFrame = []
        connectOptions = STOMPConnectOptions()
        role = .server
        self.configuration = configuration
        limits = configuration.limits.clamped
    }

    /// Replaces what the next CONNECT says, fresh credentials for instance.
    public mutating func setConnectOptions(_ options: STOMPConnectOptions) throws(STOMPUsageError) {
        try require(role == .client, .wrongRole, "Only a client has options for CONNECT.")
        connectFrame = try options.encoded()
        connectOptions = options
    }

    /// When `handleTimeout` is to be called, or `Int64.max`.
    public var nextDeadline: Int64 {
        // Changes nothing: a value as large as this is copied for a question that only reads.
        mutating get {
            guard phase != .offline else { return .max }
            return min(phaseDeadline, receipts.nextDeadline, timing.nextDeadline)
        }
    }

    /// Whether the connection is to be closed once `output` is written.
    public var wantsClose: Bool { mutating get { phase == .ended } }

    /// The number of receipts that are awaited.
    public var pendingReceipts: Int { mutating get { receipts.pending } }

    func require(
        _ condition: Bool, _ code: STOMPUsageError.Code, _ message: @autoclosure () -> String
    ) throws(STOMPUsageError) {
        guard condition else { throw STOMPUsageError(code, message()) }
    }
}
