import Foundation

/// The server's end of one connection, on a thread of its own: blocking, with a bound on the whole.
///
/// A send or receive that fails ends the script by throwing; that is how most scripts end, when the client has had enough.
final class Peer {
    struct Gone: Error {}

    let number: Int
    private let descriptor: Int32
    private let deadline: ContinuousClock.Instant
    /// Bytes that the client sent.
    private(set) var received = 0

    init(_ descriptor: Int32, number: Int, until deadline: ContinuousClock.Instant) {
        self.descriptor = descriptor
        self.number = number
        self.deadline = deadline
        // A write or read returns now and then, so that the deadline is noticed.
        var wait = timeval(tv_sec: 0, tv_usec: 100_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
    }

    var isOver: Bool { ContinuousClock.now >= deadline }

    /// Sends all bytes.
    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { sent += count } else if errno != EAGAIN && errno != EINTR { throw Gone() }
            if isOver { throw Gone() }
        }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Sends the same bytes over and over, in large writes, until the client or the time has ended.
    ///
    /// - Parameter reading: whether what the client sends is read meanwhile.
    func flood(_ bytes: [UInt8], reading: Bool = true, times: Int = .max) throws {
        let copies = max(1, min(times, (64 << 10) / max(1, bytes.count)))
        let chunk = [UInt8]((0..<copies).lazy.flatMap { _ in bytes })
        var left = times
        while left > 0 {
            try send(left >= copies ? chunk : Array(chunk.prefix(left * bytes.count)))
            left -= copies
            if reading { _ = try receive(waiting: false) }
        }
    }

    /// Sends one byte at a time, with a pause after each.
    func drip(_ bytes: [UInt8], every pause: Duration = .milliseconds(200)) throws {
        for byte in bytes {
            try send([byte])
            pauseFor(pause)
            _ = try receive(waiting: false)
        }
    }

    private func pauseFor(_ pause: Duration) {
        usleep(UInt32(pause / .microseconds(1)))
    }

    /// What has come, at most 64 KiB; empty when nothing has.
    func receive(waiting: Bool = true) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, waiting ? 0 : Int32(MSG_DONTWAIT))
            if count > 0 {
                received += count
                return Array(buffer[..<count])
            }
            if count == 0 { throw Gone() }
            guard errno == EAGAIN || errno == EINTR else { throw Gone() }
            if isOver { throw Gone() }
            if !waiting { return [] }
        }
    }

    /// Reads until the bytes have come, as a server that does not care what is said reads a head.
    func expect(_ text: String) throws {
        let pattern = Array(text.utf8)
        var all: [UInt8] = []
        while !all.contains(pattern) { all += try receive() }
    }

    /// Does nothing, until the time is over. `reads` says whether it goes on taking what the client sends.
    func freeze(reads: Bool = false) throws {
        while !isOver {
            if reads { _ = try receive() } else { usleep(50_000) }
        }
    }

    /// Ends the server's direction of the connection alone.
    func closeHalf() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends the connection with RST.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
