/// What a link has moved over all its connections, as seen by the system: bytes of the protocol with its layers.
package struct LinkTraffic: Equatable, Sendable {
    package var bytesSent = 0
    /// Attempts to write, those that found no room included.
    package var writes = 0
    package var bytesReceived = 0
    /// Attempts to read, those that found nothing or the end included.
    package var reads = 0

    static func += (total: inout LinkTraffic, part: LinkTraffic) {
        total.bytesSent += part.bytesSent
        total.writes += part.writes
        total.bytesReceived += part.bytesReceived
        total.reads += part.reads
    }
}
