import Synchronization

extension Link where Machine: ~Copyable {
    /// Writes until the outbox is empty, the stream is full, or `rounds` swaps are done. The caller holds `sending`.
    func send(rounds: Int) {
        var rounds = rounds
        while true {
            guard let stream = nextWire(&rounds) else { return }
            while wireOffset < wire.count {
                let result = wire.withUnsafeBytes { bytes in
                    stream.write(from: UnsafeRawBufferPointer(rebasing: bytes[wireOffset...]))
                }
                switch result {
                case .bytes(let count):
                    wireOffset += count
                case .wouldBlock:
                    waitForWritability(of: stream)
                    return
                case .endOfStream, .failed:
                    // The reading side finds the same end and reports it, after what the peer said last.
                    wireOffset = wire.count
                }
            }
        }
    }

    /// Makes `wire` hold the next bytes to write; nil when there are none (the token is given back then) or when
    /// it is the loop's turn.
    private func nextWire(_ rounds: inout Int) -> (any ByteStream)? {
        let isLoop = loop.isCurrent
        var waiters = RoomWaiters.Taken()
        var failure: TransportError?
        let next = state.withLock { state -> SendStep in
            guard let stream = state.stream else {
                wire.removeAll(keepingCapacity: true)
                wireOffset = 0
                wireStream = nil
                state.sending = false
                return .done
            }
            if wireStream !== stream {
                // Left over from a connection that is gone.
                wire.removeAll(keepingCapacity: true)
                wireOffset = 0
                wireStream = stream
            }
            if wireOffset < wire.count { return .write(stream) }
            wire.removeAll(keepingCapacity: true)
            wireOffset = 0
            let layersWrote = isLoop && layers?.hasOutput == true
            if state.machine.output.isEmpty && !layersWrote {
                state.sending = false
                waiters = state.roomWaiters.takeAll()
                return state.machine.wantsClose ? .close : .done
            }
            if rounds == 0 || (!isLoop && !stream.callersMaySend) { return .handOver }
            rounds -= 1
            if isLoop, let layers {
                do throws(TransportError) {
                    try layers.take(&state.machine.output, into: &wire)
                } catch {
                    failure = error
                }
                if wire.isEmpty {
                    state.sending = false
                    return .done
                }
            } else {
                swap(&state.machine.output, &wire)
            }
            if !state.outboxIsFull { waiters = state.roomWaiters.takeAll() }
            return .write(stream)
        }
        waiters.resume()
        if let failure { connectionEnded(failure, at: MonotonicClock.now) }
        switch next {
        case .write(let stream):
            return stream
        case .handOver:
            loop.post(self, LinkPost.continueSending)
            return nil
        case .close:
            loop.post(self, LinkPost.update)
            return nil
        case .done:
            return nil
        }
    }

    private func waitForWritability(of stream: any ByteStream) {
        guard loop.isCurrent else {
            loop.post(self, LinkPost.continueSending)
            return
        }
        sendIsBlocked = true
        stream.setInterest(state.withLock { $0.readingIsPaused } ? .write : [.read, .write])
    }

    /// The stream takes bytes again; on the loop's thread.
    func continueBlockedSend() {
        guard sendIsBlocked else { return }
        sendIsBlocked = false
        wireStream?.setInterest(state.withLock { $0.readingIsPaused } ? [] : .read)
        send(rounds: 16)
    }
}

extension Link.State where Machine: ~Copyable {
    var outboxIsFull: Bool { machine.output.count >= outboxLimit }

    /// Gives large buffers back while nothing happens.
    mutating func trimIfIdle() {
        if machine.output.isEmpty && machine.output.capacity > 4096 { machine.output = [] }
    }
}

private enum SendStep {
    case write(any ByteStream)
    case handOver, done, close
}
