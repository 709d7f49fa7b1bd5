import Foundation

/// A capture file, as Wireshark's command line reads it.
public struct Capture: Sendable {
    private let scratch: ScratchDirectory
    public let path: String

    /// Writes the bytes of a capture file where tshark can read them.
    public init(_ bytes: [UInt8]) throws {
        scratch = try ScratchDirectory("capture")
        path = scratch.file("frames.pcapng")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    /// The values of the fields in each packet that a display filter lets through; a field that occurs several times in
    /// a packet is joined by commas. Checksums are checked.
    public func packets(_ filter: String, fields: [String]) async throws -> [[String]] {
        let arguments = ["-n", "-r", path, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
        let result = try await Tool.run(
            "tshark", arguments + ["-Y", filter, "-T", "fields"] + fields.flatMap { ["-e", $0] },
            environment: ["HOME": scratch.path]
        ).requireSuccess()
        return result.text.split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// What tshark finds wrong: malformed packets, bad checksums, gaps and repetitions in TCP.
    public func problems() async throws -> [String] {
        let filter = [
            "_ws.malformed", "tcp.checksum.status == 0", "ip.checksum.status == 0", "tcp.analysis.flags",
            "_ws.expert.severity >= 6291456",
        ].joined(separator: " || ")
        return try await packets(filter, fields: ["frame.number", "_ws.col.info", "_ws.expert.message"])
            .map { $0.joined(separator: " ") }
    }

    /// What capinfos tells of the file; throws when it does not accept it.
    public func information() async throws -> String {
        try await Tool.run("capinfos", [path], environment: ["HOME": scratch.path]).requireSuccess().text
    }
}
