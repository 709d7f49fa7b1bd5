import MessagingWire

/// Writes one frame into memory that was reserved for its longest form: no growth, no intermediate buffers.
///
/// A name or value that the version cannot carry is noted in ``problem``; the caller then drops what was written.
@safe struct FrameWriter: ~Copyable {
    enum Problem: UInt8 {
        case lineFeed, endsWithReturn, colonInName, emptyName
    }

    /// The reserved memory; every `put` counts on `room`, which its callers added up before.
    private let base: UnsafeMutablePointer<UInt8>
    private let room: Int
    private(set) var count = 0
    /// The first problem.
    private(set) var problem: Problem?
    /// The bytes that were written before it.
    private var problemOffset = 0
    let escaping: STOMPEscaping
    /// Whether a blank takes the place of what the version cannot carry, as a broker must do for messages that came
    /// in another version.
    let replacesUnencodable: Bool

    init(_ buffer: UnsafeMutableBufferPointer<UInt8>, _ escaping: STOMPEscaping, replacesUnencodable: Bool) {
        // A buffer without memory has room for nothing, and `claim` keeps every write out of it.
        unsafe base = buffer.baseAddress ?? UnsafeMutablePointer(bitPattern: 8).unsafelyUnwrapped
        room = buffer.count
        self.escaping = escaping
        self.replacesUnencodable = replacesUnencodable
    }

    /// The room that a name or value takes at most: each byte may become two.
    @inline(__always)
    static func room(for text: String) -> Int { text.utf8.count &* 2 &+ 2 }

    /// The room that all header lines take at most.
    static func room(for headers: STOMPHeaders) -> Int {
        var sum = 0
        // Looked at where they lie: taken out, each field would cost four counted references.
        let fields = headers.fields.span
        for index in fields.indices { sum &+= room(for: fields[index].name) &+ room(for: fields[index].value) }
        return sum
    }

    /// The room of a decimal number with the line feed after it.
    static let numberRoom = 21

    /// Where to write `bytes` more. The caller has added up the room that is needed; if its sum is wrong, that must not
    /// become a write beyond the reservation.
    @inline(__always)
    private mutating func claim(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        precondition(room &- count >= bytes, "A frame is longer than was reserved for it.")
        let place = unsafe base + count
        count &+= bytes
        return unsafe place
    }

    @inline(__always)
    mutating func put(_ byte: UInt8) {
        // Within the reservation, see `claim`.
        unsafe claim(1).pointee = byte
    }

    @inline(__always)
    mutating func put(_ text: StaticString) {
        // Safe: a StaticString of more than one scalar has a pointer to its code units for as long as the process runs.
        let name = unsafe RawSpan(_unsafeStart: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        unsafe name.copyWords(to: claim(name.byteCount))
    }

    mutating func put(_ bytes: RawSpan) {
        let place = unsafe claim(bytes.byteCount)
        // The buffer is used only inside the closure, and as many bytes were claimed.
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(place).copyMemory(from: start, byteCount: source.count)
        }
    }

    mutating func putNumber(_ number: UInt64) {
        let digits = Self.digitCount(of: number)
        let place = unsafe claim(digits)
        unsafe Self.write(number, digits, to: place)
    }

    @inline(__always)
    private static func digitCount(of number: UInt64) -> Int {
        if number < 1_000 { return number < 10 ? 1 : number < 100 ? 2 : 3 }
        var digits = 4
        var bound: UInt64 = 10_000
        while digits < 20, number >= bound {
            digits &+= 1
            bound = digits == 20 ? .max : bound &* 10
        }
        return digits
    }

    @inline(__always) @unsafe
    private static func write(_ number: UInt64, _ digits: Int, to place: UnsafeMutablePointer<UInt8>) {
        var rest = number
        var index = digits
        // Two digits for each division by a hundred; all places are within the digits claimed.
        while rest >= 10 {
            let two = rest % 100
            index &-= 2
            unsafe place[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: two / 10)
            unsafe place[index &+ 1] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: two % 10)
            rest /= 100
        }
        if index > 0 { unsafe place[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest) }
    }

    /// A whole header line.
    mutating func put(_ name: StaticString, _ value: String) {
        put(name)
        put(UInt8(ascii: ":"))
        putText(value, isName: false)
        put(UInt8(ascii: "\n"))
    }

    /// A whole header line.
    @inline(__always)
    mutating func put(_ name: StaticString, _ value: UInt64) {
        let (count, digits) = (name.utf8CodeUnitCount, Self.digitCount(of: value))
        let place = unsafe claim(count &+ digits &+ 2)
        // Name, colon, digits and line feed are as many bytes as were claimed; the name is as in `put(_:)`.
        unsafe RawSpan(_unsafeStart: name.utf8Start, byteCount: count).copyWords(to: place)
        unsafe place[count] = UInt8(ascii: ":")
        unsafe Self.write(value, digits, to: place + count + 1)
        unsafe place[count &+ digits &+ 1] = UInt8(ascii: "\n")
    }

    /// - Parameter name: the name that its user has given it, or empty.
    mutating func put(_ transaction: STOMPTransaction, named name: String) {
        if !name.isEmpty { return put(STOMPHeaders.Field("transaction", name)) }
        put("transaction:tx-")
        putNumber(UInt64(transaction.connection))
        put(UInt8(ascii: "-"))
        putNumber(UInt64(transaction.number))
        put(UInt8(ascii: "\n"))
    }

    mutating func put(_ field: borrowing STOMPHeaders.Field) {
        // If nothing is escaped, names are read without the blanks around them.
        if field.name.isEmpty || (escaping == .none && field.name.trimmingBlanks().isEmpty) { note(.emptyName) }
        putText(field.name, isName: true)
        put(UInt8(ascii: ":"))
        putText(field.value, isName: false)
        put(UInt8(ascii: "\n"))
    }

    mutating func putText(_ text: String, isName: Bool) {
        // The buffer of the string is used only inside the closure.
        let isContiguous: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { source in
            unsafe putText(source, isName: isName)
        }
        guard isContiguous == nil else { return }
        var copy = text
        copy.withUTF8 { unsafe putText($0, isName: isName) }
    }

    @inline(__always)
    private mutating func putText(_ source: UnsafeBufferPointer<UInt8>, isName: Bool) {
        guard !source.isEmpty, let start = source.baseAddress else { return }
        let place = unsafe claim(source.count)
        // As many bytes were claimed as the source has.
        if unsafe !copyPlain(start, to: place, count: source.count) {
            count &-= source.count
            unsafe putSpecial(source, isName: isName)
        }
    }

    /// Byte by byte, for the rare text that holds a backslash, a colon or a line end.
    private mutating func putSpecial(_ source: UnsafeBufferPointer<UInt8>, isName: Bool) {
        for index in source.indices {
            let byte = unsafe source[index]
            if let letter = escaping.letter(for: byte) {
                put(UInt8(ascii: "\\"))
                put(letter)
                continue
            }
            let isLast = index == source.count - 1
            let found: Problem? =
                switch byte {
                case UInt8(ascii: "\n"): .lineFeed
                case UInt8(ascii: "\r") where isLast && !isName: .endsWithReturn
                case UInt8(ascii: ":") where isName: .colonInName
                default: nil
                }
            if let found, !replacesUnencodable { note(found) }
            put(found == nil ? byte : UInt8(ascii: " "))
        }
    }

    private mutating func note(_ found: Problem) {
        guard problem == nil else { return }
        (problem, problemOffset) = (found, count)
    }
}

extension FrameWriter {
    /// The name of the header whose value has the first problem.
    private var nameOfProblem: String {
        // So many bytes were written.
        let written = unsafe UnsafeBufferPointer(start: base, count: problemOffset)
        let start = unsafe written.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return unsafe String(decoding: written[start...].prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
    }
}

/// Copies text and returns whether it contains no backslash, colon, CR or LF. Sixteen bytes at a time, the
/// last of them overlapping.
@inline(__always) @unsafe
private func copyPlain(_ source: UnsafePointer<UInt8>, to place: UnsafeMutablePointer<UInt8>, count: Int) -> Bool {
    // No load and no store goes beyond `count`, which is what the caller has in both places.
    let (from, to) = unsafe (UnsafeRawPointer(source), UnsafeMutableRawPointer(place))
    guard count >= 8 else {
        for index in 0..<count {
            let byte = unsafe source[index]
            switch byte {
            case UInt8(ascii: "\\"), UInt8(ascii: ":"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): return false
            default: unsafe place[index] = byte
            }
        }
        return true
    }
    guard count >= 16 else {
        let (one, other) = unsafe (
            from.loadUnaligned(as: UInt64.self), from.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        )
        unsafe to.storeBytes(of: one, as: UInt64.self)
        unsafe to.storeBytes(of: other, toByteOffset: count &- 8, as: UInt64.self)
        return (specials(one) | specials(other)) & WordBits.highs == 0
    }
    var found = SIMDMask<SIMD16<Int8>>()
    var offset = 0
    let last = count &- 16
    while offset < last {
        unsafe found .|= copy(from, to, offset)
        offset &+= 16
    }
    unsafe found .|= copy(from, to, last)
    // A mask consists of 16 bytes. Asking it whether any of them is set would be a loop over them.
    let words = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
    return words.x | words.y == 0
}

/// Copies 16 bytes and marks those that are a backslash, a colon, CR or LF.
@inline(__always) @unsafe
private func copy(
    _ source: UnsafeRawPointer, _ place: UnsafeMutableRawPointer, _ offset: Int
) -> SIMDMask<SIMD16<Int8>> {
    // The caller has so many bytes in both places.
    let bytes = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    unsafe place.storeBytes(of: bytes, toByteOffset: offset, as: SIMD16<UInt8>.self)
    @inline(__always)
    func equal(_ byte: UInt8) -> SIMDMask<SIMD16<Int8>> { bytes .== SIMD16(repeating: byte) }
    return (equal(UInt8(ascii: "\\")) .| equal(UInt8(ascii: ":")))
        .| (equal(UInt8(ascii: "\n")) .| equal(UInt8(ascii: "\r")))
}

/// Has the highest bit of some byte set if and only if one of them is a backslash, a colon, CR or LF.
@inline(__always)
private func specials(_ word: UInt64) -> UInt64 {
    WordBits.matches(word, WordBits.copies(of: UInt8(ascii: "\\")))
        | WordBits.matches(word, WordBits.copies(of: UInt8(ascii: ":")))
        | WordBits.matches(word, WordBits.copies(of: UInt8(ascii: "\n")))
        | WordBits.matches(word, WordBits.copies(of: UInt8(ascii: "\r")))
}

extension FrameWriter {
    /// Appends one frame with a single reservation: `command`, the lines that `head` writes, `headers`, `content-length`
    /// where asked for, body and NUL. Nothing is appended when it throws.
    ///
    /// - Parameters:
    ///   - headRoom: what `head` writes at most.
    ///   - leavesBodyOut: whether the body, which comes before the last byte, is not written.
    @inline(__always)
    static func writeFrame(
        into output: inout [UInt8], _ command: StaticString, _ escaping: STOMPEscaping, headRoom: Int,
        headers: STOMPHeaders, body: RawSpan = RawSpan(), leavesBodyOut: Bool = false,
        writesContentLength: Bool = false,
        replacesUnencodable: Bool = false, _ head: (inout FrameWriter) -> Void
    ) throws(STOMPUsageError) {
        var problem: (kind: Problem, name: String)?
        let headRoom = command.utf8CodeUnitCount &+ 1 &+ headRoom &+ room(for: headers)
        let bodyRoom = leavesBodyOut ? 0 : body.byteCount
        output.append(addingCapacity: headRoom &+ 15 &+ numberRoom &+ bodyRoom &+ 2) { span in
            // `count` is the number of bytes written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, escaping, replacesUnencodable: replacesUnencodable)
                writer.put(command)
                writer.put(UInt8(ascii: "\n"))
                head(&writer)
                let fields = headers.fields.span
                for index in fields.indices { writer.put(fields[index]) }
                if writesContentLength { writer.put("content-length", UInt64(body.byteCount)) }
                writer.put(UInt8(ascii: "\n"))
                if !leavesBodyOut { writer.put(body) }
                writer.put(UInt8(0))
                problem = writer.problem.map { ($0, writer.nameOfProblem) }
                count = problem == nil ? writer.count : 0
            }
        }
        if let problem { throw STOMPUsageError(problem.kind, escaping, in: headers, orNamed: problem.name) }
    }
}
