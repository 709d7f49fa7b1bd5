import Synchronization
import Wire

extension Link where Machine: ~Copyable {
    /// Tails up to this size go in front of what is read next; longer ones stay where they are and grow, so that a
    /// large packet that trickles in is not copied with each of its drops.
    private static var longestMovedTail: Int { 16 * 1024 }

    /// Packets from this size on are handed over to their receivers instead of being copied for them. Smaller copies come
    /// from memory that is reused.
    private static var smallestHandedOver: Int { 1 << 20 }

    /// Reads once and feeds the machine; returns whether there may be more.
    ///
    /// - Parameter evenIfPaused: set when the system reported a hang-up. It reports that again and again, so that the
    ///   end has to be found now; what comes before it is at most what the system had buffered.
    @discardableResult
    func receive(at now: Int64, evenIfPaused: Bool) -> Bool {
        guard let stream = state.withLock({ $0.stream }), !isReadingPaused || evenIfPaused else { return false }
        let buffer = unsafe loop.readBuffer
        let moves = longTail.isEmpty
        let kept = layers == nil && moves ? tail.count : 0
        if kept > 0 {
            // Safe: the tail is much shorter than the loop's buffer, which nothing else uses until this returns.
            unsafe tail.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
        }
        // Safe: behind the tail; without a tail that is the whole buffer.
        let result = unsafe stream.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[kept...]))
        received.calls += 1
        guard case .bytes(let count) = result else {
            ended(result, stream, at: now)
            return false
        }
        received.bytes += count
        // Safe: so many bytes were written to the loop's buffer, which nothing else uses until this returns.
        let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<(kept + count)]))
        if let layers {
            receiveThroughLayers(layers, bytes, at: now)
        } else if moves {
            let consumed = feed(bytes, at: now)
            keep(bytes.extracting(droppingFirst: consumed))
            settle(at: now)
        } else {
            longTail.append(bytes)
            feedTail(at: now)
            settle(at: now)
        }
        return true
    }

    private func keep(_ rest: RawSpan) {
        if rest.byteCount == 0 {
            // An idle connection keeps no buffer.
            if !tail.isEmpty || tail.capacity > 4096 { tail = [] }
        } else if rest.byteCount > Self.longestMovedTail {
            tail = []
            longTail.append(rest)
        } else {
            tail.removeAll(keepingCapacity: true)
            rest.append(to: &tail)
        }
    }

    private func feedTail(at now: Int64) {
        guard longTail.isEmpty else { return feedLongTail(at: now) }
        // Out of the property: whatever the effects lead to, these bytes stay.
        var bytes: [UInt8] = []
        swap(&bytes, &tail)
        let consumed = unsafe feed(bytes.span.bytes, at: now)
        if consumed == bytes.count { return }
        if bytes.count - consumed > Self.longestMovedTail {
            return unsafe longTail.append(bytes.span.bytes.extracting(droppingFirst: consumed))
        }
        if consumed > 0 { bytes.removeFirst(consumed) }
        tail = bytes
    }

    private func feedLongTail(at now: Int64) {
        // What layers passed on follows what is there.
        if !tail.isEmpty {
            unsafe longTail.append(tail.span.bytes)
            tail = []
        }
        // As above.
        var bytes = GrowingBytes()
        swap(&bytes, &longTail)
        if bytes.count >= Self.smallestHandedOver { return feedLargePacket(bytes, at: now) }
        let consumed = bytes.withBytes { feed($0, at: now) }
        if consumed == bytes.count { return }
        bytes.removeFirst(consumed)
        if bytes.count > Self.longestMovedTail {
            longTail = bytes
        } else {
            tail = bytes.withBytes { $0.copied }
        }
    }

    /// Feeds the machine with a packet that has arrived in parts and may be complete now. A complete one is handed over
    /// with the memory that it arrived in, so that a large message is in memory only once.
    private func feedLargePacket(_ arrived: consuming GrowingBytes, at now: Int64) {
        let scratch = self.scratch
        let (count, wantsClose) = arrived.withBytes { bytes in
            let result = consume(bytes, at: now, into: scratch)
            if result.count == 0 { scratch.perform(bytes) }
            return result
        }
        if count == 0 {
            longTail = arrived
            return
        }
        let bytes = arrived.takeArray()
        scratch.perform(owning: bytes)
        if wantsClose { return }
        let rest = unsafe bytes.span.bytes.extracting(droppingFirst: count)
        keep(rest.extracting(droppingFirst: feed(rest, at: now)))
    }

    /// Lets the machine consume what it can at once. The caller performs the effects.
    @inline(__always)
    private func consume(
        _ bytes: RawSpan, at now: Int64, into scratch: Machine.Scratch
    ) -> (count: Int, wantsClose: Bool) {
        let (count, wantsClose, tap) = state.withLock { state in
            (machine.value.receive(bytes, at: now, into: scratch), machine.value.wantsClose, state.tap)
        }
        if let tap, count > 0 { tap.received(bytes.extracting(..<count)) }
        return (count, wantsClose)
    }

    /// Lets the machine consume what it can and performs the effects; returns how much was consumed.
    private func feed(_ bytes: RawSpan, at now: Int64) -> Int {
        let scratch = self.scratch
        var consumed = 0
        while consumed < bytes.byteCount {
            let span = bytes.extracting(droppingFirst: consumed)
            let (count, wantsClose) = consume(span, at: now, into: scratch)
            scratch.perform(span)
            consumed += count
            // A machine may stop early to have its effects performed; nothing consumed means that it needs more.
            if count == 0 { break }
            if wantsClose { return bytes.byteCount }
        }
        return consumed
    }

    private func receiveThroughLayers(_ layers: LayerStack, _ bytes: RawSpan, at now: Int64) {
        var failure: TransportError?
        do throws(TransportError) {
            try layers.receive(bytes, at: now, into: &tail)
        } catch {
            failure = error
        }
        if !tail.isEmpty { feedTail(at: now) }
        settle(at: now)
        if let failure {
            connectionEnded(failure, at: now)
        } else if layers.isFinished {
            connectionFinished(at: now)
        }
    }

    /// Layers may have found bytes for the machine behind their handshakes.
    func receiveEarly(from layers: LayerStack, at now: Int64) {
        tail = layers.early
        layers.early = []
        if !tail.isEmpty { feedTail(at: now) }
        settle(at: now)
    }

    private func ended(_ result: IOResult, _ stream: any ByteStream, at now: Int64) {
        switch result {
        case .bytes, .wouldBlock:
            return
        case .endOfStream:
            do throws(TransportError) {
                try layers?.endReceived()
                connectionEnded(nil, at: now)
            } catch {
                connectionEnded(error, at: now)
            }
        case .failed(let code):
            connectionEnded(explained(stream.failure(code)), at: now)
        }
    }

    /// A layer may know why the peer broke the connection, where the system only knows that it did.
    func explained(_ failure: TransportError) -> TransportError {
        // The stream knows the reason itself.
        guard failure.code == .connectionLost else { return failure }
        do throws(TransportError) {
            try layers?.endReceived()
            return failure
        } catch {
            // A missing closing message explains less than the system's error.
            return error.code == .tlsTruncated ? failure : error
        }
    }

    /// The progress of the connection, whose stream has come to `acknowledged`; under the lock, on the loop's thread.
    func progress(_ state: borrowing LinkState, acknowledged: Int) -> LinkProgress {
        let waiting = machine.value.outputCount
        var total = state.queuedBytes + waiting
        // What layers will add to it is not known yet: rather too much, since it only has to cover what waits.
        if let layers { total += layers.outputCount + (waiting > 0 ? waiting / 16 + 1024 : 0) }
        return LinkProgress(total: total, acknowledged: acknowledged)
    }
}

/// The bytes of a large packet that arrives in parts, in memory that the system enlarges in place where it can.
///
/// An array that grows takes twice as much as it holds, and both the old and the new memory while it moves: with a
/// packet of 64 MiB twice as much as has arrived. This takes an eighth more than has arrived.
// Safe to use: the memory is owned by this value alone and freed with it; `count` bytes of `capacity` are initialized.
@safe
struct GrowingBytes: ~Copyable {
    private var base: UnsafeMutableRawPointer?
    private(set) var count = 0
    private(set) var capacity = 0

    init() {}

    deinit { unsafe free(base) }

    var isEmpty: Bool { count == 0 }

    mutating func append(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        let needed = count + bytes.byteCount
        if needed > capacity {
            capacity = needed + needed / 8
            guard let larger = unsafe realloc(base, capacity) else {
                // As where an array cannot grow: without memory the process cannot continue. How much a peer can make
                // the client hold is limited by its maximum packet size.
                preconditionFailure("The system has no memory for a packet of \(needed) bytes.")
            }
            unsafe base = larger
        }
        // There is room behind `count`, and memory that is owned here does not overlap with the caller's.
        _ = unsafe bytes.withUnsafeBytes { unsafe memcpy(base! + count, $0.baseAddress!, $0.count) }
        count = needed
    }

    mutating func removeFirst(_ number: Int) {
        precondition((0...count).contains(number))
        count -= number
        guard let base = unsafe base, number > 0, count > 0 else { return }
        // Both ends are inside the initialized bytes.
        unsafe memmove(base, base + number, count)
    }

    /// Moves the bytes to an array and frees this memory.
    ///
    /// They are copied from the end, and the system gets back what is copied, so that the memory of the bytes is needed
    /// once and not twice.
    mutating func takeArray() -> [UInt8] {
        let total = count
        let array = unsafe [UInt8](unsafeUninitializedCapacity: total) { target, initializedCount in
            while count > 0, let from = unsafe base, let to = target.baseAddress {
                let start = max(0, count - Self.movedAtOnce)
                // Both hold `count` bytes at least, and memory that is owned here is not the array's.
                unsafe memcpy(to + start, from + start, count - start)
                count = start
                if start > 0, let smaller = unsafe realloc(from, start) {
                    unsafe base = smaller
                    capacity = start
                }
            }
            initializedCount = total
        }
        unsafe free(base)
        unsafe base = nil
        capacity = 0
        return array
    }

    private static var movedAtOnce: Int { 1 << 20 }

    /// Passes the bytes on for the time of the call.
    func withBytes<Result>(_ body: (RawSpan) -> Result) -> Result {
        // As many bytes are initialized, and they stay for the time of the call.
        body(unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: base, count: count)))
    }
}
