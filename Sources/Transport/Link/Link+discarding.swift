import Synchronization

/// What was taken out of the outbox, or was still in it, and will not be written: the machine counts it.
///
/// All of it under the lock, but for the report.
extension Link where Machine: ~Copyable {
    /// Drops what the sender has taken and not written, and returns whether there was any. The caller holds `sending`, or
    /// no task does.
    @discardableResult
    func discardChunk() -> Bool {
        defer {
            wire.removeAll(keepingCapacity: true)
            wireOffset = 0
        }
        // What layers made of the chunk has other offsets: as long as a part of it is missing, none of it counts as
        // written.
        if !plain.isEmpty { return discardPlain() }
        guard wireIsChunk, wireOffset < wire.count else { return false }
        machine.pointee.outputDiscarded(wire.span.bytes, writtenUpTo: wireOffset)
        return true
    }

    /// Drops what layers were given.
    @discardableResult
    func discardPlain() -> Bool {
        guard !plain.isEmpty else { return false }
        machine.pointee.outputDiscarded(plain.span.bytes, writtenUpTo: 0)
        plain.removeAll(keepingCapacity: true)
        return true
    }

    /// Drops the outbox.
    func discardOutput() {
        guard machine.pointee.outputCount > 0 else { return }
        var discarded: [UInt8] = []
        swap(&machine.pointee.output, &discarded)
        machine.pointee.outputDiscarded(discarded.span.bytes, writtenUpTo: 0)
    }

    /// A caller found out late that the connection it was writing to is gone.
    func reportDiscarded() {
        let scratch = self.scratch
        state.withLock { _ in machine.pointee.reportDiscarded(into: scratch) }
        scratch.perform(RawSpan())
    }
}
