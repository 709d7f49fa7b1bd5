import MessagingWire

/// The STOMP protocol as a state machine, for either end of a connection and for 1.0, 1.1 and 1.2.
///
/// # Theory of operation
///
/// An engine does no input or output, reads no clock and calls nothing back. It lives as long as its client or its place
/// in a server, and connections come and go on it. The state of one connection (version, subscriptions, transactions,
/// receipts) ends with it: the caller subscribes again after ``STOMPEngineEvent/Kind/connected(_:)``. The caller owns
/// the socket and the lock.
///
/// There are three kinds of methods, and one order of draining, the same as in `MQTTEngine`:
///
/// 1. *What happened*, and operations of the caller: ``connectionOpened(at:deadline:)``, ``receive(_:at:into:)``,
///    `send`, `subscribe`, ``handleTimeout(at:progress:into:)``, … Each takes the time, in nanoseconds of a monotonic clock of
///    the caller. Operations that cannot be carried out throw ``STOMPUsageError`` before anything is written; what the *peer*
///    does wrong is never thrown but reported as ``STOMPEngineEvent/Kind/connectionFailed(_:)``.
/// 2. *What to do*: bytes appended to ``output``, which the caller swaps out and writes; ``STOMPEffects``, plain arrays that
///    the caller performs outside its lock and clears; and one ``nextDeadline``.
/// 3. *Questions*, which change nothing.
///
/// After any call: write ``output``, perform the effects, arm the timer if ``nextDeadline`` is earlier than what is armed.
/// Late, early and repeated timeouts are harmless. When ``shouldClose`` is true, close the connection once ``output`` is
/// written, and report ``connectionClosed(at:into:)``.
///
/// A client sends CONNECT as soon as the connection is open. A server awaits it, selects the version, and leaves the answer
/// and all routing to its owner. The end is reported once for each connection: ``STOMPEngineEvent/Kind/disconnected`` or
/// ``STOMPEngineEvent/Kind/connectionFailed(_:)``. From then on the engine ignores what arrives, even if the connection
/// stays open: RabbitMQ sends RECEIPT after ERROR, and it must not count.
public struct STOMPEngine: ~Copyable, Sendable {
    /// The state of a connection.
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

        /// Whether the connection is accepted, and its final frame has not been written.
        package var isOpen: Bool { self == .connected || self == .leaving }
    }

    /// What the next connection uses; while one is open, a change waits for the next. The role never changes.
    public var configuration: STOMPEngineConfiguration
    let role: STOMPRole

    /// Bytes to write, in order. The caller takes them out and may leave an empty array with capacity in their place.
    public var output: [UInt8] = []
    /// A payload that belongs into ``output`` but is not there. A caller that takes one takes the other as well.
    package var largePayload: LargePayload?
    /// The bytes that wait to be taken.
    package var outputCount: Int { output.count &+ (largePayload?.bytes.count ?? 0) }
    /// How many of them are our own messages: SEND of a client, MESSAGE of a server.
    package internal(set) var ownBytes = 0

    /// The state of the connection.
    public internal(set) var phase = Phase.closed
    /// Counts connections from 1. Messages and transactions are good for the connection that they belong to.
    public internal(set) var connection: UInt32 = 0
    /// The version of this connection; 1.2 before it is known.
    public internal(set) var version = STOMPVersion.v12
    // These three are here because there is room for them: an engine must not be larger without need.
    /// Whether RECEIPT has come for any frame other than DISCONNECT, on any connection.
    package internal(set) var hasReceivedReceipts = false
    /// Whether a subscription of this connection has ended with messages unanswered.
    var hasLeftMessages = false
    /// The receipts that may be awaited on this connection; 0 if the broker sends none.
    var receiptLimit: UInt32 = 0
    /// What is known about the broker; ``STOMPBrokerProfile/generic`` before CONNECTED.
    public internal(set) var profile = STOMPBrokerProfile.generic
    /// Payloads of at least so many bytes are left out of ``output``, one at a time: for callers that know ``largePayload``.
    package var leastPayloadLeftOut = Int.max
    /// What both sides agreed on, in milliseconds; zeros before CONNECTED.
    public internal(set) var heartBeat = STOMPHeartBeat.none
    /// Frames and heart-beats that came over all connections.
    package internal(set) var framesReceived: UInt64 = 0
    package internal(set) var lineEndsReceived: UInt64 = 0
    package internal(set) var heartBeatsSent: UInt64 = 0

    var limits: STOMPLimits

    var scanner = FrameScanner()
    /// What the last `receive` left over: only bytes beyond it are signs of life.
    var bytesLeft = 0
    /// The first bytes of a frame that has not ended, for what is said about it if it never does.
    var unfinished: [UInt8] = []
    var subscriptions = SubscriptionTable()
    var receipts = ReceiptTable()
    /// The number of the oldest receipt that the server has not sent, whether or not its caller still waits; 0 for none
    /// since the last one arrived.
    var owedReceipt: UInt64 = 0
    var receiptWait = AcknowledgementWait()
    /// The open transactions by their numbers.
    var transactions: [UInt32: OpenTransaction] = [:]
    var transactionReceipts = TransactionReceipts()
    var nextTransaction: UInt32 = 1
    /// Here because there is room for it.
    var pace = InvariantPace()
    /// The receipt of DISCONNECT.
    var disconnectReceipt: UInt64?
    /// What the client of a server side promised and asked.
    var peerHeartBeat = STOMPHeartBeat.none

    /// Until CONNECTED, until the end of DISCONNECT, or until the stream is to be closed.
    var phaseDeadline = Int64.max
    package internal(set) var timing = HeartBeatTiming()
    /// How much of ``output`` had moved at the last time-out while nothing was read because of it.
    var movedAtTimeout = 0

    /// An engine without a connection.
    public init(configuration: STOMPEngineConfiguration) {
        self.configuration = configuration
        role = configuration.role
        limits = configuration.limits.clamped
    }

    /// The time at which ``handleTimeout(at:progress:into:)`` is to be called; `Int64.max` for never.
    public var nextDeadline: Int64 { findNextDeadline() }

    /// The same for a caller that asks after each frame: a question to a value of this size copies it first, which an
    /// access in place does not.
    package mutating func nextDeadlineInPlace() -> Int64 { findNextDeadline() }

    @inline(__always)
    private borrowing func findNextDeadline() -> Int64 {
        if phase == .closed { return .max }
        let late = awaitsReceipts ? listening.moment(of: receiptWait.deadline) : .max
        return min(phaseDeadline, receiptDeadline, timing.nextDeadline, late)
    }

    /// Whether the server owes a receipt, and we would read it if it takes what we write. RabbitMQ withholds those of a transaction
    /// until its end.
    var awaitsReceipts: Bool {
        owedReceipt != 0 && phase == .connected && role == .client && transactions.isEmpty
            && listening.isRunning
    }

    /// Whether the connection is over: write ``output``, then close it and call ``connectionClosed(at:into:)``.
    public var shouldClose: Bool { phase == .closing }

    /// The number of receipts that are awaited.
    public var pendingReceipts: Int { receipts.pending }

    /// The same for a caller that asks after each frame, see ``nextDeadlineInPlace()``.
    package mutating func pendingReceiptsInPlace() -> Int { receipts.pending }

    /// What to do about missing receipts if there has never been one; else empty.
    package var receiptHint: String {
        hasReceivedReceipts
            ? ""
            : STOMPConnectionFailure.hintAtMissingReceipts
    }

    func require(
        _ condition: Bool, else error: @autoclosure () -> STOMPUsageError
    ) throws(STOMPUsageError) {
        guard condition else { throw error() }
    }
}
