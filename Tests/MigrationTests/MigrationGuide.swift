import Foundation
import Testing

/// One library that people come from: the list of its public calls in `Calls`, and the article with the table.
struct MigrationGuide: Sendable, CustomTestStringConvertible {
    struct Row: Sendable {
        let call: String
        /// The cell with our names; "no counterpart" where there is none.
        let ours: String
        let notes: String
    }

    let library: String
    let article: String

    static let all = [
        MigrationGuide(library: "mqtt-nio", article: "MQTT/MQTT.docc/MovingFromMQTTNIO.md"),
        MigrationGuide(library: "CocoaMQTT", article: "MQTT/MQTT.docc/MovingFromCocoaMQTT.md"),
        MigrationGuide(library: "Courier", article: "MQTT/MQTT.docc/MovingFromCourier.md"),
        MigrationGuide(library: "LightMQTT", article: "MQTT/MQTT.docc/MovingFromLightMQTT.md"),
        MigrationGuide(library: "MQTTKit", article: "MQTT/MQTT.docc/MovingFromMQTTKit.md"),
        MigrationGuide(library: "StompKit", article: "STOMP/STOMP.docc/MovingFromStompKit.md"),
        MigrationGuide(library: "StompClientLib", article: "STOMP/STOMP.docc/MovingFromStompClientLib.md"),
        MigrationGuide(library: "stomp-nio", article: "STOMP/STOMP.docc/MovingFromStompNIO.md"),
        MigrationGuide(library: "stompjs", article: "STOMP/STOMP.docc/MovingFromStompJS.md"),
    ]

    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    static let sources = folder.deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources")

    var testDescription: String { library }

    private func list() throws -> [String] {
        let file = Self.folder.appendingPathComponent("Calls/\(library).txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// The first line of the list: the library and the version that was read.
    func heading() throws -> String { try list().first ?? "" }

    /// The calls of the library, one a line.
    func calls() throws -> [String] { try list().filter { !$0.hasPrefix("#") } }

    /// The calls that need no row, behind the second heading of the list: internal to the library, called the same here, or
    /// found without help.
    func callsWithoutRow() throws -> [String] {
        try list().dropFirst().drop { !$0.hasPrefix("#") }.filter { !$0.hasPrefix("#") }
    }

    func text() throws -> String {
        try String(contentsOf: Self.sources.appendingPathComponent(article), encoding: .utf8)
    }

    /// One row for each call that the tables of the article name.
    ///
    /// A cell of the first column names one or more calls. A name that begins with a dot belongs to the type of the name
    /// before it. "`T`: all members" and "`T`: other members" stand for every call of `T` that no cell names. "`T`, same
    /// names" in the second column stands for the members of `T` that are called like them.
    func rows() throws -> [Row] {
        let cells = try text().split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let listed = try calls()
        let named = Set(cells.filter { Self.wildcard(of: $0[0]) == nil }.flatMap { Self.calls(in: $0[0]) })
        return cells.flatMap { row -> [Row] in
            guard row.count == 3 else { return [Row(call: row.joined(separator: "|"), ours: "", notes: "")] }
            var calls = Self.calls(in: row[0])
            if let wildcard = Self.wildcard(of: row[0]) {
                let types = calls
                calls = types.flatMap { type in
                    let others = listed.filter { Self.parts(of: $0).type == type && !named.contains($0) }
                    let isWhole = others.count == listed.count { Self.parts(of: $0).type == type }
                    // "All" and "other" are true, and stand for something.
                    return isWhole == (wildcard == "all") && !others.isEmpty ? others : ["\(type): \(wildcard) members"]
                }
            } else {
                calls += calls.map(Self.nameInCocoaMQTT5).filter { listed.contains($0) && !named.contains($0) }
            }
            return calls.map { Row(call: $0, ours: Self.ours(row[1], for: $0), notes: row[2]) }
        }
    }

    /// "all" or "other" for a cell that ends with these words and "members".
    private static func wildcard(of cell: String) -> String? {
        ["all", "other"].first { cell.hasSuffix(": \($0) members") }
    }

    /// The names of the first column.
    private static func calls(in cell: String) -> [String] {
        var type = ""
        return names(in: cell).map { name in
            let whole = name.hasPrefix(".") ? type + name : name
            type = parts(of: whole).type
            return whole
        }
    }

    /// The type of a call and its name.
    private static func parts(of call: String) -> (type: String, name: String) {
        let end = call.firstIndex(of: "(") ?? call.endIndex
        guard let dot = call[..<end].lastIndex(of: ".") else { return ("", call) }
        return (String(call[..<dot]), String(call[call.index(after: dot)...]))
    }

    /// The second column for one call.
    private static func ours(_ cell: String, for call: String) -> String {
        let name = parts(of: call).name
        for (ending, ours) in [", same names": name, ", same names in lower case": name.lowercased()]
        where cell.hasSuffix(ending) {
            return "`\(names(in: cell)[0]).\(ours)`"
        }
        return cell
    }

    /// What CocoaMQTT5 calls a member of CocoaMQTT.
    private static func nameInCocoaMQTT5(_ call: String) -> String {
        call.replacing("CocoaMQTTDelegate.mqtt", with: "CocoaMQTT5Delegate.mqtt5")
            .replacing("CocoaMQTT.", with: "CocoaMQTT5.")
            .replacing("CocoaMQTTMessage.", with: "CocoaMQTT5Message.")
    }

    /// The code spans of a cell.
    static func names(in cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }
}
