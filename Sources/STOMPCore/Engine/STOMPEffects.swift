import MessagingWire

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
        /// ERROR named no receipt, and this is the oldest of several, which it most likely means.
        case presumablyRefused
        /// The session ended with an ERROR or a violation; whether the frame was processed is unknown.
        case sessionEnded
        /// The connection ended; whether the frame was processed is unknown.
        case connectionLost
        /// No RECEIPT in time. A later receipt is ignored, unless it is that of a SUBSCRIBE and the caller has not read
        /// all that time: ``received`` or another ``timedOut`` follows then.
        case timedOut
        /// The RECEIPT of DISCONNECT came first: the frame was received, whether it was processed is unknown.
        case disconnected
        /// The frame was in a transaction that was aborted, so that it had no effect.
        case aborted
    }

    /// The token that the operation was given.
    public var token: UInt64
    public var outcome: Outcome
}

/// One MESSAGE or SEND frame as offsets into the bytes given to `receive`. Plain data; strings are read from the
/// header lines on demand, with ``STOMPHeaderReader``.
public struct STOMPMessageRecord: Sendable, BitwiseCopyable {
    /// The value of ``subscription`` when no subscription of the engine matches: it has ended meanwhile, or the broker
    /// sent a message without one.
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
    @usableFromInline var frameStart: UInt32
    @usableFromInline var headerEnd: UInt32
    @usableFromInline var bodyEnd: UInt32
    @usableFromInline var destinationStart: UInt32
    @usableFromInline var destinationEnd: UInt32
    @usableFromInline var messageIDValue: Near
    @usableFromInline var contentTypeValue: Near
    /// Bytes of the line with the command, and of the empty line in front of the body.
    @usableFromInline var commandCount: UInt8
    @usableFromInline var separatorCount: UInt8
    public var flags: Flags

    /// The whole frame, NUL included.
    @inlinable public var frame: Range<Int> { Int(frameStart)..<(Int(bodyEnd) + 1) }
    /// The header lines with their line ends, without the empty line after them.
    @inlinable public var headers: Range<Int> { (Int(frameStart) + Int(commandCount))..<Int(headerEnd) }
    /// The body.
    @inlinable public var body: Range<Int> { (Int(headerEnd) + Int(separatorCount))..<Int(bodyEnd) }
    /// The value of `destination` as on the wire, still escaped; empty if the header is missing.
    @inlinable public var destination: Range<Int> { Int(destinationStart)..<Int(destinationEnd) }
    /// The value of `message-id` in MESSAGE as on the wire, still escaped. Empty if the header is missing or not within
    /// the first 64 KiB of the frame.
    @inlinable public var messageID: Range<Int> { messageIDValue.range(from: frameStart) }
    /// The value of `content-type` as on the wire, still escaped; empty as ``messageID``.
    @inlinable public var contentType: Range<Int> { contentTypeValue.range(from: frameStart) }

    /// The record for the same frame in bytes that start `distance` bytes later, at most at the frame's start.
    @inlinable
    package func moved(by distance: Int) -> STOMPMessageRecord {
        var moved = self
        // Wraps to the right value for frames that move to higher offsets, whose distance is negative.
        let shift = UInt32(truncatingIfNeeded: distance)
        moved.frameStart &-= shift
        moved.headerEnd &-= shift
        moved.bodyEnd &-= shift
        moved.destinationStart &-= shift
        moved.destinationEnd &-= shift
        return moved
    }

    /// The record for the same frame at the beginning of other bytes, with a body of another length.
    package func alone(bodyCount: Int) -> STOMPMessageRecord {
        var alone = moved(by: Int(frameStart))
        alone.bodyEnd = alone.headerEnd &+ UInt32(alone.separatorCount) &+ UInt32(clamping: bodyCount)
        return alone
    }

    /// A range within the first 64 KiB of a frame; 0 for one that is not there.
    @usableFromInline struct Near: Sendable, BitwiseCopyable {
        @usableFromInline let start: UInt16
        @usableFromInline let count: UInt16

        init(_ slot: FrameScanner.Slot) {
            let isNear = slot.isSet && slot.end <= UInt16.max
            start = isNear ? UInt16(truncatingIfNeeded: slot.start) : 0
            count = isNear ? UInt16(truncatingIfNeeded: slot.end &- slot.start) : 0
        }

        @inlinable
        func range(from frame: UInt32) -> Range<Int> {
            (Int(frame) + Int(start))..<(Int(frame) + Int(start) + Int(count))
        }
    }
}

extension STOMPMessageRecord {
    /// A record of SEND or MESSAGE.
    @inline(__always)
    init(_ scanner: borrowing FrameScanner, _ base: Int) {
        func offset(_ value: Int) -> UInt32 { UInt32(truncatingIfNeeded: base &+ value) }
        subscription = Self.unmatched
        frameStart = offset(0)
        headerEnd = offset(scanner.headerEnd)
        bodyEnd = offset(scanner.bodyEnd)
        let hasDestination = scanner.destination.isSet
        destinationStart = hasDestination ? offset(Int(scanner.destination.start)) : 0
        destinationEnd = hasDestination ? offset(Int(scanner.destination.end)) : 0
        messageIDValue = Near(scanner.messageID)
        contentTypeValue = Near(scanner.contentType)
        commandCount = UInt8(truncatingIfNeeded: scanner.headerStart)
        separatorCount = UInt8(truncatingIfNeeded: scanner.bodyStart &- scanner.headerEnd)
        flags = scanner.hasEscapes ? .escaped : []
        if scanner.receipt.isSet { flags.insert(.receipt) }
        if scanner.transaction.isSet { flags.insert(.transaction) }
    }
}
