#if canImport(Network)
    import Dispatch
    import Foundation
    import Network
    import Synchronization

    /// A connection of Network.framework: with TLS on every Apple system, and without where Apple advises against
    /// sockets (iOS, tvOS, watchOS, visionOS).
    ///
    /// At most 256 KiB wait here in either direction. While that much is unread no `receive` is outstanding, so that
    /// the peer is slowed down by TCP; while that much is unsent, `write` would block. Handlers and completions run on
    /// the connection's own queue and touch nothing but `state`; readiness is reported on the event loop, as long as
    /// it lasts, as a selector does.
    final class NetworkStream: NotifyingStream, @unchecked Sendable {
        // Sendable because `state` is locked and `notifier` is touched on the loop's thread only.
        static let maximumUnread = 256 * 1024
        static let maximumUnsent = 256 * 1024
        /// Each send is an object with a closure: many small ones would outgrow their bytes.
        private static let maximumSends = 64
        /// Small enough for a slow link to complete one within a second, which shows that it moves.
        private static let longestSend = 16 * 1024

        fileprivate struct State {
            var chunks: [Data] = []
            /// How much of the first chunk has been read.
            var offset = 0
            var unread = 0
            var isReceiving = false
            var hasEnded = false
            var hasDelivered = false
            var unsent = 0
            var sends = 0
            var written = 0
            /// How many of these bytes Network.framework has processed.
            var passedOn = 0
            var isFinished = false
            var isClosed = false
            var failure: TransportError?
            /// How often the connection became viable or ceased to be.
            var viabilityChanges = 0

            var canRead: Bool { unread > 0 || hasEnded || failure != nil }
            var canWrite: Bool {
                failure != nil || isClosed
                    || (unsent < NetworkStream.maximumUnsent && sends < NetworkStream.maximumSends)
            }
        }

        let peerName: String
        private let connection: NWConnection
        private let queue: DispatchQueue
        private let describe: @Sendable (NWError, _ hasDelivered: Bool) -> TransportError
        private let state = Lock(State())
        private var notifier: StreamNotifier?

        var callersMaySend: Bool { true }
        var keepsWrittenBytes: Bool { true }

        /// Takes over a connection that has been started on `queue` and is ready.
        ///
        /// - Parameters:
        ///   - grace: for how long the connection may be without a path before it fails. A phone that changes to another
        ///     network for a moment keeps its connection; after that the way to the server is another one, and only a new
        ///     connection can use it.
        ///   - describe: what the connection's errors mean.
        init(
            _ connection: NWConnection, queue: DispatchQueue, peerName: String,
            grace: DispatchTimeInterval = .seconds(5),
            describe: @escaping @Sendable (NWError, _ hasDelivered: Bool) -> TransportError
        ) {
            self.connection = connection
            self.queue = queue
            self.peerName = peerName
            self.describe = describe
            connection.stateUpdateHandler = { [weak self] state in
                switch state {
                case .failed(let error), .waiting(let error): self?.fail(error)
                default: break
                }
            }
            connection.viabilityUpdateHandler = { [weak self] isViable in self?.viabilityChanged(isViable, grace) }
        }

        deinit {
            if !state.withLock({ $0.isClosed }) { connection.cancel() }
        }

        // MARK: The loop's thread

        func attach(_ handler: LoopHandler, interest: Readiness) {
            self.notifier?.handler = nil
            let notifier = StreamNotifier(handler: handler, stream: self, interest: interest)
            self.notifier = notifier
            notifierOfOthers.withLock { $0 = notifier }
            receiveMore()
            notifier.notify()
        }

        func setInterest(_ interest: Readiness) {
            notifier?.interest = interest
            notifier?.notify()
        }

        func detach() {
            notifier?.handler = nil
            notifier = nil
            notifierOfOthers.withLock { $0 = nil }
        }

        func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
            let result = state.withLock { state -> IOResult in
                if state.unread > 0 { return unsafe .bytes(state.take(into: buffer)) }
                if let failure = state.failure { return .failed(failure.errno) }
                return state.hasEnded ? .endOfStream : .wouldBlock
            }
            receiveMore()
            return result
        }

        func endWriting() {
            finish {}
        }

        func close() {
            guard beginClosing() else { return }
            // Cancelling drops what has not been handed to TCP, so it comes after the last bytes; a peer that takes
            // none of them for five seconds loses them.
            let connection = connection
            queue.asyncAfter(deadline: .now() + .seconds(5)) { connection.forceCancel() }
            finish { connection.cancel() }
        }

        func abort() {
            if beginClosing() { connection.forceCancel() }
        }

        /// Returns false if the stream was closed before.
        private func beginClosing() -> Bool {
            detach()
            return state.withLock { state in
                defer { state.isClosed = true }
                return !state.isClosed
            }
        }

        /// Ends our side, once; `then` is called when all before it has been processed.
        private func finish(_ then: @escaping @Sendable () -> Void) {
            let (isFirst, isBroken) = state.withLock { state in
                defer { state.isFinished = true }
                return (!state.isFinished, state.failure != nil)
            }
            if isBroken { return then() }
            if isFirst {
                connection.send(
                    content: nil, contentContext: .finalMessage, isComplete: true,
                    completion: .contentProcessed { _ in then() })
            } else {
                // The end is on its way; the queue is where its completion comes.
                queue.async { [weak self] in self?.whenSent(then) ?? then() }
            }
        }

        private func whenSent(_ then: @escaping @Sendable () -> Void) {
            let isSent = state.withLock { $0.sends == 0 || $0.failure != nil }
            if isSent { then() } else { lastSent.withLock { $0 = Callback(call: then) } }
        }

        // MARK: Any thread

        func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
            let (result, count) = state.withLock { state -> (IOResult, Int) in
                if let failure = state.failure { return (.failed(failure.errno), 0) }
                if state.isClosed || state.isFinished { return (.failed(EPIPE), 0) }
                guard state.canWrite else { return (.wouldBlock, 0) }
                let count = min(buffer.count, Self.maximumUnsent - state.unsent, Self.longestSend)
                state.unsent += count
                state.sends += 1
                state.written += count
                return (.bytes(count), count)
            }
            guard count > 0 else { return result }
            let content = unsafe Data(buffer.prefix(count))
            connection.send(
                content: content,
                completion: .contentProcessed { [weak self] error in self?.sent(count, error) })
            return result
        }

        /// Network.framework does not report what the peer's TCP has acknowledged: 0 is the lower bound that is
        /// always right, so that a silent server is never taken for a living one.
        var progress: StreamProgress {
            state.withLock { StreamProgress(written: $0.written, acknowledged: 0, passedOn: $0.passedOn) }
        }

        /// Bytes that arrived and were not read.
        var unreadBytes: Int { state.withLock { $0.unread } }

        func failure(_ code: Int32) -> TransportError {
            state.withLock { $0.failure } ?? .lost(peerName, code)
        }

        // MARK: The connection's queue

        private func sent(_ count: Int, _ error: NWError?) {
            let (isRoom, isLast) = state.withLock { state in
                let couldWrite = state.canWrite
                state.unsent -= count
                state.sends -= 1
                if error == nil { state.passedOn += count }
                return (!couldWrite && state.canWrite, state.sends == 0)
            }
            if let error { return fail(error) }
            if isLast { lastSent.withLock { $0.take() }?.call() }
            if isRoom { notify() }
        }

        /// At most one receive is under way, for as many bytes as there is room for.
        private func receiveMore() {
            let room = state.withLock { state -> Int in
                let room = Self.maximumUnread - state.unread
                guard !state.isReceiving, !state.hasEnded, state.failure == nil, !state.isClosed, room > 0 else {
                    return 0
                }
                state.isReceiving = true
                return room
            }
            guard room > 0 else { return }
            connection.receive(minimumIncompleteLength: 1, maximumLength: room) {
                [weak self] data, _, isComplete, error in
                self?.received(data, isComplete, error)
            }
        }

        private func received(_ data: Data?, _ isComplete: Bool, _ error: NWError?) {
            state.withLock { state in
                state.isReceiving = false
                if let data, !data.isEmpty {
                    state.chunks.append(data)
                    state.unread += data.count
                    state.hasDelivered = true
                }
                if isComplete { state.hasEnded = true }
            }
            if let error { fail(error) } else { notify() }
            receiveMore()
        }

        /// A connection that is not viable neither sends nor receives, and reports nothing else: without this only keep
        /// alive would notice.
        private func viabilityChanged(_ isViable: Bool, _ grace: DispatchTimeInterval) {
            let number = state.withLock { state in
                state.viabilityChanges += 1
                return state.viabilityChanges
            }
            guard !isViable else { return }
            queue.asyncAfter(deadline: .now() + grace) { [weak self] in
                guard let self, state.withLock({ $0.viabilityChanges == number }) else { return }
                if let error = NWError.withoutPath { fail(error) }
            }
        }

        private func fail(_ error: NWError) {
            let isFirst = state.withLock { state in
                guard state.failure == nil, !state.isClosed else { return false }
                state.failure = describe(error, state.hasDelivered)
                return true
            }
            guard isFirst else { return }
            connection.cancel()
            lastSent.withLock { $0.take() }?.call()
            notify()
        }

        private func notify() {
            notifierOfOthers.withLock { $0 }?.notify()
        }

        /// The same as `notifier`, for the connection's queue.
        private let notifierOfOthers = Lock<StreamNotifier?>(nil)
        private struct Callback {
            let call: @Sendable () -> Void
        }
        private let lastSent = Lock<Callback?>(nil)

        var readiness: Readiness {
            state.withLock { state in
                var readiness: Readiness = []
                if state.canRead { readiness.insert(.read) }
                if state.canWrite { readiness.insert(.write) }
                return readiness
            }
        }
    }

    extension NetworkStream.State {
        /// Moves up to `buffer.count` bytes out.
        fileprivate mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            var count = 0
            var used = 0
            while count < buffer.count, used < chunks.count {
                let chunk = chunks[used]
                let part = min(chunk.count - offset, buffer.count - count)
                let start = chunk.startIndex + offset
                unsafe chunk.copyBytes(
                    to: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), from: start..<(start + part))
                count += part
                offset += part
                if offset == chunk.count {
                    used += 1
                    offset = 0
                }
            }
            chunks.removeFirst(used)
            unread -= count
            return count
        }
    }
#endif
