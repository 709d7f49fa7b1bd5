import Foundation

/// The public declarations of the library, read from the text of its sources: `Type.member(label:)`, `Type`.
///
/// A member counts when it is public itself, a case of an enumeration, or a requirement of a protocol, and every type
/// around it is public. The public members of a protocol and of its extensions are members of the types that conform to
/// it, and of the protocols that inherit from it.
struct PublicNames {
    private(set) var names: Set<String> = []
    private var types: Set<String> = []
    private var members: [(type: String, name: String)] = []
    private var aliases: [String: String] = [:]
    /// The names behind the colon of each type: its protocols, and a superclass or raw type.
    private var parents: [String: Set<String>] = [:]

    /// Reads every Swift file below a folder.
    init(below folder: URL) throws {
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            let source = try String(contentsOf: file, encoding: .utf8)
            read(source)
        }
        connect()
    }

    init(_ source: String) {
        read(source)
        connect()
    }

    private mutating func read(_ source: String) {
        var reader = DeclarationReader(SwiftTokens(source).tokens)
        reader.readAll()
        types.formUnion(reader.types)
        members += reader.members
        aliases.merge(reader.aliases) { first, _ in first }
        parents.merge(reader.parents) { $0.union($1) }
    }

    private mutating func connect() {
        types.formUnion(aliases.keys)
        names = Set(types.filter(isPublic))
        let visible = members.filter { isPublic($0.type) }
        let membersByType = Dictionary(grouping: visible, by: \.type)
        for type in types.union(parents.keys) where isPublic(type) {
            for owner in ancestors(of: type).union([type]) {
                for member in membersByType[owner] ?? [] { names.insert("\(type).\(member.name)") }
            }
        }
    }

    /// What a type inherits from, at any distance.
    private func ancestors(of type: String) -> Set<String> {
        var found: Set<String> = []
        var next = parents[type] ?? []
        while let parent = next.popFirst() {
            if found.insert(parent).inserted { next.formUnion(parents[parent] ?? []) }
        }
        return found
    }

    private func isPublic(_ type: String) -> Bool {
        let path = type.split(separator: ".")
        return path.indices.allSatisfy { types.contains(path[...$0].joined(separator: ".")) }
    }

    /// Whether a name is public, also by the alias of a type.
    func contains(_ name: String) -> Bool {
        if names.contains(name) { return true }
        let path = name.split(separator: ".").map(String.init)
        return path.indices.dropFirst().contains { end in
            guard let target = aliases[path[..<end].joined(separator: ".")] else { return false }
            return names.contains(([target] + path[end...]).joined(separator: "."))
        }
    }
}

/// Finds the declarations in the tokens of one file.
private struct DeclarationReader {
    private enum Scope {
        case type(String, kind: String, grantsAccess: Bool)
        case other
    }

    private let tokens: [String]
    private var position = 0
    private var scopes: [Scope] = []
    /// The type whose body opens next.
    private var opening: Scope?
    private var isPublic = false

    private(set) var types: Set<String> = []
    private(set) var members: [(type: String, name: String)] = []
    private(set) var aliases: [String: String] = [:]
    private(set) var parents: [String: Set<String>] = [:]

    init(_ tokens: [String]) {
        self.tokens = tokens
    }

    private var token: String { position < tokens.count ? tokens[position] : "" }
    private func token(after offset: Int) -> String {
        position + offset < tokens.count ? tokens[position + offset] : ""
    }

    mutating func readAll() {
        while position < tokens.count { readOne() }
    }

    private mutating func readOne() {
        switch token {
        case "{":
            scopes.append(opening ?? .other)
            opening = nil
        case "}":
            _ = scopes.popLast()
        case _ where isInsideCode:
            break
        case "import":
            // The kind and the name of a scoped import look like a declaration.
            position += 1
            while token(after: 1) == "." || !token(after: 1).isEmpty && Self.kinds.contains(token) {
                position += token(after: 1) == "." ? 2 : 1
            }
            isPublic = false
        case "public", "open":
            if token(after: 1) != "(" { isPublic = true }
        case "struct", "class", "enum", "protocol", "actor", "extension":
            readType()
            return
        case "func", "var", "let", "init", "subscript", "case", "typealias":
            if position == 0 || tokens[position - 1] != "." {
                readMember()
                return
            }
        default:
            break
        }
        position += 1
    }

    private static let kinds: Set<String> = [
        "struct", "class", "enum", "protocol", "actor", "typealias", "func", "var", "let",
    ]

    private var isInsideCode: Bool {
        if case .other = scopes.last { return true }
        return opening != nil
    }

    private var container: (name: String, kind: String, grantsAccess: Bool)? {
        if case .type(let name, let kind, let grantsAccess) = scopes.last { return (name, kind, grantsAccess) }
        return nil
    }

    private mutating func readType() {
        let kind = token
        guard kind != "class" || !["func", "var", "let", "subscript"].contains(token(after: 1)) else {
            position += 1
            return
        }
        position += 1
        var name = token
        while token(after: 1) == "." {
            name += "." + token(after: 2)
            position += 2
        }
        position += 1
        let outer = container
        let full = kind == "extension" || outer == nil ? name : "\(outer?.name ?? "").\(name)"
        let declaresPublic = isPublic || outer?.grantsAccess == true
        if kind != "extension", declaresPublic { types.insert(full) }
        readParents(of: full)
        opening = .type(full, kind: kind, grantsAccess: isPublic && (kind == "extension" || kind == "protocol"))
        isPublic = false
    }

    /// Reads what follows a type's name and its generic parameters: `: Parent, Other.Parent`.
    private mutating func readParents(of type: String) {
        skipGenericParameters()
        guard token == ":" else { return }
        while position < tokens.count, token != "{", token != "where" {
            if token(after: -1) != ".", token != ":", token != ",", token != "." {
                parents[type, default: []].insert(token)
            }
            position += 1
            skipGenericParameters()
        }
    }

    private mutating func readMember() {
        let keyword = token
        let counts = isPublic || container?.grantsAccess == true || keyword == "case"
        isPublic = false
        position += 1
        switch keyword {
        case "case":
            readCases()
        case "typealias":
            let name = token
            while position < tokens.count, token != "=" { position += 1 }
            position += 1
            let target = token
            if counts { aliases[container.map { "\($0.name).\(name)" } ?? name] = target }
        case "var", "let":
            if counts { add(token) }
            position += 1
        default:
            let name = keyword == "func" ? token : keyword
            if keyword == "func" { position += 1 }
            skipGenericParameters()
            while token == "?" || token == "!" { position += 1 }
            guard token == "(" else { return }
            let labels = readLabels(subscript: keyword == "subscript")
            if counts { add(name + labels) }
        }
    }

    private mutating func add(_ name: String) {
        if let container { members.append((container.name, name)) }
    }

    private mutating func readCases() {
        guard let container, container.kind == "enum" else { return }
        while true {
            let name = token
            position += 1
            if token == "(" {
                members.append((container.name, name + readLabels(isCase: true)))
            } else {
                members.append((container.name, name))
            }
            if token == "=" {
                position += 1
                if token == "-" { position += 1 }
                // A string leaves no token behind.
                if Int(token) != nil || token.hasPrefix("0x") { position += 1 }
            }
            guard token == "," else { return }
            position += 1
        }
    }

    private mutating func skipGenericParameters() {
        guard token == "<" else { return }
        var depth = 0
        repeat {
            if token == "<" { depth += 1 }
            if token == ">" { depth -= 1 }
            position += 1
        } while depth > 0 && position < tokens.count
    }

    /// Reads `(label name: Type, …)` and returns `(label:…)`.
    private mutating func readLabels(isCase: Bool = false, subscript isSubscript: Bool = false) -> String {
        var labels: [String] = []
        var depth = 0
        var angles = 0
        var isStart = true
        repeat {
            switch token {
            case "(", "[", "{": depth += 1
            case ")", "]", "}": depth -= 1
            case "<": angles += 1
            case ">": angles = max(0, angles - 1)
            case "," where depth == 1 && angles == 0: isStart = true
            default:
                guard depth == 1, isStart else { break }
                isStart = false
                let next = token(after: 1)
                if isCase || isSubscript {
                    let named = isCase ? next == ":" : next != ":"
                    labels.append(named && token != "_" ? token : "_")
                } else {
                    labels.append(token)
                }
                position += 1
                continue
            }
            // An element of a case may begin with a bracket.
            if depth >= 2, isStart {
                labels.append("_")
                isStart = false
            }
            position += 1
        } while depth > 0 && position < tokens.count
        return "(" + labels.map { $0 + ":" }.joined() + ")"
    }
}
