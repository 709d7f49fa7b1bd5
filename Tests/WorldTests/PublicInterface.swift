import Foundation

/// The public calls and options of a client, as `.ci/public` lists them, and which of them worlds use.
struct PublicInterface {
    /// As in the list, without attributes: `MQTTClient: func suspend() async`.
    let declarations: [String]

    /// - Parameters:
    ///   - module: `MQTT` or `STOMP`.
    ///   - types: those whose members a program uses to say what a client does.
    init(of module: String, _ types: Set<String>) throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../.ci/public/\(module).txt").standardized
        let attributes = [
            "@discardableResult ", "nonisolated(nonsending) ", "nonisolated ", "convenience ",
            "@MQTTConfiguration.ComparedByIdentity ",
        ]
        declarations = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
            guard types.contains(String(line.prefix { $0 != ":" })) else { return nil }
            let plain = attributes.reduce(String(line)) { $0.replacingOccurrences(of: $1, with: "") }
            let isForReading = plain.contains("var description") || plain.contains("static func ==")
            let isName =
                plain.contains(": struct ") || plain.contains(": typealias ") || plain.contains("associatedtype")
            return isForReading || isName ? nil : plain
        }
    }

    /// Those that none of these begins.
    func missing(in used: some Collection<String>) -> [String] {
        declarations.filter { declaration in !used.contains { declaration.hasPrefix($0) } }
    }

    /// Those that begin no declaration.
    func unknown(among used: some Collection<String>) -> [String] {
        used.filter { name in !declarations.contains { $0.hasPrefix(name) } }.sorted()
    }
}
