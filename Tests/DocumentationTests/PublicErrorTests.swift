import Foundation
import MQTT
import MQTTCore
import STOMP
import STOMPCore
import TestSupport
import Testing
import Transport

/// What a user interface shows of an error: its message, and not "The operation could not be completed."
@Suite struct PublicErrorTests {
    /// One of each public type of errors.
    static let errors: [String: (error: any Error, message: String)] = [
        "MQTTError": (MQTTError(.refused, "Refused."), "Refused."),
        "MQTTProtocolError": (
            MQTTProtocolError(.malformedPacket, "Malformed.", clause: "MQTT-1.5.4-1"),
            "Malformed. [MQTT-1.5.4-1, malformed packet (0x81)]"
        ),
        "SessionStoreError": (SessionStoreError("Full."), "Full."),
        "STOMPError": (STOMPError(.stale, "Stale."), "Stale."),
        "STOMPConnectionFailure": (
            STOMPConnectionFailure(.closed, "Closed."), "\(STOMPConnectionFailure(.closed, "Closed."))"
        ),
        "TransportError": (TransportError(.unknownHost, "Unknown."), "Unknown."),
        "DecodeFailure": (DecodeFailure("No value."), "No value."),
        "CodedError": (MQTTUsageError(.queueFull, "Full."), "Full."),
    ]

    @Test func `the description for people is the message, for every public error`() {
        for (name, (error, message)) in Self.errors {
            #expect(error.localizedDescription == message, "\(name)")
            #expect((error as? any LocalizedError)?.errorDescription == message, "\(name)")
        }
    }

    @Test func `no public error of the sources is missing`() throws {
        var found: Set<String> = []
        let declaration = /public (?:struct|enum|final class) (\w+)(?:<\w+>)?: ([^{]*)\{/
        let sources = DocumentationPage.root.appending(path: "Sources")
        let files = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String } ?? []
        // Those of a simulation are read in the output of a test.
        for file in files where file.hasSuffix(".swift") && !file.hasPrefix("MessagingSimulation/") {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            for match in text.matches(of: declaration)
            where match.2.split(whereSeparator: { ", \n".contains($0) }).contains(where: { $0.hasSuffix("Error") }) {
                found.insert(String(match.1))
            }
        }
        #expect(found == Set(Self.errors.keys))
    }

    @Test func `the article about errors lists each code of an error`() throws {
        let root = DocumentationPage.root
        let listed = try ArticleTable.rows("code", in: "Errors").flatMap { cells in
            cells[0].matches(of: /`(\w+)`/).map { String($0.1) }
        }
        var declared: Set<String> = []
        for path in [
            "Transport/TransportError", "MessagingShell/Errors/ErrorCode+clients", "MQTT/API/MQTTError",
            "STOMP/API/STOMPError",
        ] {
            let source = try String(contentsOf: root.appending(path: "Sources/\(path).swift"), encoding: .utf8)
            declared.formUnion(source.matches(of: /public static var (\w+): Self/).map { String($0.1) })
        }
        #expect(listed.count == Set(listed).count)
        #expect(Set(listed) == declared)
    }

    @Test func `the article about logging lists each event with its parameters`() throws {
        let root = DocumentationPage.root
        let listed = Set(
            try ArticleTable.rows("event", in: "LoggingAndMetrics").flatMap { cells in
                cells[0].matches(of: /`([^`]+)`/).map { String($0.1) }
            })
        var declared: [String: Set<String>] = [:]
        for module in ["MQTT", "STOMP"] {
            let source = try String(
                contentsOf: root.appending(path: "Sources/\(module)/API/\(module)Event.swift"), encoding: .utf8)
            declared[module] = Set(source.matches(of: /\n    case (\S.*)\n/).map { String($0.1) })
        }
        let mqtt = try #require(declared["MQTT"])
        #expect(mqtt.count > 20)
        #expect(mqtt.isSubset(of: listed))
        // Events that differ in nothing but the names of their types are listed once.
        let stomp = try #require(declared["STOMP"])
        let inTermsOfMQTT = Set(
            stomp.map {
                listed.contains($0)
                    ? $0 : $0.replacing("STOMPError", with: "MQTTError").replacing("STOMPC", with: "MQTTC")
            })
        #expect(inTermsOfMQTT.isSubset(of: listed))
        #expect(mqtt.union(stomp).union(inTermsOfMQTT).isSuperset(of: listed))
    }

    @Test func `error messages contain no phrase that reads like a translation`() throws {
        let turns =
            /(?:\b[Tt]here )?\b(?:is|are) no \w+|\b(?:nobody|somebody|whoever|good-bye|if that is wanted|taken for|gave|stands)\b/
        let sources = DocumentationPage.root.appending(path: "Sources")
        let files = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String } ?? []
        #expect(files.count > 100)
        // What is asserted is no error message.
        for file in files where file.hasSuffix(".swift") && !file.hasSuffix("+invariants.swift") {
            for line in try String(contentsOf: sources.appending(path: file), encoding: .utf8).split(separator: "\n") {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//"), let quote = code.firstIndex(of: "\"") else { continue }
                let found = code[quote...].matches(of: turns).filter { !$0.0.lowercased().hasPrefix("there") }
                #expect(found.isEmpty, "\(file): \(code)")
            }
        }
    }
}
