import MessagingWire
import Synchronization
import Transport

/// Faults that wait for their packet, and the readers of what arrives. A connection looks at single packets only while
/// there is one of them.
///
/// Its lock is taken under the lock of a link; nothing is called while it is held.
final class PacketWatch: Sendable {
    private struct PendingFault {
        let fault: LoopbackPacketFault
        let direction: LoopbackDirection
        let packet: LoopbackPacket
        let client: String?
        /// Packets that match, up to and including the one that is meant.
        var remaining: Int
    }

    private struct Reader {
        let continuation: AsyncStream<LoopbackArrival>.Continuation
        let includesDropped: Bool
    }

    private struct State {
        var faults: [PendingFault] = []
        var readers: [Int: Reader] = [:]
        var nextReader = 0
        /// The broker has stopped.
        var isFinished = false
    }

    private let state = Lock(State())
    private let active = Atomic(false)

    /// Whether connections have to look at single packets.
    var isActive: Bool { active.load(ordering: .relaxed) }

    func add(
        _ fault: LoopbackPacketFault, _ direction: LoopbackDirection, _ packet: LoopbackPacket, number: Int,
        client: String?
    ) {
        let pending = PendingFault(
            fault: fault, direction: direction, packet: packet, client: client, remaining: max(1, number))
        change { $0.faults.append(pending) }
    }

    func removeFaults() {
        change { $0.faults = [] }
    }

    /// The fault that hits this packet, if any; each fault hits once.
    func fault(_ direction: LoopbackDirection, _ packet: LoopbackPacket, of client: String) -> LoopbackPacketFault? {
        change { state in
            var hit: Int?
            for index in state.faults.indices {
                let pending = state.faults[index]
                guard pending.direction == direction, pending.packet == packet, pending.client ?? client == client
                else { continue }
                state.faults[index].remaining -= 1
                if state.faults[index].remaining == 0 && hit == nil { hit = index }
            }
            let found = hit.map { state.faults.remove(at: $0).fault }
            // Two faults for the same packet: the one that was injected first counts.
            state.faults.removeAll { $0.remaining <= 0 }
            return found
        }
    }

    /// A sequence of what arrives from now on.
    func arrivals(maximumCount: Int, includesDropped: Bool) -> AsyncStream<LoopbackArrival> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: LoopbackArrival.self, bufferingPolicy: .bufferingNewest(max(1, maximumCount)))
        let number = change { state -> Int? in
            guard !state.isFinished else { return nil }
            state.nextReader += 1
            state.readers[state.nextReader] = Reader(continuation: continuation, includesDropped: includesDropped)
            return state.nextReader
        }
        if let number {
            continuation.onTermination = { [weak self] _ in self?.change { _ = $0.readers.removeValue(forKey: number) }
            }
        } else {
            continuation.finish()
        }
        return stream
    }

    /// Passes on what has arrived; with no lock held.
    func report(_ arrivals: [LoopbackArrival]) {
        guard !arrivals.isEmpty else { return }
        let readers = state.withLock { state in state.readers.sorted { $0.key < $1.key }.map(\.value) }
        for reader in readers {
            for arrival in arrivals where reader.includesDropped || !arrival.wasDropped {
                reader.continuation.yield(arrival)
            }
        }
    }

    /// No packet will arrive any more.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            return state.readers.sorted { $0.key < $1.key }.map(\.value)
        }
        for reader in readers { reader.continuation.finish() }
    }

    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            defer { active.store(!state.faults.isEmpty || !state.readers.isEmpty, ordering: .relaxed) }
            return body(&state)
        }
    }
}

extension PacketWatch {
    /// The packets that are left of `output`, which holds whole packets only, and whether the connection is cut.
    ///
    /// - Parameter first: the kind and the length of the first packet; nil if the bytes do not begin with one.
    func filter(
        _ output: [UInt8], of client: String, first: (RawSpan) -> (packet: LoopbackPacket, length: Int)?
    ) -> (output: [UInt8], isCut: Bool) {
        var filtered: [UInt8] = []
        filtered.reserveCapacity(output.count)
        let bytes = unsafe output.span.bytes
        var start = 0
        while start < output.count {
            guard let (packet, length) = first(bytes.extracting(droppingFirst: start)) else {
                filtered += output[start...]
                break
            }
            let whole = output[start..<(start + length)]
            switch fault(.sent, packet, of: client) {
            case nil: filtered += whole
            case .drop: break
            case .duplicate: filtered += whole + whole
            case .cut: return (filtered, true)
            }
            start += length
        }
        return (filtered, false)
    }
}
