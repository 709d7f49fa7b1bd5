/// A protocol between the stream and the engine (TLS, WebSocket, a proxy's handshake): bytes in, bytes out.
///
/// Layers are driven by their link on the loop's thread. Both directions append to the arrays that they are given.
package protocol ByteLayer: AnyObject {
    /// The stream below is open: writes the first bytes of the handshake, if this side begins.
    func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError)
    /// Bytes came from below: appends what is for the engine to `plain`, and answers to `wire`.
    func receive(_ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]) throws(TransportError)
    /// Bytes for the peer: appends their form below to `wire`. Called only while `isOpen`.
    func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError)
    /// Whether there is an answer that replaces earlier ones: it is written by `answer`, once the wire takes more.
    var owesAnswer: Bool { get }
    /// Writes that answer.
    func answer(wire: inout [UInt8])
    /// Says good-bye, if the protocol has a way to.
    func close(wire: inout [UInt8])
    /// The stream below ended: throws when the protocol had not (truncation).
    func endReceived() throws(TransportError)
    /// Whether the handshake is done.
    var isOpen: Bool { get }
    /// Whether the peer has said good-bye.
    var isFinished: Bool { get }
    /// Passes text on from now on without checking that it is text, if the layer knows text.
    func stopValidatingText()
}

extension ByteLayer {
    package func stopValidatingText() {}
}

extension ByteLayer {
    package var owesAnswer: Bool { false }
    package func answer(wire: inout [UInt8]) {}
}
