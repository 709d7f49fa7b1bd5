import MessagingWire

/// The last bytes of all that were appended, found by their position: the number of bytes in front of them.
struct ByteRing {
    private var storage: [UInt8] = []
    /// The position of the next byte.
    private(set) var end = 0

    private static let smallest = 4096

    /// Appends bytes and keeps those from `oldest` on.
    ///
    /// - Parameter limit: The capacity is doubled up to here, and only where more bytes are kept becomes larger.
    mutating func append(_ bytes: RawSpan, keepingFrom oldest: Int, limit: Int) {
        let kept = end - oldest + bytes.byteCount
        if kept > storage.count {
            grow(to: max(kept, min(limit, max(Self.smallest, storage.count * 2))), keepingFrom: oldest)
        }
        write(bytes)
    }

    private mutating func write(_ bytes: RawSpan) {
        let (place, count) = (end % max(1, storage.count), bytes.byteCount)
        let first = min(count, storage.count - place)
        unsafe storage.withUnsafeMutableBytes { target in
            unsafe bytes.withUnsafeBytes { source in
                // Both parts fit: the first ends with the storage at the latest, and the second is shorter than it.
                unsafe UnsafeMutableRawBufferPointer(rebasing: target[place...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: source[..<first]))
                unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[first...]))
            }
        }
        end += count
    }

    private mutating func grow(to capacity: Int, keepingFrom oldest: Int) {
        let kept = bytes(in: oldest..<end)
        storage = [UInt8](repeating: 0, count: capacity)
        end = oldest
        // UInt8 has no padding, so all bytes are initialised.
        unsafe write(kept.span.bytes)
    }

    /// Bytes that are kept.
    func bytes(in range: Range<Int>) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let place = range.lowerBound % storage.count
        let first = min(range.count, storage.count - place)
        return Array(storage[place..<place + first]) + storage[..<(range.count - first)]
    }

    /// Writes stars over bytes that were just appended; `range` counts from `start`, and may go beyond the end.
    mutating func hide(_ range: Range<Int>, behind start: Int) {
        for index in range where start + index < end { storage[(start + index) % storage.count] = FrameBytes.star }
    }

    /// Forgets all bytes and frees their memory.
    mutating func removeAll() {
        storage = []
    }
}
