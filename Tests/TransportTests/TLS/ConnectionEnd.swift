import MessagingWire
import Synchronization
import Transport

/// A machine that takes every byte, to see how a connection ends.
struct SinkMachine: LinkMachine, ~Copyable {
    typealias AfterLock = SinkAfterLock

    final class SinkAfterLock: LinkAfterLock {
        init() {}
        func perform(_ bytes: RawSpan) {}
    }

    var output: [UInt8] = []
    var nextDeadline: Int64 { .max }
    var wantsClose = false
    private(set) var isOpen = false
    var wantsReadingPaused: Bool { false }
    /// What came so far.
    var received: [UInt8] = []
    var end: (@Sendable (TransportError?) -> Void)?

    mutating func connectionOpened(at now: Int64, into afterLock: SinkAfterLock) {
        isOpen = true
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: SinkAfterLock) {
        isOpen = false
        end?(error)
        end = nil
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: SinkAfterLock) -> Int {
        bytes.withUnsafeBytes { received.append(contentsOf: $0) }
        return bytes.byteCount
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: SinkAfterLock) {}
}

/// Attaches a link and waits for the end of the connection.
func endOfConnection(_ stream: any ByteStream, _ layers: LayerStack?) async -> TransportError? {
    await withCheckedContinuation { continuation in
        let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
        link.perform { $0.end = { continuation.resume(returning: $0) } }
        link.attach(stream, layers: layers)
    }
}
