public import MessagingWire
import Synchronization

/// What a link drives: a protocol engine with the bookkeeping of its shell (waiters, routes), all of it synchronous
/// and called under the link's lock.
///
/// Questions to an engine change nothing, but are declared as mutating: the compiler copies a large value for a call
/// that only reads it, which would be half of the cost of asking.
///
/// A machine lives as long as its client; connections come and go on it. It never calls out: work that has to happen
/// outside goes into `afterLock` and is performed after the lock is released.
@usableFromInline
package protocol LinkMachine: ~Copyable, Sendable {
    associatedtype AfterLock: LinkAfterLock

    /// Bytes for the wire; the link swaps them out.
    var output: [UInt8] { get set }
    /// A payload that is not in `output`, but belongs there; the link takes both together.
    var largePayload: LargePayload? { get set }
    /// Payloads of at least so many bytes may be left out of `output`, none at `Int.max`; set for each connection.
    var leastPayloadLeftOut: Int { get set }
    /// The number of bytes in `output` and of `largePayload`: asked for often, where a copy of the array would be a counted
    /// reference.
    var outputCount: Int { get }
    /// How many of these bytes are our own messages, which are bounded even if the peer never reads them: callers wait for
    /// room, or for acknowledgements. The others are answers, of which there are as many as the peer asks for.
    var ownBytes: Int { get }
    /// The time of the next `handleTimeout`, `Int64.max` for none.
    var nextDeadline: Int64 { mutating get }
    /// Whether no task but the caller waits for an answer, so that sending at once beats sending together.
    var isLatencyBound: Bool { mutating get }
    /// Set when the connection should end once `output` is written.
    var wantsClose: Bool { mutating get }
    /// Set when the peer is known to be silent, or has not accepted the client: once the machine wants to close, the
    /// connection ends at once, and `output` is not written, which such a peer would not take. It ends abortively, so that
    /// the peer's system may drop what the peer has not read: a CONNECT that is read late takes the session over.
    var abandonsOutput: Bool { mutating get }
    /// Set while nothing more should be read: some receiver's bound is reached.
    var wantsReadingPaused: Bool { get }
    /// The link stops reading until the peer has taken more of `output`, although the machine did not ask for that; or
    /// it reads again. The end of the connection is not reported.
    mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64)

    /// The system slept from `start` until now, so that nothing was read, and the connection may be dead. `handleTimeout`
    /// follows.
    mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress)

    /// The bytes of `output` are being written.
    mutating func outputTaken(at now: Int64)
    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock)
    /// The connection is gone; `error` is nil when the peer ended it gracefully.
    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock)
    /// `bytes` is everything not consumed so far; returns how many bytes were consumed. A machine that has stopped to let
    /// others have the lock sets `isReceiving`: it is called again with the same bytes, before its effects are performed.
    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int
    /// - Parameter progress: how far the bytes of the connection have come, counted at the stream.
    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock)
    /// Bytes that were taken out of `output` will not be written, except those before `offset`, which were. `bytes`
    /// begins where they were taken, so at the beginning of a packet or frame; `payload`, whose bytes `offset` counts
    /// too, is not among them.
    mutating func outputDiscarded(_ bytes: RawSpan, leavingOut payload: LargePayload?, writtenUpTo offset: Int)
    /// Reports what was discarded since the last time.
    mutating func reportDiscarded(into afterLock: AfterLock)
    /// Reports that the peer takes none of the bytes that wait, or takes them again.
    mutating func report(_ standstill: Standstill, into afterLock: AfterLock)
}

/// Sending has come to a standstill: a caller waits for room in the outbox, or nothing is read because of what waits in it, and
/// the peer has taken nothing for ``MovementWatch/patience``.
@usableFromInline
package enum Standstill: Sendable, Equatable {
    case began
    /// There is room again, or nothing waits for it any longer, after so many nanoseconds. The end of the connection is not
    /// reported.
    case ended(after: Int64)
}

/// Effects of a machine, collected under the lock and performed after it. One object serves all links of a loop.
@usableFromInline
package protocol LinkAfterLock: AnyObject, SendableMetatype {
    init()
    /// Whether the machine has stopped in the bytes that it was given, and is to be called again.
    var isReceiving: Bool { get }
    /// Delivers and resumes. `bytes` is what `receive` was given, or empty.
    func perform(_ bytes: RawSpan)
}

extension LinkAfterLock {
    package var isReceiving: Bool { false }

    /// A second object of each loop, for work that is not an input of a link and may be done while a link performs its own.
    package static func apart(on loop: EventLoop) -> Self { loop.sharedObject(Apart<Self>.self) { Apart() }.afterLock }
}

private final class Apart<AfterLock: LinkAfterLock> {
    let afterLock = AfterLock()
}

extension LinkMachine where Self: ~Copyable {
    // Inlined where the machine is known, which saves the copy of the array.
    @inlinable package var outputCount: Int { output.count }
    @inlinable package var ownBytes: Int { 0 }
    package var largePayload: LargePayload? {
        get { nil }
        set {}
    }
    package var leastPayloadLeftOut: Int {
        get { .max }
        set {}
    }
    package var isLatencyBound: Bool { true }
    package var abandonsOutput: Bool { false }
    package mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) {}
    package mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {}
    package mutating func outputTaken(at now: Int64) {}
    package mutating func outputDiscarded(
        _ bytes: RawSpan, leavingOut payload: LargePayload?, writtenUpTo offset: Int
    ) {}
    package mutating func reportDiscarded(into afterLock: AfterLock) {}
    package mutating func report(_ standstill: Standstill, into afterLock: AfterLock) {}
}

/// Sees what a link exchanges with its peer, in the clear and in whole frames: for inspectors.
///
/// Called outside the link's lock, in the order of the bytes of each direction, and with an answer behind what it answers;
/// `sent` also on the threads of callers.
/// Bytes that are seen as sent were taken out of the outbox; they may not have arrived.
package protocol LinkTap: AnyObject, Sendable {
    /// Whether anybody looks at the traffic at present. Otherwise the link need not have all bytes in one piece.
    var isWatched: Bool { get }
    func sent(_ bytes: RawSpan)
    /// Called before the effects of the bytes are performed.
    func received(_ bytes: RawSpan)
}

extension LinkTap {
    package var isWatched: Bool { true }
}

/// What a link has moved over all its connections, as seen by the system: bytes of the protocol with its layers.
package struct LinkTraffic: Equatable, Sendable {
    package var bytesSent = 0
    /// Attempts to write, those that found no room included.
    package var writes = 0
    package var bytesReceived = 0
    /// Attempts to read, those that found nothing or the end included.
    package var reads = 0

    /// What was moved in one direction and is not added yet.
    struct Half {
        var bytes = 0
        var calls = 0
        /// Bytes that came out of layers, to be written.
        var queued = 0
    }

    mutating func addSent(_ part: Half) {
        bytesSent += part.bytes
        writes += part.calls
    }

    mutating func addReceived(_ part: Half) {
        bytesReceived += part.bytes
        reads += part.calls
    }
}
