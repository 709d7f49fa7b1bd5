public import Synchronization
import Transport

/// The lease of a batch, and which of its messages is next: one atomic value, so that a message is handed out once although
/// another iterator may take the batch over at any moment.
@_documentation(visibility: internal)
@frozen
public struct DeliveryPlace: RawRepresentable, AtomicRepresentable, Equatable, Sendable {
    public let rawValue: UInt64

    @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }

    @inlinable
    package init(lease: UInt32 = 0, index: Int = 0) { rawValue = UInt64(lease) << 32 | UInt64(index) }

    /// The number of the lease, which one iterator has; 0 for none.
    @inlinable package var lease: UInt32 { UInt32(rawValue >> 32) }
    /// The number of messages that were handed out.
    @inlinable package var index: Int { Int(UInt32(truncatingIfNeeded: rawValue)) }
    @inlinable package var next: DeliveryPlace { DeliveryPlace(rawValue: rawValue + 1) }
}

/// Who reads the messages of a subscription.
enum DeliveryReader: ~Copyable {
    /// No iterator has a lease.
    case none
    /// The iterator with this lease hands out the messages of the current batch, or will ask for another one.
    case reads(UInt32)
    /// The iterator with this lease waits for a batch or the end.
    case waits(UInt32, Waiter<Void>)

    /// A batch or the end is there: returns the iterator's task if it waits.
    mutating func wake() -> Waiter<Void>? {
        switch consume self {
        case .none:
            self = .none
            return nil
        case .reads(let lease):
            self = .reads(lease)
            return nil
        case .waits(let lease, let waiter):
            self = .reads(lease)
            return waiter
        }
    }

    /// An iterator without a lease asks for messages: it takes over. Returns the task of the earlier iterator if that waits.
    mutating func takeOver(as lease: UInt32) -> Waiter<Void>? {
        let replaced = wake()
        self = .reads(lease)
        return replaced
    }

    /// An iterator waits; returns its task if it has no lease any more.
    mutating func wait(_ waiter: consuming Waiter<Void>, as lease: UInt32) -> Waiter<Void>? {
        guard has(lease) else { return waiter }
        let earlier = takeOver(as: lease)
        assert(earlier == nil, "An iterator waits twice with one lease.")
        self = .waits(lease, waiter)
        return nil
    }

    /// An iterator returns its lease, unless another one has taken over; returns its task if it waits.
    mutating func end(_ lease: UInt32) -> Waiter<Void>? {
        guard has(lease) else { return nil }
        let waiter = wake()
        self = .none
        return waiter
    }

    /// Whether any iterator has a lease.
    var isLeased: Bool {
        switch self {
        case .none: false
        case .reads: true
        case .waits: true
        }
    }

    /// Whether an iterator has its lease still.
    func has(_ lease: UInt32) -> Bool {
        switch self {
        case .none: false
        case .reads(let known): known == lease
        case .waits(let known, _): known == lease
        }
    }
}

/// What an iterator does next. Not generic, because generic code looks up the metadata of such types at each use.
enum DeliveryStep {
    case handOut(AnyObject, Range<Int>)
    case wait
    case end
    /// Another iterator has taken over, or the wait was cancelled.
    case giveUp
}

/// Messages that an iterator may hand out.
package struct DeliveryLease<Batch: MessageStorage>: Sendable {
    package let batch: Batch
    package let indices: Range<Int>
    package let lease: UInt32
}
