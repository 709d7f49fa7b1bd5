import Transport

/// A layer for tests: both sides say hello, then frames of a type, a length and bytes, the first of them inverted.
final class PlainLayer: ByteLayer {
    private var pending: [UInt8] = []
    private(set) var isOpen = false
    private(set) var isFinished = false
    private var hasFailed = false
    /// Never answers the other side's hello.
    let isMute: Bool
    /// Fails with the first bytes that it should send.
    let failsToSend: Bool
    private static let hello: [UInt8] = Array("HELLO".utf8)
    private static let data: UInt8 = 1
    private static let goodBye: UInt8 = 2
    private static let alert: UInt8 = 3

    init(isMute: Bool = false, failsToSend: Bool = false) {
        self.isMute = isMute
        self.failsToSend = failsToSend
    }

    func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError) {
        if !isMute { wire += Self.hello }
    }

    func receive(_ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]) throws(TransportError) {
        bytes.withUnsafeBytes { pending += $0 }
        if !isOpen {
            guard pending.count >= Self.hello.count else { return }
            guard pending.starts(with: Self.hello) else { throw TransportError(.connectionLost, "no hello") }
            pending.removeFirst(Self.hello.count)
            isOpen = true
        }
        while let type = pending.first {
            switch type {
            case Self.data:
                guard pending.count >= 3 else { return }
                let count = Int(pending[1]) << 8 | Int(pending[2])
                guard pending.count >= 3 + count else { return }
                plain.append(~pending[3])
                plain += pending[4..<(3 + count)]
                pending.removeFirst(3 + count)
            case Self.goodBye:
                isFinished = true
                pending = []
            case Self.alert:
                hasFailed = true
                throw TransportError(.connectionLost, "the peer sent an alert")
            default:
                throw TransportError(.connectionLost, "not a frame: \(type)")
            }
        }
    }

    func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        guard !isFinished, !hasFailed else { return }
        if failsToSend {
            wire.append(Self.alert)
            throw TransportError(.unsupported, "this layer cannot send")
        }
        plain.withUnsafeBytes { raw in
            for start in stride(from: 0, to: raw.count, by: 0xFFFF) {
                let end = min(start + 0xFFFF, raw.count)
                wire += [Self.data, UInt8((end - start) >> 8), UInt8((end - start) & 0xFF), ~raw[start]]
                wire += raw[(start + 1)..<end]
            }
        }
    }

    func close(wire: inout [UInt8]) {
        wire.append(Self.goodBye)
    }

    func endReceived() throws(TransportError) {
        if !isFinished { throw TransportError(.connectionLost, "ended without good-bye") }
    }
}
