import Synchronization

/// How far the bytes of a connection have come, counted at the stream, layers included.
@usableFromInline
package struct LinkProgress: Sendable, Equatable {
    /// Bytes that were written to the stream or wait to be, the machine's output included.
    package var total = 0
    /// Bytes among them that the peer's system has acknowledged.
    package var acknowledged = 0

    package init(total: Int = 0, acknowledged: Int = 0) {
        self.total = total
        self.acknowledged = acknowledged
    }
}

extension Link where Machine: ~Copyable {
    /// The progress of the connection, whose stream has come to `acknowledged`; under the lock, on the loop's thread.
    func progress(_ state: borrowing LinkState, acknowledged: Int) -> LinkProgress {
        let waiting = machine.pointee.outputCount
        var total = state.queuedBytes + waiting
        // What layers will add to it is not known yet: rather too much, since it only has to cover what waits.
        if let layers { total += layers.outputCount + waiting / 16 + 1024 }
        return LinkProgress(total: total, acknowledged: acknowledged)
    }
}
