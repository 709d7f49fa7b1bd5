/// The tags of ASN.1's elements in their distinguished encoding (X.690).
enum DER {
    static let (integer, bitString, octetString, null, identifier) = (
        UInt8(2), UInt8(3), UInt8(4), UInt8(5), UInt8(6)
    )
    static let (sequence, set) = (UInt8(0x30), UInt8(0x31))
    /// A constructed field with a number of its own.
    static func field(_ number: UInt8) -> UInt8 { 0xA0 | number }

    /// The SubjectPublicKeyInfo of a certificate (RFC 5280 section 4.1); nil if it is not one.
    static func publicKey(ofCertificate certificate: [UInt8]) -> [UInt8]? {
        var reader = DERReader(certificate)
        guard var signed = reader.inside(sequence), var fields = signed.inside(sequence) else { return nil }
        // The version, which old certificates lack.
        _ = fields.next(field(0))
        // Serial number, signature, issuer, validity, subject.
        for tag in [integer, sequence, sequence, sequence, sequence] where fields.next(tag) == nil { return nil }
        return fields.element(sequence).map { Array($0) }
    }
}

/// Reads elements one after the other; nil for bytes that are not an element.
struct DERReader {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }
    init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    var isAtEnd: Bool { bytes.isEmpty }

    /// The tag of the next element.
    var nextTag: UInt8? { bytes.first }

    /// The content of the next element if it has this tag.
    mutating func next(_ tag: UInt8) -> ArraySlice<UInt8>? {
        guard bytes.first == tag, bytes.count >= 2 else { return nil }
        var rest = bytes.dropFirst()
        var size = Int(rest.removeFirst())
        if size >= 0x80 {
            let count = size & 0x7F
            guard (1...4).contains(count), rest.count >= count else { return nil }
            size = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(count)
        }
        // Four bytes may be negative where Int has 32 bits.
        guard size >= 0, rest.count >= size else { return nil }
        bytes = rest.dropFirst(size)
        return rest.prefix(size)
    }

    /// The next element with its tag and length, if it has this tag.
    mutating func element(_ tag: UInt8) -> ArraySlice<UInt8>? {
        let before = bytes
        return next(tag) == nil ? nil : before[before.startIndex..<bytes.startIndex]
    }

    /// The elements inside the next one.
    mutating func inside(_ tag: UInt8) -> DERReader? { next(tag).map { DERReader($0) } }

    /// A number that is not negative and fits into 31 bits.
    mutating func number() -> Int? {
        guard let content = next(DER.integer)?.drop(while: { $0 == 0 }), content.count <= 4 else { return nil }
        let value = content.reduce(0) { $0 << 8 | Int64($1) }
        return Int32(exactly: value).map { Int($0) }
    }
}
