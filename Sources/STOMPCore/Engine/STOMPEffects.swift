import Wire

/// What an input did, as plain arrays: the caller performs it after its lock is released, then clears it and hands it
/// in again, so that its capacity is used over and over.
public struct STOMPEffects: Sendable {
    /// MESSAGE frames at a client, SEND frames at a server, in the order of arrival. Their ranges are offsets into the
    /// bytes given to `receive`.
    public var messages: [STOMPMessageRecord] = []

    /// Receipts that came, or will not come.
    public var completions: [STOMPReceiptCompletion] = []

    /// Everything else. Each event knows how many messages of this batch came before it.
    public var events: [STOMPEngineEvent] = []

    public init() {}

    /// Whether there is nothing to perform.
    public var isEmpty: Bool { messages.isEmpty && completions.isEmpty && events.isEmpty }

    /// Forgets everything and keeps the capacity.
    public mutating func removeAll() {
        messages.removeAll(keepingCapacity: true)
        completions.removeAll(keepingCapacity: true)
        events.removeAll(keepingCapacity: true)
    }

    /// Appends an event at its place among the messages.
    mutating func report(_ kind: STOMPEngineEvent.Kind) {
        events.append(STOMPEngineEvent(messagesBefore: messages.count, kind: kind))
    }
}

/// The end of a wait for a receipt.
public struct STOMPReceiptCompletion: Sendable, Hashable {
    public enum Outcome: UInt8, Sendable {
        /// RECEIPT: the server has processed the frame.
        case received
        /// ERROR named this receipt, or it was the only one awaited.
        case refused
        /// ERROR named no receipt, and this is the oldest of several: most likely the one meant.
        case presumablyRefused
        /// The session ended with an ERROR or a violation; whether the frame was processed is unknown.
        case sessionEnded
        /// The connection ended; whether the frame was processed is unknown.
        case connectionLost
        /// No RECEIPT in time. One that comes later is passed over.
        case timedOut
        /// The RECEIPT of DISCONNECT came first: the frame was received, whether it was processed is unknown.
        case disconnected
    }

    /// The token that the operation was given.
    public var token: UInt64
    public var outcome: Outcome
}

/// One MESSAGE or SEND frame as offsets into the bytes given to `receive`. Plain data; strings are read from the
/// header lines on demand, with ``STOMPHeaderReader``.
public struct STOMPMessageRecord: Sendable, BitwiseCopyable {
    /// What ``subscription`` is when no subscription of the engine matches: it was unsubscribed meanwhile, or the
    /// broker sent something of its own accord.
    public static let unmatched = UInt64.max

    public struct Flags: OptionSet, Sendable, BitwiseCopyable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Some header holds an escape.
        public static let escaped = Flags(rawValue: 1)
        /// There is a `receipt` header: the server's side answers when the frame is processed.
        public static let receipt = Flags(rawValue: 2)
        /// There is a `transaction` header.
        public static let transaction = Flags(rawValue: 4)
        /// The subscription was named by its destination only, as STOMP 1.0 may do.
        public static let matchedByDestination = Flags(rawValue: 8)
    }

    /// At a client the token of the subscription, or ``unmatched``; at a server 0.
    public var subscription: UInt64
    @usableFromInline var offsets: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)
    public var flags: Flags

    /// The whole frame, NUL included.
    @inlinable public var frame: Range<Int> { frameStart..<(bodyEnd + 1) }
    /// The header lines with their line ends, without the empty line after them.
    @inlinable public var headers: Range<Int> { headerStart..<headerEnd }
    /// The body.
    @inlinable public var body: Range<Int> { bodyStart..<bodyEnd }
    /// The value of `destination` as on the wire, still escaped; empty if the header is missing.
    @inlinable public var destination: Range<Int> { destinationStart..<destinationEnd }

    @inlinable public var frameStart: Int { Int(offsets.0) }
    @inlinable public var headerStart: Int { Int(offsets.1) }
    @inlinable public var headerEnd: Int { Int(offsets.2) }
    @inlinable public var bodyStart: Int { Int(offsets.3) }
    @inlinable public var bodyEnd: Int { Int(offsets.4) }
    @inlinable public var destinationStart: Int { Int(offsets.5) }
    @inlinable public var destinationEnd: Int { Int(offsets.6) }

    /// The record for the same frame in bytes that start `distance` bytes later, at most at the frame's start.
    @inlinable
    public func moved(by distance: Int) -> STOMPMessageRecord {
        var moved = self
        // Wraps to the right value for frames that move to higher offsets, whose distance is negative.
        let shift = UInt32(truncatingIfNeeded: distance)
        moved.offsets = (
            offsets.0 &- shift, offsets.1 &- shift, offsets.2 &- shift, offsets.3 &- shift, offsets.4 &- shift,
            offsets.5 &- shift, offsets.6 &- shift
        )
        return moved
    }
}

extension STOMPMessageRecord {
    @inline(__always)
    init(_ scanner: borrowing FrameScanner, _ base: Int) {
        func offset(_ value: Int) -> UInt32 { UInt32(truncatingIfNeeded: base &+ value) }
        subscription = Self.unmatched
        let hasDestination = scanner.destination.isSet
        offsets = (
            offset(0), offset(scanner.headerStart), offset(scanner.headerEnd), offset(scanner.bodyStart),
            offset(scanner.bodyEnd), hasDestination ? offset(Int(scanner.destination.start)) : 0,
            hasDestination ? offset(Int(scanner.destination.end)) : 0
        )
        flags = scanner.hasEscapes ? .escaped : []
        if scanner.receipt.isSet { flags.insert(.receipt) }
        if scanner.transaction.isSet { flags.insert(.transaction) }
    }
}
