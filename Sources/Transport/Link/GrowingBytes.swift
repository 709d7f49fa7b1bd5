/// The bytes of a large packet that arrives in parts, in memory that the system enlarges in place where it can.
///
/// An array that grows takes twice as much as it holds, and both the old and the new memory while it moves: with a
/// packet of 64 MiB twice as much as has arrived. This takes an eighth more than has arrived.
struct GrowingBytes: ~Copyable {
    // Owned by this value alone and freed with it; `count` bytes of `capacity` are initialized.
    private var base: UnsafeMutableRawPointer?
    private(set) var count = 0
    private(set) var capacity = 0

    init() {}

    deinit { free(base) }

    var isEmpty: Bool { count == 0 }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        let needed = count + bytes.count
        if needed > capacity {
            capacity = needed + needed / 8
            guard let larger = realloc(base, capacity) else {
                preconditionFailure("The system has no memory for a packet of \(needed) bytes.")
            }
            base = larger
        }
        // There is room behind `count`, and memory that is owned here does not overlap with the caller's.
        base?.advanced(by: count).copyMemory(from: source, byteCount: bytes.count)
        count = needed
    }

    mutating func removeFirst(_ number: Int) {
        precondition((0...count).contains(number))
        count -= number
        guard let base, number > 0, count > 0 else { return }
        memmove(base, base + number, count)
    }

    /// Gives the bytes to read, for the time of the call.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: base, count: count))
    }
}
