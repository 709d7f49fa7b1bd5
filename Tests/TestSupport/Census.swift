#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Counts the elements of every collection that an object holds, itself or through others: its tables, queues and waiters,
/// whatever they are called and whoever adds another one. What stays after each of many connections is found by comparing
/// two counts, and named by the property that holds it.
///
/// It reads the fields of objects from what the compiler writes about types. Nobody else may use the objects meanwhile, as
/// in a simulation, which has one thread.
public final class Census {
    /// How many elements all collections of one property have, by the property: `Router.entries`. Properties that have
    /// none are left out.
    public private(set) var counts: [String: Int] = [:]
    /// Properties whose types cannot be copied, of which the compiler writes nothing, and that are not in the table.
    public private(set) var unknown: Set<String> = []

    private var pending: [AnyObject] = []
    private var visited: Set<UnsafeRawPointer> = []
    private let table: [String: Kind]
    private let modules: [String]

    /// What is known of a property whose type cannot be copied.
    public struct Kind: @unchecked Sendable {
        // Sendable because metadata never changes.
        fileprivate var type: UnsafeRawPointer?
        fileprivate var isBoxOfArgument = false
        fileprivate var isEntered = true

        /// Its elements are not counted: it has none, or at most one.
        public static let skipped = Kind()
        /// Its elements are counted, but not what they hold: others own them.
        public static let borrowed = Kind(isEntered: false)
        /// It is the address of what the generic type of its owner was made with.
        public static let boxOfArgument = Kind(isBoxOfArgument: true)

        public static func type<Value: ~Copyable>(_ type: Value.Type) -> Kind {
            // A metatype is a pointer to the metadata of its type.
            Kind(type: unsafeBitCast(type as (any ~Copyable.Type), to: UnsafeRawPointer.self))
        }
    }

    /// - Parameters:
    ///   - objects: where the search begins.
    ///   - modules: objects of other modules are not entered.
    ///   - table: the types of properties that cannot be copied: `Link.state`.
    public init(of objects: [AnyObject], in modules: [String], noncopyable table: [String: Kind]) {
        (self.modules, self.table) = (modules, table)
        pending = objects
        // Not one within another: they may form long chains.
        while let object = pending.popLast() { enter(object) }
    }

    /// What has more elements than in an earlier count, with both numbers.
    public func grown(since earlier: Census, by least: Int = 1, except exceptions: [String] = []) -> [String] {
        counts.sorted { $0.key < $1.key }.compactMap { name, count in
            let before = earlier.counts[name, default: 0]
            let isMore = count >= before + least && !exceptions.contains(name)
            return isMore ? "\(name) has \(count) elements, \(before) before" : nil
        }
    }

    // MARK: Objects

    private func enter(_ object: AnyObject) {
        let place = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
        guard visited.insert(place).inserted else { return }
        var type: AnyClass? = Swift.type(of: object)
        while let current = type {
            let name = String(reflecting: current)
            guard modules.contains(where: { name.hasPrefix($0 + ".") }) else { break }
            // Safe: the object is alive, and has the fields of each of its classes.
            walkFields(of: Metadata(current), at: place)
            type = _getSuperclass(current)
        }
    }

    // MARK: Values

    /// - Parameter owner: the property that has this value, if that keeps a count of its own. Then arrays among its fields
    ///   are memory, and their elements do not count.
    private func walkFields(of type: Metadata, at place: UnsafeRawPointer, ofCounted owner: String? = nil) {
        for field in type.fields {
            let ownName = "\(type.genericName).\(field.name)"
            let name = owner ?? ownName
            guard !field.isWeak else { continue }
            if let kind = table[ownName], kind.isEntered {
                if let type = kind.type { walk(Metadata(type), at: place + field.offset, as: name) }
                if kind.isBoxOfArgument {
                    let memory = (place + field.offset).load(as: UnsafeRawPointer.self)
                    walk(type.argument(0), at: memory, as: name)
                }
            } else if let type = field.type, !type.isEmptyTuple {
                walk(type, at: place + field.offset, as: name, isMemory: owner != nil)
            } else if field.type?.isEmptyTuple == true, field.size > 0, owner == nil {
                unknown.insert(ownName)
            }
        }
    }

    private func walk(_ type: Metadata, at place: UnsafeRawPointer, as name: String, isMemory: Bool = false) {
        switch type.kind {
        case .struct:
            let generic = type.genericName
            switch generic {
            case "Array", "ContiguousArray", "Set", "Dictionary":
                walk(elements: type.value(at: place), as: name, isMemory: isMemory)
            case "Mutex":
                let value = type.argument(0)
                walk(value, at: place + (4 + value.alignment - 1) / value.alignment * value.alignment, as: name)
            case "Box":
                let memory = place.load(as: UnsafeRawPointer.self)
                walk(type.argument(0), at: memory, as: name)
            case "UniqueArray":
                guard let memory = place.load(as: UnsafeRawPointer?.self) else { return }
                let count = Int(place.load(fromByteOffset: MemoryLayout<UInt>.size, as: UInt32.self))
                if count > 0, !isMemory { counts[name, default: 0] += count }
                let element = type.argument(0)
                for index in 0..<count { walk(element, at: memory + index * element.stride, as: name) }
            case "Atomic", "String", "Int", "UnsafeMutablePointer", "UnsafePointer": break
            default:
                let count = type.count(at: place)
                if let count, count > 0 { counts[name, default: 0] += count }
                walkFields(of: type, at: place, ofCounted: count == nil ? nil : name)
            }
        case .tuple:
            for (part, offset) in type.parts { walk(part, at: place + offset, as: name) }
        case .optional where !type.isCopyable:
            let payload = type.argument(0)
            if payload.isPresent(at: place) { walk(payload, at: place, as: name) }
        case .enum, .optional:
            guard type.isCopyable, let value = type.value(at: place) else { return }
            for child in Mirror(reflecting: value).children { walk(child.value, as: name) }
        case .class:
            guard let object = place.load(as: UnsafeRawPointer?.self) else { return }
            // Safe: a field with a strong reference.
            pending.append(Unmanaged<AnyObject>.fromOpaque(object).takeUnretainedValue())
        case .existential:
            if let value = type.value(at: place) { walk(value, as: name) }
        case .other: break
        }
    }

    private func walk(_ value: Any, as name: String) {
        let type = Metadata(Swift.type(of: value))
        if type.kind == .class {
            // Not a value in a box.
            pending.append(value as AnyObject)
            return
        }
        guard type.kind != .existential else { return }
        func open<Value>(_ value: Value) { withUnsafePointer(to: value) { walk(type, at: $0, as: name) } }
        _openExistential(value, do: open)
    }

    /// Empty places in an array of optional elements do not count.
    private func walk(elements value: Any?, as name: String, isMemory: Bool) {
        guard let value else { return }
        var elements = 0
        if let bytes = value as? [UInt8] {
            // Contents of one thing rather than things.
            if !bytes.isEmpty, !isMemory { counts[name, default: 0] += 1 + bytes.count / 64 }
            return
        }
        for child in Mirror(reflecting: value).children {
            if case Optional<Any>.none = child.value { continue }
            let mirror = Mirror(reflecting: child.value)
            if mirror.displayStyle == .optional, mirror.children.isEmpty { continue }
            elements += 1
            if child.value is any FixedWidthInteger || table[name]?.isEntered == false { continue }
            walk(child.value, as: name)
        }
        if elements > 0, !isMemory { counts[name, default: 0] += elements }
    }
}
