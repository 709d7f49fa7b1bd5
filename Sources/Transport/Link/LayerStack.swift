import MessagingWire

/// A protocol between the stream and the engine (TLS, WebSocket, a proxy's handshake): bytes in, bytes out.
///
/// ``LayerHandshake`` drives the layers of a connection until they are open, and then the ``Link`` of that connection does, on
/// the loop's thread. Both directions append to the arrays that they are given.
package protocol ByteLayer: AnyObject {
    /// The stream below is open: writes the first bytes of the handshake, if this side begins.
    func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError)
    /// Bytes came from below: appends what is for the engine to `plain`, and answers to `wire`.
    func receive(_ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]) throws(TransportError)
    /// Bytes for the peer: appends their form below to `wire`. Called only while `isOpen`, and not for those of the engine once
    /// the layer is finished or has thrown.
    func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError)
    /// Whether there is an answer that replaces earlier ones: it is written by `answer`, once the wire takes more.
    var owesAnswer: Bool { get }
    /// Writes that answer.
    func answer(wire: inout [UInt8])
    /// Writes the closing message, if the protocol has one.
    func close(wire: inout [UInt8])
    /// The stream below ended: throws when the protocol had not (truncation).
    func endReceived() throws(TransportError)
    /// The handshake has taken too long: throws when the peer has already said why it fails.
    func timedOut() throws(TransportError)
    /// Whether the handshake is done.
    var isOpen: Bool { get }
    /// Whether the peer has sent its closing message.
    var isFinished: Bool { get }
    /// Passes text on from now on without checking that it is text, if the layer knows text.
    func stopValidatingText()
}

extension ByteLayer {
    package func timedOut() throws(TransportError) {}
    package func stopValidatingText() {}
}

extension ByteLayer {
    package var owesAnswer: Bool { false }
    package func answer(wire: inout [UInt8]) {}
}

/// The layers between one stream and its engine, lowest first, with the buffers between them.
package final class LayerStack: @unchecked Sendable {
    // Sendable because it is handed over once, to its handshake, and from then on touched on the loop's thread only.
    private var layers: [any ByteLayer]
    private var started = 0
    private var opened = 0
    private var isClosing = false
    /// Whether a layer has thrown.
    private var hasFailed = false
    private var output: [UInt8] = []
    /// What came for the engine behind the handshakes.
    var early: [UInt8] = []
    /// When the handshakes of all layers must be done.
    let deadline: Int64
    /// What to report when they are not, unless a layer knows more.
    private let timeout: TransportError
    private let timeoutAboveLowest: Shared<TransportError>?

    /// - Parameters:
    ///   - layers: lowest first, at least one.
    ///   - timeout: what to report at the deadline.
    ///   - timeoutAboveLowest: what to report instead once the lowest layer is open, a proxy's for example.
    package init(
        _ layers: [any ByteLayer], deadline: Int64, timeout: TransportError,
        timeoutAboveLowest: TransportError? = nil
    ) {
        self.layers = layers
        self.deadline = deadline
        self.timeout = timeout
        self.timeoutAboveLowest = timeoutAboveLowest.map { Shared($0) }
    }

    var isOpen: Bool { opened == layers.count }
    var isFinished: Bool { layers.contains { $0.isFinished } }
    var hasOutput: Bool { !output.isEmpty || layers.contains { $0.owesAnswer } }
    /// The number of bytes that layers wrote by themselves and that have not been taken yet.
    var outputCount: Int { output.count }

    /// The stream is there: the lowest layer starts its handshake.
    func begin(at now: Int64) throws(TransportError) {
        try openNext(at: now)
    }

    /// Lets each open layer write its closing message, the highest first; what the engine writes from now on is
    /// dropped.
    ///
    /// - Returns: false when this was done before.
    func beginClosing() -> Bool {
        guard !isClosing else { return false }
        isClosing = true
        for index in (0..<opened).reversed() {
            var goodBye: [UInt8] = []
            layers[index].close(wire: &goodBye)
            if !goodBye.isEmpty { flushAnswer(goodBye, below: index) }
        }
        return true
    }

    /// Passes bytes from the stream up through the layers and appends what comes out at the top.
    func receive(_ bytes: RawSpan, at now: Int64, into plain: inout [UInt8]) throws(TransportError) {
        try receive(bytes, from: 0, at: now, into: &plain)
    }

    private func receive(
        _ bytes: RawSpan, from index: Int, at now: Int64, into plain: inout [UInt8]
    ) throws(TransportError) {
        guard index < layers.count else {
            bytes.append(to: &plain)
            return
        }
        var above: [UInt8] = []
        var answer: [UInt8] = []
        defer { if !answer.isEmpty { flushAnswer(answer, below: index) } }
        do throws(TransportError) {
            try layers[index].receive(bytes, at: now, plain: &above, wire: &answer)
        } catch {
            hasFailed = true
            // Deliver the valid bytes before the failure: they may hold the peer's reason for leaving.
            if index < opened && !above.isEmpty {
                try unsafe receive(above.span.bytes, from: index + 1, at: now, into: &plain)
            }
            throw error
        }
        if !answer.isEmpty {
            try descend(answer, below: index)
            answer = []
        }
        try openNext(at: now)
        if !above.isEmpty { try unsafe receive(above.span.bytes, from: index + 1, at: now, into: &plain) }
    }

    /// An alert that a failing layer wrote still goes out if the layers below can carry it.
    private func flushAnswer(_ answer: [UInt8], below index: Int) {
        try? descend(answer, below: index)
    }

    /// Moves what the engine wrote through all layers into the empty `wire`, after what the layers wrote by
    /// themselves. When it throws, `wire` holds the last bytes for the peer.
    ///
    /// - Returns: false if what the engine wrote was dropped, because a layer has failed or the conversation of one has ended.
    ///   The reason why the connection ends is then known from elsewhere.
    @discardableResult
    func take(_ engineOutput: [UInt8], into wire: inout [UInt8]) throws(TransportError) -> Bool {
        defer { swap(&output, &wire) }
        for index in layers.indices where layers[index].owesAnswer {
            var answer: [UInt8] = []
            layers[index].answer(wire: &answer)
            try descend(answer, below: index)
        }
        guard !isClosing, !hasFailed, !isFinished else { return false }
        if !engineOutput.isEmpty { try descend(engineOutput, below: layers.count) }
        return true
    }

    func stopValidatingText() {
        for layer in layers { layer.stopValidatingText() }
    }

    /// The highest layer that has begun knows best what the end of the stream means, unless TLS knows that the server wanted
    /// a certificate: it may leave without an alert, after TLS 1.3 is open at this end.
    func endReceived() throws(TransportError) {
        var failure: TransportError?
        for layer in layers[..<started].reversed() {
            do throws(TransportError) {
                try layer.endReceived()
            } catch {
                if failure == nil || error.code == .clientCertificateRefused { failure = error }
            }
        }
        if let failure { throw failure }
    }

    /// What to report at the deadline.
    func failureAtDeadline() -> TransportError {
        do throws(TransportError) {
            for layer in layers[..<started].reversed() { try layer.timedOut() }
        } catch {
            return error
        }
        return opened > 0 ? timeoutAboveLowest?.value ?? timeout : timeout
    }

    /// Takes back what could not be written yet; it goes out first.
    func giveBack(_ rest: ArraySlice<UInt8>) {
        output.insert(contentsOf: rest, at: 0)
    }

    /// Passes what a failing layer has written, perhaps an alert, down before the failure is thrown.
    ///
    /// The lowest layer writes into `output` itself: a copy of a full outbox would double its memory.
    private func descend(_ bytes: [UInt8], below index: Int) throws(TransportError) {
        guard index > 0 else {
            output.append(contentsOf: bytes)
            return
        }
        var current = bytes
        var failure: TransportError?
        for layer in layers[1..<index].reversed() {
            var next: [UInt8] = []
            do throws(TransportError) {
                try unsafe layer.send(current.span.bytes, wire: &next)
            } catch {
                failure = failure ?? error
            }
            current = next
        }
        do throws(TransportError) {
            try unsafe layers[0].send(current.span.bytes, wire: &output)
        } catch {
            failure = failure ?? error
        }
        if let failure {
            hasFailed = true
            throw failure
        }
    }

    /// Starts each layer once all below it are open.
    private func openNext(at now: Int64) throws(TransportError) {
        while opened < layers.count {
            if started <= opened {
                started = opened + 1
                var first: [UInt8] = []
                try layers[opened].opened(at: now, wire: &first)
                if !first.isEmpty { try descend(first, below: opened) }
            }
            guard layers[opened].isOpen else { return }
            opened += 1
        }
    }
}
