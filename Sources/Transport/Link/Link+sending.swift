import MessagingWire
import Synchronization

/// Writing: on the thread that has set `state.sending`, the loop's or a caller's. With layers it is always the loop's.
extension Link where Machine: ~Copyable {
    /// Writes until the outbox is empty, the stream is full, or `rounds` swaps are done. The caller holds `sending`.
    func send(rounds: Int) {
        var rounds = rounds
        while true {
            switch nextStep(&rounds) {
            case .write(let stream):
                guard writeOut(to: stream) else { return }
            case .wrap(let stream, let layers):
                do throws(TransportError) {
                    if try !layers.take(plain, into: &wire) { dropPlain() }
                } catch {
                    // The last bytes of the layers, such as an alert, are in `wire`.
                    breakOff(stream, error)
                    state.withLock { _ in _ = discardPlain() }
                }
                sent.queued += wire.count
            case .handOver:
                loop.post(self, LinkPost.continueSending)
                return
            case .done:
                return
            }
        }
    }

    /// The layers carry nothing any more, and the loop is about to end the connection.
    private func dropPlain() {
        if state.withLock({ _ in discardPlain() }) { loop.post(self, LinkPost.reportDiscarded) }
    }

    /// Writes what is in `wire`; returns false when it has to wait for room in the stream.
    private func writeOut(to stream: any ByteStream) -> Bool {
        let before = wireOffset
        let result = writePieces(to: stream)
        sent.bytes += wireOffset - before
        switch result {
        case .bytes: break
        case .wouldBlock:
            waitForWritability(of: stream)
            return false
        case .endOfStream, .failed:
            state.withLock { _ in _ = discardChunk() }
            let code = if case .failed(let code) = result { code } else { Int32(0) }
            breakOff(stream, stream.failure(code))
        }
        return true
    }

    /// Writes `wire` with the large payload in its place.
    private func writePieces(to stream: any ByteStream) -> IOResult {
        guard let payload = wirePayload else {
            return stream.write(wire, from: &wireOffset, to: wire.count, attempts: &sent.calls)
        }
        let count = payload.bytes.count
        if wireOffset < payload.place {
            let result = stream.write(wire, from: &wireOffset, to: payload.place, attempts: &sent.calls)
            guard case .bytes = result else { return result }
        }
        if wireOffset < payload.place + count {
            var offset = wireOffset - payload.place
            let result = stream.write(payload.bytes, from: &offset, to: count, attempts: &sent.calls)
            wireOffset = payload.place + offset
            guard case .bytes = result else { return result }
        }
        var offset = wireOffset - count
        let result = stream.write(wire, from: &offset, to: wire.count, attempts: &sent.calls)
        wireOffset = offset + count
        return result
    }

    /// The bytes in `wire` and those that belong there.
    private var wireCount: Int { wire.count + (wirePayload?.bytes.count ?? 0) }

    /// Nothing more can be written to `stream`: what comes is dropped until the loop has ended the connection.
    private func breakOff(_ stream: any ByteStream, _ error: TransportError) {
        let isNew = state.withLock { state in
            guard state.stream === stream, state.broken == nil else { return false }
            state.broken = Shared(error)
            return true
        }
        loop.post(self, isNew ? LinkPost.broken : LinkPost.reportDiscarded)
    }

    /// Says what the holder of the token has to do next; with `.done` the token is given back.
    private func nextStep(_ rounds: inout Int) -> WriteStep {
        let isLoop = loop.isCurrent
        var effects = StepEffects()
        let step = state.withLock { state in chooseStep(&state, isLoop: isLoop, &rounds, &effects) }
        if let tap = effects.tap { show(step, to: tap) }
        effects.waiters.resume(returning: nil)
        if effects.loopHasToSettle { loop.post(self, LinkPost.settle) }
        if effects.loopHasToReport { loop.post(self, LinkPost.reportDiscarded) }
        return step
    }

    /// The part of ``nextStep(_:)`` under the lock.
    private func chooseStep(
        _ state: inout LinkState, isLoop: Bool, _ rounds: inout Int, _ effects: inout StepEffects
    ) -> WriteStep {
        state.traffic.addSent(sent)
        state.queuedBytes &+= sent.queued
        sent = LinkTraffic.Half()
        guard let stream = state.stream else { return endWithoutStream(&state, &effects) }
        if wireStream !== stream {
            // Left over from a connection that is gone.
            effects.loopHasToReport = discardChunk()
            wireStream = stream
        }
        if wireOffset < wireCount { return .write(stream) }
        emptyWire()
        plain.removeAll(keepingCapacity: true)
        if state.broken != nil {
            discardOutput()
            state.sending = false
            return .done
        }
        let layers = isLoop ? self.layers : nil
        if let layers { state.answerBytes = layers.outputCount }
        guard machine.value.outputCount > 0 || layers?.hasOutput == true else {
            return giveTokenBack(&state, &effects)
        }
        if rounds == 0 || (!isLoop && (!state.callersMaySend || state.receivedIsUnshown)) { return .handOver }
        rounds -= 1
        return takeOutput(for: stream, layers, &state, &effects)
    }

    /// The connection is gone: drops what was taken to be written.
    private func endWithoutStream(_ state: inout LinkState, _ effects: inout StepEffects) -> WriteStep {
        effects.loopHasToReport = discardChunk()
        wire = []
        plain = []
        wireStream = nil
        state.sending = false
        return .done
    }

    /// Nothing is left to write.
    private func giveTokenBack(_ state: inout LinkState, _ effects: inout StepEffects) -> WriteStep {
        state.sending = false
        effects.waiters = state.outboxWaiters.takeAll()
        effects.loopHasToSettle = claimSettle(&state)
        return .done
    }

    /// Takes the machine's output out to be written, through the layers if there are any.
    private func takeOutput(
        for stream: any ByteStream, _ layers: LayerStack?, _ state: inout LinkState, _ effects: inout StepEffects
    ) -> WriteStep {
        wireIsChunk = layers == nil
        // Otherwise only the layers have something to write.
        if machine.value.outputCount > 0 {
            machine.value.outputTaken(at: loop.now)
            state.standstillIsOver = state.standsStill
            effects.tap = state.tap
            if layers == nil {
                swap(&machine.value.output, &wire)
                wirePayload = machine.value.largePayload.take()
                state.queuedBytes &+= wireCount
            } else {
                swap(&machine.value.output, &plain)
            }
        }
        if layers == nil || !outboxIsFull(state) { effects.waiters = state.outboxWaiters.takeAll() }
        effects.loopHasToSettle = claimSettle(&state)
        return if let layers { .wrap(stream, layers) } else { .write(stream) }
    }

    /// Shows what was taken out of the outbox, in one piece. It is still ours, without the lock: the token is held until a
    /// later step gives it back.
    private func show(_ step: WriteStep, to tap: any LinkTap) {
        if wirePayload != nil {
            guard tap.isWatched else { return }
            wirePayload.take()?.insert(into: &wire)
        }
        let taken = if case .wrap = step { plain } else { wire }
        unsafe tap.sent(taken.span.bytes)
    }

    private func emptyWire() {
        wire.removeAll(keepingCapacity: true)
        wireOffset = 0
        wirePayload = nil
    }

    private func waitForWritability(of stream: any ByteStream) {
        guard loop.isCurrent else {
            loop.post(self, LinkPost.continueSending)
            return
        }
        sendIsBlocked = true
        watch(stream)
    }

    /// The stream takes bytes again; on the loop's thread.
    func continueBlockedSend() {
        guard sendIsBlocked, let stream = wireStream else { return }
        sendIsBlocked = false
        send(rounds: 16)
        // Blocked again, which is likely with a slow peer, changes nothing and costs nothing.
        watch(stream)
    }

    /// Frees the buffers of an idle connection. Called with the lock held, while no thread holds the token.
    func trimBuffers(_ state: inout LinkState) {
        if machine.value.output.capacity > 4096 { machine.value.output = [] }
        if wire.capacity > 4096 { wire = [] }
        if plain.capacity > 4096 { plain = [] }
    }

    /// Silence is likely to follow: gives all buffers back that are not in use. From any thread.
    package func expectSilence() {
        state.withLock { state in
            guard machine.value.outputCount == 0 && !state.sending else { return }
            machine.value.output = []
            wire = []
            plain = []
        }
    }
}

private enum WriteStep {
    case write(any ByteStream)
    case wrap(any ByteStream, LayerStack)
    case handOver
    case done
}

/// What a step leads to once the lock is released.
private struct StepEffects: ~Copyable {
    /// Callers that have room in the outbox again.
    var waiters = UniqueArray<Waiter<String?>>()
    var loopHasToSettle = false
    var loopHasToReport = false
    /// Sees what was taken out of the outbox.
    var tap: (any LinkTap)?
}

/// Bytes that were in the outbox, or were taken out of it, and will not be written: the machine counts them.
///
/// All of this happens under the lock, except for the report.
extension Link where Machine: ~Copyable {
    /// Drops bytes that were taken to be written and are not written; returns whether there were any. The caller holds
    /// `sending`, or no task does.
    @discardableResult
    func discardChunk() -> Bool {
        defer { emptyWire() }
        // After layers the chunk has other offsets: until all of it is written, none of it counts as written.
        if !plain.isEmpty { return discardPlain() }
        guard wireIsChunk, wireOffset < wireCount else { return false }
        unsafe machine.value.outputDiscarded(wire.span.bytes, leavingOut: wirePayload, writtenUpTo: wireOffset)
        return true
    }

    /// Drops what layers were given.
    @discardableResult
    func discardPlain() -> Bool {
        guard !plain.isEmpty else { return false }
        unsafe machine.value.outputDiscarded(plain.span.bytes, leavingOut: nil, writtenUpTo: 0)
        plain.removeAll(keepingCapacity: true)
        return true
    }

    /// Drops the outbox.
    func discardOutput() {
        guard machine.value.outputCount > 0 else { return }
        var discarded: [UInt8] = []
        swap(&machine.value.output, &discarded)
        let payload = machine.value.largePayload.take()
        unsafe machine.value.outputDiscarded(discarded.span.bytes, leavingOut: payload, writtenUpTo: 0)
    }

    /// A caller found out late that the connection it was writing to is gone.
    func reportDiscarded() {
        let afterLock = self.afterLock
        state.withLock { _ in machine.value.reportDiscarded(into: afterLock) }
        afterLock.perform(RawSpan())
    }
}
