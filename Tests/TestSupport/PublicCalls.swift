import Foundation

/// The public asynchronous functions of modules, read from their sources: a campaign that calls all of them notices those
/// that are new.
public enum PublicCalls {
    /// Names with their argument labels and, in brackets, the type of their first argument:
    /// `publish(_:to:qos:) [String]`.
    public static func asynchronous(in modules: String...) throws -> Set<String> {
        try modules.reduce(into: []) { $0.formUnion(try asynchronous(inOne: $1)) }
    }

    private static func asynchronous(inOne module: String) throws -> Set<String> {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/\(module)").standardized
        var calls: Set<String> = []
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        for path in paths where path.hasSuffix(".swift") {
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for match in text.matches(of: /public (?:nonisolated(?:\(nonsending\))? )?(?:mutating )?func (\w+)/) {
                let attributes = text[..<match.range.lowerBound].split(separator: "\n\n").last ?? ""
                // It exists for its message, and cannot be called.
                if attributes.contains("@available(") && attributes.contains("*, unavailable") { continue }
                guard let call = call(String(match.1), text[match.range.upperBound...]) else { continue }
                calls.insert(call)
            }
        }
        return calls
    }

    /// - Parameter rest: The source behind the function's name.
    private static func call(_ name: String, _ rest: Substring) -> String? {
        guard let open = rest.firstIndex(of: "("), let end = end(of: rest[open...]) else { return nil }
        let behind = rest[rest.index(after: end)...].drop(while: \.isWhitespace)
        guard behind.hasPrefix("async") else { return nil }
        let parameters = split(rest[rest.index(after: open)..<end])
        let labels = parameters.map { $0.prefix { $0 != ":" }.split(separator: " ").first.map { $0 + ":" } ?? "" }
        let first = parameters.first?.drop { $0 != ":" }.dropFirst().prefix { $0 != "=" } ?? ""
        return "\(name)(\(labels.joined())) [\(first.trimmingCharacters(in: .whitespacesAndNewlines))]"
    }

    /// Where the bracket closes that `text` begins with.
    private static func end(of text: Substring) -> Substring.Index? {
        var depth = 0
        return text.indices.first { index in
            if "([".contains(text[index]) { depth += 1 }
            if ")]".contains(text[index]) { depth -= 1 }
            return depth == 0
        }
    }

    /// The parts between commas that are not inside brackets.
    private static func split(_ text: Substring) -> [String] {
        var parts = [""]
        var depth = 0
        for character in text {
            if "([<".contains(character) { depth += 1 }
            if ")]>".contains(character) { depth -= 1 }
            if character == ",", depth == 0 { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return parts.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter { !$0.isEmpty }
    }
}
