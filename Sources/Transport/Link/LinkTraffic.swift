/// What a link has moved over all its connections, as seen by the system: bytes of the protocol with its layers.
package struct LinkTraffic: Equatable, Sendable {
    package var bytesSent = 0
    /// Attempts to write, those that found no room included.
    package var writes = 0
    package var bytesReceived = 0
    /// Attempts to read, those that found nothing or the end included.
    package var reads = 0

    /// What was moved in one direction and is not added yet.
    struct Half {
        var bytes = 0
        var calls = 0
        /// Bytes that came out of layers, to be written.
        var queued = 0
    }

    mutating func addSent(_ part: Half) {
        bytesSent += part.bytes
        writes += part.calls
    }

    mutating func addReceived(_ part: Half) {
        bytesReceived += part.bytes
        reads += part.calls
    }
}
