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
    func calls() throws -> [String] { Array(try list().dropFirst()) }

    func text() throws -> String {
        try String(contentsOf: Self.sources.appendingPathComponent(article), encoding: .utf8)
    }

    /// The rows of all tables of the article, and one for each name of the list that begins "Called the same here".
    func rows() throws -> [Row] {
        let names = try text().split(separator: "\n\n").filter { $0.hasPrefix("- Called the same here: ") }
            .flatMap { Self.names(in: String($0)) }
        return try text().split(separator: "\n").flatMap { line -> [Row] in
            guard line.hasPrefix("| `") else { return [] }
            var cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            let call = cells[0].trimmingCharacters(in: ["`"])
            var calls = [call]
            if cells.count == 4 {
                if cells[1] == "same" { calls.append(Self.nameInCocoaMQTT5(call)) }
                cells.remove(at: 1)
            }
            guard cells.count == 3 else { return [Row(call: String(line), ours: "", notes: "")] }
            return calls.map { Row(call: $0, ours: cells[1], notes: cells[2]) }
        } + names.map { Row(call: $0, ours: "`\($0)`", notes: "") }
    }

    /// What the article on CocoaMQTT calls the same name.
    private static func nameInCocoaMQTT5(_ call: String) -> String {
        call.replacing("CocoaMQTTDelegate.mqtt", with: "CocoaMQTT5Delegate.mqtt5")
            .replacing("CocoaMQTT.", with: "CocoaMQTT5.")
    }

    /// The code spans of a cell.
    static func names(in cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }
}
