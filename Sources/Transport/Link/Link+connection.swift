import MessagingWire
import Synchronization

/// Connections come and go; on the loop's thread.
extension Link where Machine: ~Copyable {
    func adopt(_ stream: any ByteStream, layers: LayerStack?) {
        precondition(layers?.isOpen != false, "The handshakes of the layers come before the link.")
        let now = loop.now
        endConnection(nil, at: now)
        self.layers = layers
        watched = .read
        stream.attach(self, interest: .read)
        let written = stream.written
        state.withLock { state in
            state.queuedBytes = written
            state.answerBytes = 0
            // Drop bytes that were written without a connection.
            machine.value.output.removeAll(keepingCapacity: true)
            machine.value.largePayload = nil
            // Layers copy what they are given. In a simulation most messages are small.
            machine.value.leastPayloadLeftOut =
                layers != nil ? .max : loop.world == nil ? LargePayload.leastCount : 64
            state.stream = stream
            // Advancing a manual clock does not wait for callers' threads. While such a thread sends, nothing else can
            // be written, so that heart-beats would be missing however much time passes on the clock.
            state.callersMaySend = layers == nil && stream.callersMaySend && !loop.isManual
        }
        let afterLock = self.afterLock
        state.withLock { _ in machine.value.connectionOpened(at: now, into: afterLock) }
        afterLock.perform(RawSpan())
        settle(at: now)
        if let layers, self.layers === layers { receiveEarly(from: layers, at: now) }
    }

    /// Lets the layers of this connection pass text on unchecked, for peers that send other bytes as text.
    package func stopValidatingText() {
        layers?.stopValidatingText()
    }

    /// The machine's last bytes are written: the layers write their closing messages, then our direction of the stream
    /// ends. The peer's last bytes are still read, because a close with unread bytes would reset what we sent.
    func closeInOrder(at now: Int64) {
        if let layers, layers.beginClosing(), layers.hasOutput { return settle(at: now) }
        guard !isFinishing, let stream = state.withLock({ $0.stream }) else { return }
        guard stream.keepsWrittenBytes else { return finishConnection(at: now) }
        // A program may exit as soon as the callers continue, and would take the last bytes with it.
        isFinishing = true
        closing = MovementWatch()
        Lingering.start(stream, loop: loop, at: now) { [self] in
            guard isFinishing, state.withLock({ $0.stream === stream }) else { return }
            detachStream(nil, at: loop.now)
        }
    }

    /// Neither side has more to send: ends our direction of the stream, and closes it once the peer has ended too, or after
    /// a second. Callers that wait for the end continue before.
    func finishConnection(at now: Int64) {
        guard let stream = state.withLock({ $0.stream }) else { return }
        Lingering.start(stream, loop: loop, at: now)
        detachStream(nil, at: now)
    }

    /// Ends the connection at once, if there is one.
    func endConnection(_ error: TransportError?, at now: Int64) {
        let (stream, isAbandoned) = state.withLock { ($0.stream, machine.value.abandonsOutput) }
        guard let stream else { return }
        if isAbandoned {
            stream.abort()
        } else if !isFinishing {
            stream.close()
        }
        detachStream(error, at: now)
    }

    /// Nothing can be written any more. The peer's last bytes, which may say why it ended the connection, are received
    /// before the end is reported.
    func endBrokenConnection(at now: Int64) {
        guard let error = state.withLock({ $0.broken?.value }) else { return }
        // Bounded, for a peer that never stops sending; what the system had buffered is less.
        for _ in 0..<32 {
            guard receive(at: now, evenIfPaused: true) else { break }
        }
        endConnection(explained(error), at: now)
    }

    /// Reports to the machine that the stream is gone. The stream reports nothing any more.
    private func detachStream(_ error: TransportError?, at now: Int64) {
        let afterLock = self.afterLock
        var waiters = state.withLock { state in
            // The first error counts, unless a layer knows the reason.
            let isExplained = error != nil && error?.code != .connectionLost
            let error = isExplained ? error : state.broken?.value ?? error
            state.stream = nil
            state.broken = nil
            state.readingIsPaused = false
            (state.standsStill, state.standstillIsOver) = (false, false)
            // The loop held the token while it waited for room in the stream. A caller that holds it finds out.
            if sendIsBlocked { state.sending = false }
            if !state.sending {
                discardChunk()
                wire = []
                plain = []
                wireStream = nil
            }
            discardOutput()
            machine.value.output = []
            machine.value.connectionClosed(error, at: now, into: afterLock)
            machine.value.reportDiscarded(into: afterLock)
            return state.outboxWaiters.takeAll()
        }
        connections.subtract(1, ordering: .relaxed)
        sendIsBlocked = false
        (isReadingPaused, isReadingHeldUp) = (false, false)
        isFinishing = false
        closing = MovementWatch()
        stall = nil
        layers = nil
        tail = []
        afterLock.perform(RawSpan())
        // After the client knows why the connection ended, so that what waited for room reports that.
        waiters.resume(returning: nil)
        settle(at: now)
    }
}
