import MessagingWire

/// Turns bytes into frames, however they are split over reads. The engine parses in place instead; this is for tools,
/// tests and other peers.
///
///     decoder.push(bytes)
///     while let frame = try decoder.next() { … }
///
/// After a violation the decoder is done: it throws the same one again.
public struct STOMPDecoder: Sendable {
    /// The version whose escapes and blanks go for the next frame. Handshake frames are never unescaped.
    public var version: STOMPVersion
    /// How a CONNECT frame's headers are read; not `none` only where the peer escapes them against the specification.
    public var connectEscaping: STOMPEscaping = .none
    public let limits: STOMPLimits

    /// Line ends between frames so far: heart-beats and what stood after a NUL.
    package private(set) var lineEnds = 0

    private var buffer: [UInt8] = []
    private var start = 0
    private var scanner = FrameScanner()
    private var failure: STOMPProtocolError?

    public init(version: STOMPVersion = .v12, limits: STOMPLimits = STOMPLimits()) {
        self.version = version
        self.limits = limits.clamped
    }

    /// Bytes that are held because their frame is not complete. Bounded by the limits once `next()` has answered nil.
    public var bufferedBytes: Int { buffer.count - start }

    /// Takes what came from the peer.
    public mutating func push(_ bytes: RawSpan) {
        guard failure == nil else { return }
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        // The buffer is used only inside the closure.
        unsafe bytes.withUnsafeBytes { unsafe buffer.append(contentsOf: $0) }
    }

    /// Takes what came from the peer.
    public mutating func push(_ bytes: [UInt8]) {
        // UInt8 has no padding, so all bytes are initialised.
        push(unsafe bytes.span.bytes)
    }

    /// The next complete frame, or nil when more bytes are needed.
    public mutating func next() throws(STOMPProtocolError) -> STOMPFrame? {
        if let failure { throw failure }
        do {
            return try scan()
        } catch {
            failure = error
            buffer = []
            start = 0
            throw error
        }
    }

    private mutating func scan() throws(STOMPProtocolError) -> STOMPFrame? {
        // A second reference, so that the state beside the buffer may change while the span is read.
        let held = buffer
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe held.span.bytes
        if scanner.isBetweenFrames {
            let skipped = scanner.lineEnds(in: bytes, from: start)
            start += skipped.bytes
            lineEnds += skipped.count
        }
        guard try scanner.scan(bytes, from: start, version: version, limits: limits) else { return nil }
        let frame = STOMPFrame(
            scanner, in: bytes, from: start, version: version, connectEscaping: connectEscaping)
        start += scanner.frameEnd
        scanner.reset()
        return frame
    }
}

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
    /// an existing one must be right.
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
            try FrameWriter.writeFrame(
                into: &output, frame.command.wireName, escaping, headRoom: 0, headers: frame.headers,
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
