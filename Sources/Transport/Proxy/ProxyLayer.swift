/// What is said to a proxy before it passes bytes on.
protocol ProxyHandshake {
    /// Writes what the client begins with.
    mutating func begin(wire: inout [UInt8])
    /// Takes bytes of the proxy's answers and returns how many; what is left when `isDone` is the server's.
    mutating func receive(_ bytes: RawSpan, wire: inout [UInt8]) throws(TransportError) -> Int
    /// Whether the way is open.
    var isDone: Bool { get }
    /// What ended too early, in words: "the HTTP proxy 10.0.0.1:3128, asked for broker:1883,".
    var subject: String { get }
}

/// The lowest layer of a connection through a proxy: a handshake, and from then on nothing of its own.
final class ProxyLayer<Handshake: ProxyHandshake>: ByteLayer {
    private var handshake: Handshake

    init(_ handshake: Handshake) {
        self.handshake = handshake
    }

    var isOpen: Bool { handshake.isDone }
    var isFinished: Bool { false }

    func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError) {
        handshake.begin(wire: &wire)
    }

    func receive(
        _ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        let consumed = handshake.isDone ? 0 : try handshake.receive(bytes, wire: &wire)
        guard handshake.isDone else { return }
        bytes.extracting(droppingFirst: consumed).withUnsafeBytes { plain.append(contentsOf: $0) }
    }

    func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        plain.withUnsafeBytes { wire.append(contentsOf: $0) }
    }

    func close(wire: inout [UInt8]) {}

    func endReceived() throws(TransportError) {
        guard !handshake.isDone else { return }
        throw TransportError(
            .proxyClosed,
            "\(handshake.subject) ended the connection without an answer; does it speak that at this port?")
    }
}
