import Synchronization

extension Link where Machine: ~Copyable {
    /// Reads once and feeds the machine. `mustEnd` is set when the system reported a hang-up without bytes to read.
    func receive(at now: Int64, mustEnd: Bool) {
        let (stream, paused) = state.withLock { ($0.stream, $0.readingIsPaused) }
        guard let stream else { return }
        if paused && !mustEnd { return }
        let buffer = loop.readBuffer
        if let layers {
            switch stream.read(into: buffer) {
            case .bytes(let count):
                receiveThroughLayers(layers, RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer)[..<count]), at: now)
            case let other:
                ended(other, stream, at: now)
            }
            return
        }
        // A short tail goes in front of what is read now; a long one grows by itself.
        let kept = tail.count
        let inPlace = kept <= buffer.count / 2
        if inPlace && kept > 0 {
            tail.withUnsafeBytes { buffer.copyMemory(from: $0) }
        }
        let target = inPlace ? UnsafeMutableRawBufferPointer(rebasing: buffer[kept...]) : buffer
        switch stream.read(into: target) {
        case .bytes(let count):
            if inPlace {
                let total = kept + count
                let consumed = feed(UnsafeRawBufferPointer(rebasing: buffer[..<total]), at: now)
                keep(UnsafeRawBufferPointer(rebasing: buffer[consumed..<total]))
            } else {
                tail.append(contentsOf: buffer[..<count])
                let consumed = tail.withUnsafeBytes { feed($0, at: now) }
                tail.removeFirst(min(consumed, tail.count))
            }
            settle(at: now)
        case let other:
            ended(other, stream, at: now)
        }
    }

    private func keep(_ rest: UnsafeRawBufferPointer) {
        if rest.isEmpty {
            // An idle connection keeps no buffer.
            if !tail.isEmpty || tail.capacity > 4096 { tail = [] }
        } else {
            tail.removeAll(keepingCapacity: true)
            tail.append(contentsOf: rest)
        }
    }

    /// Lets the machine consume what it can and performs the effects; returns how much was consumed.
    private func feed(_ bytes: UnsafeRawBufferPointer, at now: Int64) -> Int {
        let scratch = self.scratch
        var consumed = 0
        while consumed < bytes.count {
            let span = RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
            let (count, wantsClose) = state.withLock { state in
                guard state.stream != nil else { return (0, true) }
                return (state.machine.receive(span, at: now, into: scratch), state.machine.wantsClose)
            }
            scratch.perform(span)
            consumed += count
            // A machine may stop early to have its effects performed; nothing consumed means that it needs more.
            if count == 0 { break }
            if wantsClose { return bytes.count }
        }
        return consumed
    }

    private func receiveThroughLayers(_ layers: LayerStack, _ bytes: RawSpan, at now: Int64) {
        let wasOpen = layers.isOpen
        do {
            try layers.receive(bytes, at: now, into: &tail)
        } catch {
            settle(at: now)
            connectionEnded(error, at: now)
            return
        }
        if !wasOpen && layers.isOpen { open(at: now) }
        if layers.isOpen && !tail.isEmpty {
            // The machine may end the connection, which empties the tail: work on what is ours.
            let plain = tail
            tail = []
            let consumed = plain.withUnsafeBytes { feed($0, at: now) }
            if self.layers === layers && consumed < plain.count {
                tail = consumed == 0 ? plain : Array(plain[consumed...])
            }
        }
        settle(at: now)
        if layers.isFinished { connectionEnded(nil, at: now) }
    }

    private func ended(_ result: IOResult, _ stream: any ByteStream, at now: Int64) {
        switch result {
        case .bytes, .wouldBlock:
            return
        case .endOfStream:
            do {
                try layers?.endReceived()
                connectionEnded(nil, at: now)
            } catch {
                connectionEnded(error, at: now)
            }
        case .failed(let code):
            let error = TransportError(
                .connectionLost, "the connection to \(stream.peerName) broke: \(System.describe(code))", errno: code)
            connectionEnded(error, at: now)
        }
    }
}
