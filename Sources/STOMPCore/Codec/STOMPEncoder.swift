import Wire

/// Turns frames into bytes. The engine writes its frames straight into its output instead; this is for tools, tests
/// and other peers.
public struct STOMPEncoder: Sendable {
    public var version: STOMPVersion
    /// How a CONNECT frame's headers are written; not `none` only for a peer that unescapes them against the
    /// specification.
    public var connectEscaping: STOMPEscaping = .none

    public init(version: STOMPVersion = .v12) {
        self.version = version
    }

    /// Appends the frame. A `content-length` is added to any body that has none (STOMP 1.2 "Header content-length");
    /// one that is there must be right.
    ///
    /// Throws, with nothing appended, what this version cannot carry.
    public func encode(_ frame: STOMPFrame, into output: inout [UInt8]) throws(STOMPUsageError) {
        guard frame.body.isEmpty || frame.command.mayHaveBody else {
            throw STOMPUsageError(
                .unexpectedBody,
                "\(frame.commandName) cannot have a body; only SEND, MESSAGE and ERROR can. Send the bytes in a SEND.")
        }
        let declared = contentLength(of: frame)
        if let declared, Int(declared) != frame.body.count {
            throw STOMPUsageError(
                .reservedHeader,
                "content-length says \(declared), the body has \(frame.body.count) bytes. Leave the header out.")
        }
        var escaping = STOMPEscaping(version, for: frame.command)
        if frame.command == .connect || frame.command == .stomp { escaping = connectEscaping }
        let mark = output.count
        if frame.command == .unknown { try putUnlisted(frame.commandName, into: &output) }
        do throws(STOMPUsageError) {
            // UInt8 has no padding, so all bytes are initialised.
            try output.writeFrame(
                frame.command.wireName, escaping, headRoom: 0, headers: frame.headers,
                body: unsafe frame.body.span.bytes, writesContentLength: !frame.body.isEmpty && declared == nil
            ) { _ in }
        } catch {
            output.removeLast(output.count - mark)
            throw error
        }
    }

    /// The `content-length` header, which 1.0 and handshakes recognise with blanks around its name too.
    private func contentLength(of frame: STOMPFrame) -> String? {
        guard version == .v10 || frame.command.isHandshake else { return frame.headers["content-length"] }
        return frame.headers.first { $0.name.trimmingBlanks().hasSameBytes(as: "content-length") }?.value
            .trimmingBlanks()
    }

    private func putUnlisted(_ name: String, into output: inout [UInt8]) throws(STOMPUsageError) {
        guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw STOMPUsageError(
                .unencodableHeader, "\"\(name)\" cannot be a command: commands are printable ASCII without blanks.")
        }
        output.append(contentsOf: name.utf8)
    }
}
