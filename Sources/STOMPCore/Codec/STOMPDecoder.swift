import Wire

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
    public private(set) var lineEnds = 0

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
            return try scanNext()
        } catch {
            failure = error
            buffer = []
            start = 0
            throw error
        }
    }

    private mutating func scanNext() throws(STOMPProtocolError) -> STOMPFrame? {
        // A second reference, so that the state beside the buffer may change while the span is looked at.
        let held = buffer
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe held.span.bytes
        if scanner.isBetweenFrames {
            let skipped = scanner.lineEnds(in: bytes, from: start)
            start += skipped.bytes
            lineEnds += skipped.count
        }
        guard try scanner.scan(bytes, from: start, version: version, limits: limits) else { return nil }
        let frame = STOMPFrame(scanner, in: bytes, from: start, version: version, connectEscaping: connectEscaping)
        start += scanner.frameEnd
        scanner.reset()
        return frame
    }
}

extension STOMPFrame {
    /// The frame that the scanner found at `base`, as values of its own.
    init(
        _ scanner: FrameScanner, in bytes: RawSpan, from base: Int, version: STOMPVersion,
        connectEscaping: STOMPEscaping = .none
    ) {
        let block = bytes.extracting((base + scanner.headerStart)..<(base + scanner.headerEnd))
        var reader = STOMPHeaderReader(version: version, command: scanner.command)
        if scanner.command.isHandshake {
            // A handshake without a version header speaks 1.0, whatever the connection will speak.
            reader.trimsBlanks = false
            let names = scanner.command == .connected ? "version" : "accept-version"
            reader.trimsBlanks = reader.rawValue(of: names, in: block) == nil
            if scanner.command != .connected { reader.escaping = connectEscaping }
        }
        self.init(
            scanner.command, headers: reader.headers(in: block),
            body: bytes.bytes(in: base + scanner.bodyStart..<base + scanner.bodyEnd))
        if scanner.command == .unknown {
            self.init(unlisted: scanner.name(in: bytes, base), headers: headers, body: body)
        }
    }
}
