import Wire

/// The head of the SEND frames of a connection that were sent last, as it was checked and written then: most programs
/// send to one destination with the same headers.
///
/// Written out when the same head comes for the second time; heads above one KiB are not kept.
struct SendHead: Sendable {
    private var destination = ""
    private var headers = STOMPHeaders()
    private var isKnown = false
    /// The command and the line of the destination, then the lines of the headers; empty until they come again.
    private(set) var bytes: [UInt8] = []
    /// Where the lines of the headers begin.
    private(set) var split = 0

    private static let largest = 1024

    /// Whether `bytes` are the head of such a frame.
    @inline(__always)
    func holds(_ destination: String, _ headers: STOMPHeaders) -> Bool {
        !bytes.isEmpty && isSame(destination, headers)
    }

    private func isSame(_ destination: String, _ headers: STOMPHeaders) -> Bool {
        self.destination.hasSameBytes(as: destination) && self.headers.isSame(as: headers)
    }

    /// A head was found good and written.
    mutating func sent(_ destination: String, _ headers: STOMPHeaders, _ escaping: STOMPEscaping) {
        guard isKnown, isSame(destination, headers) else {
            bytes = []
            self.destination = destination
            self.headers = headers
            isKnown = true
            return
        }
        let room = FrameWriter.room(for: destination) &+ FrameWriter.room(for: headers) &+ 32
        guard bytes.isEmpty, room <= Self.largest else { return }
        var split = 0
        bytes.append(addingCapacity: room) { span in
            // `count` says how much was written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, escaping, replacesUnencodable: false)
                writer.put("SEND\n")
                writer.put("destination", destination)
                split = writer.count
                let fields = headers.fields.span
                for index in fields.indices { writer.put(fields[index]) }
                count = writer.count
            }
        }
        self.split = split
    }

    /// Another connection may have other rules.
    mutating func forget() {
        self = SendHead()
    }
}

extension STOMPHeaders {
    /// Whether these are the same lines. Headers that are sent again and again mostly lie in the same memory.
    @inline(__always)
    fileprivate func isSame(as other: STOMPHeaders) -> Bool {
        guard fields.count == other.fields.count else { return false }
        if fields.isEmpty { return true }
        // Only compared: an array that is kept keeps its place to itself.
        let place = unsafe fields.withUnsafeBufferPointer { $0.baseAddress }
        let otherPlace = unsafe other.fields.withUnsafeBufferPointer { $0.baseAddress }
        return unsafe place == otherPlace || fields == other.fields
    }
}
