import MessagingWire

/// The headers of a frame: an ordered list with lookup on top.
///
/// Of repeated headers the first wins (STOMP 1.2 "Repeated Header Entries"); all of them stay visible. Names are
/// case-sensitive and compared as bytes. Values are kept exactly as they are, blanks included.
public struct STOMPHeaders: Sendable {
    /// One header line, unescaped.
    public struct Field: Sendable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The header lines, in the order of the wire.
    public var fields: [Field]

    public init() { fields = [] }

    public init(_ fields: [Field]) { self.fields = fields }

    /// The value of the first header of that name. Setting replaces the first and removes the others; nil removes all.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.hasSameBytes(as: name) }?.value }
        set {
            let first = fields.firstIndex { $0.name.hasSameBytes(as: name) }
            guard let newValue else { return fields.removeAll { $0.name.hasSameBytes(as: name) } }
            guard let first else { return fields.append(Field(name, newValue)) }
            fields[first].value = newValue
            let rest = fields[(first + 1)...].filter { !$0.name.hasSameBytes(as: name) }
            fields.replaceSubrange((first + 1)..., with: rest)
        }
    }

    /// Appends a header line, whether or not there is one of that name.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// All values of that name; the first is the one that counts.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.hasSameBytes(as: name) }.map { $0.value }
    }

    /// Whether there is a header of that name.
    public func contains(_ name: String) -> Bool { fields.contains { $0.name.hasSameBytes(as: name) } }
}

extension STOMPHeaders.Field: Hashable {
    public static func == (left: Self, right: Self) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
    }

    public func hash(into hasher: inout Hasher) {
        // Canonically equivalent strings share a hash, so equal bytes do.
        hasher.combine(name)
        hasher.combine(value)
    }
}

extension STOMPHeaders: Hashable, RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { fields.count }
    public subscript(position: Int) -> Field { fields[position] }
}

extension STOMPHeaders: ExpressibleByDictionaryLiteral, CustomStringConvertible {
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field($0.0, $0.1) }
    }

    /// For people: secrets are not shown.
    public var description: String { fields.map { $0.description }.joined(separator: ", ") }
}

extension STOMPHeaders.Field: CustomStringConvertible, CustomDebugStringConvertible {
    /// Whether the value may let others in, and is not shown.
    package var isSecret: Bool { SecretNames.isSecret(name) }

    /// `name:value`, with a secret value hidden.
    public var description: String { "\(name):\(isSecret ? "•••" : value)" }
    public var debugDescription: String { description }
}

extension STOMPHeaders {
    /// Without the headers that MESSAGE writes itself and those that were for the server alone.
    var relayed: STOMPHeaders {
        let own: [StaticString] = [
            "destination", "content-length", "receipt", "transaction", "subscription", "message-id", "ack",
        ]
        func isOwn(_ field: Field) -> Bool { own.contains { field.name.hasBytes(of: $0) } }
        guard fields.contains(where: isOwn) else { return self }
        return STOMPHeaders(fields.filter { !isOwn($0) })
    }
}
