/// A payload that an engine leaves out of its output, so that it is written from the caller's own bytes instead of a copy.
@usableFromInline
package final class LargePayload: Sendable {
    package let bytes: [UInt8]
    /// Where in the output it belongs. What is written later comes behind it.
    package let place: Int

    /// The size from which on this is worth the calls to the system that it adds: one, or two where bytes follow the payload.
    /// Copying takes longer from a quarter of a megabyte on.
    package static let leastCount = 256 * 1024

    package init(_ bytes: [UInt8], at place: Int) {
        self.bytes = bytes
        self.place = place
    }

    /// Copies it to where it belongs, for those who need all bytes in one piece.
    package func insert(into output: inout [UInt8]) { output.insert(contentsOf: bytes, at: place) }
}
