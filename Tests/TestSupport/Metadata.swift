import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the runtime knows of a type: the stable layout of metadata, of which `Mirror` shows only what can be copied.
/// https://github.com/swiftlang/swift/blob/main/docs/ABI/TypeMetadata.rst
struct Metadata: @unchecked Sendable {
    // Sendable because metadata never changes.
    enum Kind { case `class`, `struct`, `enum`, optional, tuple, existential, other }

    struct Field: Sendable {
        let name: String
        let offset: Int
        /// From its start to the next field or the end.
        let size: Int
        /// Nil if the runtime does not know it; the empty tuple if it cannot be copied.
        let type: Metadata?
        /// Weak, or without a count of references.
        let isWeak: Bool
    }

    private let pointer: UnsafeRawPointer

    init(_ pointer: UnsafeRawPointer) { self.pointer = pointer }
    // A metatype is a pointer to the metadata of its type.
    init(_ type: Any.Type) { pointer = unsafeBitCast(type, to: UnsafeRawPointer.self) }

    /// Has to be copyable.
    private var type: Any.Type { unsafeBitCast(pointer, to: Any.Type.self) }

    var kind: Kind {
        switch pointer.load(as: UInt.self) {
        case 0, 0x800...: .class
        case 0x200: .struct
        case 0x201: .enum
        case 0x202: .optional
        case 0x301: .tuple
        case 0x303: .existential
        default: .other
        }
    }

    var isEmptyTuple: Bool { kind == .tuple && parts.isEmpty }

    // MARK: Values

    /// The table of functions that handle a value, which stands before the metadata.
    private var witnesses: UnsafeRawPointer { (pointer - Self.word).load(as: UnsafeRawPointer.self) }
    private var flags: UInt32 { witnesses.load(fromByteOffset: 10 * Self.word, as: UInt32.self) }
    var stride: Int { witnesses.load(fromByteOffset: 9 * Self.word, as: Int.self) }
    private var size: Int { witnesses.load(fromByteOffset: 8 * Self.word, as: Int.self) }
    var alignment: Int { Int(flags & 0xFF) + 1 }
    var isCopyable: Bool { flags & 0x80_0000 == 0 }
    private static let word = MemoryLayout<UInt>.size

    /// A copy of a value.
    func value(at place: UnsafeRawPointer) -> Any? {
        func open<Value>(_: Value.Type) -> Any { place.assumingMemoryBound(to: Value.self).pointee }
        return isCopyable ? _openExistential(type, do: open) : nil
    }

    /// Whether an optional has a value of this type, which stands where the optional does.
    func isPresent(at place: UnsafeRawPointer) -> Bool {
        typealias Tag = @convention(c) (UnsafeRawPointer, UInt32, UnsafeRawPointer) -> UInt32
        let tag = witnesses.load(fromByteOffset: 6 * Self.word, as: UnsafeRawPointer.self)
        return unsafeBitCast(tag, to: Tag.self)(place, 1, pointer) == 0
    }

    // MARK: Parts

    /// Those of a tuple.
    var parts: [(Metadata, offset: Int)] {
        (0..<pointer.load(fromByteOffset: Self.word, as: Int.self)).map { index in
            let part = pointer + (3 + 2 * index) * Self.word
            return (
                Metadata(part.load(as: UnsafeRawPointer.self)),
                Int(part.load(fromByteOffset: Self.word, as: UInt32.self))
            )
        }
    }

    /// Where the compiler describes the type.
    private var description: UnsafeRawPointer? {
        let place: Int
        switch kind {
        case .class: place = Self.sizeOfClass + 2
        case .struct, .enum, .optional: place = 1
        case .tuple, .existential, .other: return nil
        }
        return pointer.load(fromByteOffset: place * Self.word, as: UnsafeRawPointer?.self)
    }

    /// Where metadata of classes has the size of an object, in words: classes of Objective-C have three fields more.
    private static var sizeOfClass: Int {
        #if canImport(Darwin)
            6
        #else
            3
        #endif
    }

    /// Where the types are that a generic type was made with.
    private var arguments: UnsafeRawPointer {
        guard kind == .class, let description else { return pointer + 2 * Self.word }
        let count = { description.load(fromByteOffset: $0, as: UInt32.self) }
        let isNegative = description.load(as: UInt32.self) & 1 << 28 != 0
        return pointer + (isNegative ? -Int(count(24)) : Int(count(28)) - Int(count(32))) * Self.word
    }

    func argument(_ index: Int) -> Metadata {
        Metadata((arguments + index * Self.word).load(as: UnsafeRawPointer.self))
    }

    /// The name without that of its module, and without what it was made with.
    var genericName: String {
        description.map { String(cString: Self.target($0 + 8)!.assumingMemoryBound(to: CChar.self)) } ?? ""
    }

    /// What was read of types, which never change: reading a name of a type takes long.
    private static let known = Mutex<[UInt: [Field]]>([:])

    /// Those of a struct, or of a class without its superclass.
    var fields: [Field] {
        let key = UInt(bitPattern: pointer)
        if let known = Self.known.withLock({ $0[key] }) { return known }
        let read = readFields()
        Self.known.withLock { $0[key] = read }
        return read
    }

    private func readFields() -> [Field] {
        guard let description, let records = Self.target(description + 16) else { return [] }
        let isClass = kind == .class
        let count = Int(description.load(fromByteOffset: isClass ? 36 : 20, as: UInt32.self))
        let first = Int(description.load(fromByteOffset: isClass ? 40 : 24, as: UInt32.self))
        guard count > 0, first > 0 else { return [] }
        let offsets = (0..<count).map { index in
            let vector = pointer + first * Self.word
            return isClass
                ? vector.load(fromByteOffset: index * Self.word, as: Int.self)
                : Int(vector.load(fromByteOffset: index * 4, as: UInt32.self))
        }
        let end =
            isClass ? Int(pointer.load(fromByteOffset: Self.sizeOfClass * Self.word, as: UInt32.self)) : size
        return (0..<count).map { index in
            let record = records + 16 + index * Int(records.load(fromByteOffset: 10, as: UInt16.self))
            let name = Self.target(record + 8).map { String(cString: $0.assumingMemoryBound(to: CChar.self)) } ?? ""
            let mangled = Self.target(record + 4)
            let length = mangled.map { Self.length(of: $0) } ?? 0
            var isWeak = false
            if let mangled, length > 2, mangled.load(fromByteOffset: length - 2, as: UInt8.self) == UInt8(ascii: "X") {
                isWeak = "wou".utf8.contains(mangled.load(fromByteOffset: length - 1, as: UInt8.self))
            }
            let next = index + 1 < count ? offsets[index + 1] : end
            return Field(
                name: name, offset: offsets[index], size: next - offsets[index],
                type: mangled.flatMap { find($0, length, description) }, isWeak: isWeak)
        }
    }

    /// The count that a value keeps of what it holds; nil if it keeps none.
    func count(at place: UnsafeRawPointer) -> Int? {
        for field in fields where field.name == "count" || field.name == "storedCount" {
            switch field.type?.genericName {
            case "Int": return (place + field.offset).load(as: Int.self)
            case "UInt32": return Int((place + field.offset).load(as: UInt32.self))
            default: break
            }
        }
        return nil
    }

    /// What a relative pointer points to.
    private static func target(_ place: UnsafeRawPointer) -> UnsafeRawPointer? {
        let distance = place.load(as: Int32.self)
        return distance == 0 ? nil : place + Int(distance)
    }

    /// The length of a mangled name, in which some bytes precede a pointer of four or eight.
    private static func length(of name: UnsafeRawPointer) -> Int {
        var end = name
        while true {
            switch end.load(as: UInt8.self) {
            case 0: return end - name
            case 0x01...0x17: end += 5
            case 0x18...0x1F: end += 1 + word
            default: end += 1
            }
        }
    }

    private typealias Find =
        @convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, UnsafeRawPointer) -> UnsafeRawPointer?
    // The conventions of C and Swift agree for pointers.
    private static let finding = unsafeBitCast(
        dlsym(dlopen(nil, RTLD_NOW), "swift_getTypeByMangledNameInContext"), to: Find?.self)

    private func find(_ name: UnsafeRawPointer, _ length: Int, _ description: UnsafeRawPointer) -> Metadata? {
        Self.finding?(name, length, description, arguments).map { Metadata($0) }
    }
}
