/// Runs the handshakes of a layer stack over a stream before a link gets both, so that the code that opens
/// connections knows which server works.
package final class LayerHandshake: LoopHandler, @unchecked Sendable {
    // Sendable because all fields are touched on the loop's thread only.
    private let stream: any ByteStream
    private let layers: LayerStack
    private var completion: ((Result<Void, TransportError>) -> Void)?
    private var isCancelled = false
    /// Whether the reason why it failed is to reach the peer, which closing with unread bytes could destroy.
    private var lingers = false
    private var wire: [UInt8] = []
    private var wireOffset = 0

    /// Bytes of answers that wait behind those that the stream does not take; reading pauses at this number.
    private static let maximumWaiting = 64 << 10

    private init(_ layers: LayerStack, _ stream: any ByteStream, loop: EventLoop) {
        self.layers = layers
        self.stream = stream
        super.init(loop: loop)
    }

    /// Returns when all layers are open; the stream is then free to be attached to a link.
    ///
    /// When it throws, the stream is closed: at the deadline of the layers with what they report then, `cancelled` with the
    /// caller's task.
    package static func run(
        _ layers: LayerStack, over stream: any ByteStream, loop: EventLoop
    ) async throws(TransportError) {
        let handshake = LayerHandshake(layers, stream, loop: loop)
        let call = PendingCall<Result<Void, TransportError>>()
        let result = await call.answer {
            loop.execute { handshake.start { call.end($0) } }
        } onCancel: {
            loop.execute { handshake.cancel() }
        }
        try result.get()
    }

    /// A server's side, to be started and followed on the loop's thread.
    package convenience init(serving layers: LayerStack, over stream: any ByteStream, loop: EventLoop) {
        self.init(layers, stream, loop: loop)
        lingers = true
    }

    /// Moves the deadline; on the loop's thread.
    package func setDeadline(_ deadline: Int64) {
        if completion != nil { loop.setDeadline(self, to: deadline) }
    }

    /// Starts; `completion` is called on the loop's thread, once.
    package func start(_ completion: @escaping (Result<Void, TransportError>) -> Void) {
        self.completion = completion
        if isCancelled { return cancel() }
        stream.attach(self, interest: .read)
        loop.setDeadline(self, to: layers.deadline)
        let now = loop.now
        advance { () throws(TransportError) in try layers.begin(at: now) }
    }

    /// Ends it with the code `cancelled`; on the loop's thread.
    package func cancel() {
        isCancelled = true
        finish(TransportError(.cancelled, "Connecting to \(stream.peerName) was cancelled."))
    }

    override package func ready(_ readiness: Readiness, at now: Int64) {
        guard completion != nil else {
            // The event is for the next handler, which watches for it: until then it would be reported again and again.
            return stream.setInterest([])
        }
        if readiness.contains(.write), !write() { return }
        guard readiness.contains(.read) || readiness.contains(.hangUp) else { return }
        // Safe: nothing else uses the loop's buffer until this returns, and only what was read into it is read from it.
        let buffer = unsafe loop.readBuffer
        switch unsafe stream.read(into: buffer) {
        case .bytes(let count):
            advance { () throws(TransportError) in
                let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                try layers.receive(bytes, at: now, into: &layers.early)
            }
        case .wouldBlock:
            break
        case .endOfStream:
            advance { () throws(TransportError) in
                try layers.endReceived()
                throw TransportError(
                    .closedByPeer,
                    "\(stream.peerName) ended the connection during the handshakes. Does it speak this protocol at this port?"
                )
            }
        case .failed(let code):
            // A peer that speaks something else often closes with our bytes unread, which resets the connection.
            advance { () throws(TransportError) in
                let failure = stream.failure(code)
                if failure.code == .connectionLost { try layers.endReceived() }
                throw failure
            }
        }
    }

    override package func deadlineReached(at now: Int64) {
        finish(layers.failureAtDeadline())
    }

    private func advance(_ step: () throws(TransportError) -> Void) {
        var failure: TransportError?
        do throws(TransportError) {
            try step()
        } catch {
            failure = error
        }
        // An alert is worth an attempt to send it.
        let isWritten = write()
        if let failure { return finish(failure, lingering: lingers) }
        guard isWritten, layers.isOpen else { return }
        if layers.isFinished {
            return finish(
                TransportError(
                    .closedByPeer,
                    "\(stream.peerName) ended the connection at once. Check the port, and whether it accepts clients."))
        }
        finish(nil)
    }

    /// Writes what the layers have to say; returns false when it has to wait for room in the stream or has failed.
    private func write() -> Bool {
        var attempts = 0
        while true {
            if wireOffset == wire.count {
                wire.removeAll(keepingCapacity: true)
                wireOffset = 0
                guard layers.hasOutput, (try? layers.take([], into: &wire)) != nil else {
                    stream.setInterest(.read)
                    return true
                }
            }
            switch stream.write(wire, from: &wireOffset, to: wire.count, attempts: &attempts) {
            case .bytes: break
            case .wouldBlock where layers.isOpen:
                // The link continues with it.
                layers.giveBack(wire[wireOffset...])
                wire = []
                wireOffset = 0
                return true
            case .wouldBlock:
                // Answers to a peer that does not take them must not pile up.
                stream.setInterest(layers.outputCount < Self.maximumWaiting ? [.read, .write] : .write)
                return false
            case .endOfStream, .failed:
                // The peer may have said why before it left: reading finds that, or the end.
                wireOffset = wire.count
            }
        }
    }

    private func finish(_ failure: TransportError?, lingering: Bool = false) {
        guard let completion else { return }
        self.completion = nil
        loop.setDeadline(self, to: .max)
        // Attached until the next handler takes its place.
        guard let failure else { return completion(.success(())) }
        if lingering {
            Lingering.start(stream, loop: loop, at: loop.now)
        } else {
            stream.close()
        }
        completion(.failure(failure))
    }
}
