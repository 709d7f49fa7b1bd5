import MessagingWire
import Synchronization

/// Reading; on the loop's thread.
extension Link where Machine: ~Copyable {
    /// Tails up to this size go in front of what is read next; longer ones stay where they are and grow, so that a
    /// large packet that trickles in is not copied with each of its drops.
    private static var longestMovedTail: Int { 16 * 1024 }

    /// Reads once and feeds the machine; returns whether there may be more.
    ///
    /// - Parameter evenIfPaused: set when the system reported a hang-up. It reports that again and again, so that the
    ///   end has to be found now; what comes before it is at most what the system had buffered.
    @discardableResult
    func receive(at now: Int64, evenIfPaused: Bool) -> Bool {
        guard let stream = state.withLock({ $0.stream }), !isReadingPaused || evenIfPaused else { return false }
        let buffer = unsafe loop.readBuffer
        let moved = layers == nil && tail.count <= Self.longestMovedTail ? tail.count : 0
        if moved > 0 {
            // Safe: the tail is much shorter than the loop's buffer, which nothing else uses until this returns.
            unsafe tail.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
        }
        // Safe: behind the tail; without a tail that is the whole buffer.
        let result = unsafe stream.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[moved...]))
        received.calls += 1
        guard case .bytes(let count) = result else {
            ended(result, stream, at: now)
            return false
        }
        received.bytes += count
        // Safe: so many bytes were written to the loop's buffer, which nothing else uses until this returns.
        let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<(moved + count)]))
        // Nil over plain TCP: the bytes are the machine's.
        if let layers {
            receiveThroughLayers(layers, bytes, at: now)
        } else if moved == tail.count {
            let consumed = feed(bytes, at: now)
            keep(bytes.extracting(droppingFirst: consumed))
            settle(at: now)
        } else {
            bytes.append(to: &tail)
            feedTail(at: now)
            settle(at: now)
        }
        return true
    }

    private func keep(_ rest: RawSpan) {
        if rest.byteCount == 0 {
            // An idle connection keeps no buffer.
            tail = []
        } else {
            tail.removeAll(keepingCapacity: true)
            rest.append(to: &tail)
        }
    }

    /// Feeds the machine with the tail. A large message in it is in memory twice for that time: in the tail, and in the
    /// batch that its receivers get.
    private func feedTail(at now: Int64) {
        // Out of the property: whatever the effects lead to, these bytes stay.
        var bytes: [UInt8] = []
        swap(&bytes, &tail)
        let consumed = unsafe feed(bytes.span.bytes, at: now)
        if consumed == 0 {
            tail = bytes
        } else if consumed < bytes.count {
            // Do not keep the rest of a large array.
            tail = Array(bytes[consumed...])
        }
    }

    /// Lets the machine consume what it can and performs the effects; returns how much was consumed.
    private func feed(_ bytes: RawSpan, at now: Int64) -> Int {
        let afterLock = self.afterLock
        var consumed = 0
        while consumed < bytes.byteCount {
            let span = bytes.extracting(droppingFirst: consumed)
            var (count, wantsClose) = (0, false)
            var tap: (any LinkTap)?
            repeat {
                state.withLock { state in
                    count = machine.value.receive(span, at: now, into: afterLock)
                    (wantsClose, tap) = (machine.value.wantsClose, state.tap)
                    state.receivedIsUnshown = tap != nil
                }
            } while afterLock.isReceiving
            if let tap { show(span.extracting(..<count), to: tap) }
            afterLock.perform(span)
            consumed += count
            // A machine may stop early to have its effects performed; nothing consumed means that it needs more.
            if count == 0 { break }
            if wantsClose { return bytes.byteCount }
        }
        return consumed
    }

    /// Shows what was received. Callers' threads send nothing meanwhile: what they leave to the loop, it sends when it settles.
    private func show(_ bytes: RawSpan, to tap: any LinkTap) {
        if bytes.byteCount > 0 { tap.received(bytes) }
        state.withLock { $0.receivedIsUnshown = false }
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
            endConnection(failure, at: now)
        } else if layers.isFinished {
            finishConnection(at: now)
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
                endConnection(nil, at: now)
            } catch {
                endConnection(error, at: now)
            }
        case .failed(let code):
            endConnection(explained(stream.failure(code)), at: now)
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

    /// The progress of the connection, whose stream has come this far; under the lock, on the loop's thread.
    func progress(_ state: borrowing LinkState, _ stream: StreamProgress) -> OutputProgress {
        let waiting = machine.value.outputCount
        var total = state.queuedBytes + waiting
        // It is not known yet how much layers will add. An overestimate is fine, since it only has to cover the bytes
        // that wait.
        if let layers { total += layers.outputCount + (waiting > 0 ? waiting / 16 + 1024 : 0) }
        var progress = OutputProgress(total: total, acknowledged: stream.acknowledged)
        if isReadingHeldUp { progress.movedBytes = stream.movement.bytes }
        return progress
    }
}
