// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Dispatch
    import FoundationEssentials
    import Glibc
    import Synchronization

    /// A connection over a POSIX socket, with OpenSSL above it if the parameters ask for TLS.
    ///
    /// As documented, everything happens on a queue of its own; handlers and completions are called on the queue that
    /// `start(queue:)` was given, one after the other. A receive takes bytes from the socket only while one is
    /// outstanding; a send completes when the socket has taken all of it; what is outstanding completes with an error
    /// before `.failed` or `.cancelled` is reported.
    package final class FakeConnection: @unchecked Sendable {
        // Sendable because all but the handlers, which are locked, is touched on `own` only.
        typealias Received = @Sendable (Data?, Bool, NWError?) -> Void
        typealias Sent = @Sendable (NWError?) -> Void

        private struct Handlers {
            var state: (@Sendable (NWConnection.State) -> Void)?
            var viability: (@Sendable (Bool) -> Void)?
            var metadata: NWProtocolMetadata?
            var unsent = 0
        }
        private struct Receive {
            let minimum: Int
            let maximum: Int
            let completion: Received
        }
        private struct Send {
            var bytes: [UInt8]
            var written = 0
            var isEncoded = false
            /// Whether its time on a slow link is over; nil before that has begun.
            var mayLeave: Bool?
            let count: Int
            let isFinal: Bool
            let completion: Sent

            /// When its turn has come.
            mutating func encode(_ tls: FakeTLS) {
                isEncoded = true
                bytes = bytes.isEmpty ? [] : tls.write(bytes)
                if isFinal { bytes += tls.close() }
            }
        }

        private let endpoint: NWEndpoint
        private let parameters: NWParameters
        private let own = DispatchQueue(label: "fake-network")
        private let handlers = Mutex(Handlers())
        private var queue: DispatchQueue?
        private var state = NWConnection.State.setup
        private var descriptor: Int32 = -1
        private var isReading = false
        private var isWriting = false
        private var isConnecting = false
        private var tunnel: FakeTunnel?
        private var tls: FakeTLS?
        private var receives: [Receive] = []
        private var sends: [Send] = []
        private var handshake: [UInt8] = []
        private var unread: [UInt8] = []
        private var hasEnded = false
        private var hasFinished = false

        init(_ endpoint: NWEndpoint, _ parameters: NWParameters) {
            self.endpoint = endpoint
            self.parameters = parameters
        }

        var stateHandler: (@Sendable (NWConnection.State) -> Void)? {
            get { handlers.withLock { $0.state } }
            set { handlers.withLock { $0.state = newValue } }
        }
        var viabilityHandler: (@Sendable (Bool) -> Void)? {
            get { handlers.withLock { $0.viability } }
            set { handlers.withLock { $0.viability = newValue } }
        }
        var metadata: NWProtocolMetadata? { handlers.withLock { $0.metadata } }

        private var port: UInt16 { if case .hostPort(_, let port) = endpoint { port.rawValue } else { 0 } }

        // MARK: From any thread

        func start(_ queue: DispatchQueue) {
            FakeNetwork.count { [parameters, port] in
                $0.connections += 1
                $0.parameters[port] = parameters
            }
            own.async {
                guard self.state == .setup else { return }
                self.queue = queue
                self.prepare()
            }
        }

        func cancel() {
            own.async {
                guard self.state != .cancelled else { return }
                FakeNetwork.count { $0.cancelled += 1 }
                self.end(POSIXErrorCode(rawValue: ECANCELED).map { .posix($0) })
                self.move(to: .cancelled)
                self.handlers.withLock { $0.state = nil }
            }
        }

        func receive(_ minimum: Int, _ maximum: Int, _ completion: @escaping Received) {
            own.async {
                self.receives.append(Receive(minimum: minimum, maximum: maximum, completion: completion))
                self.readMore()
            }
        }

        func send(_ content: Data?, isFinal: Bool, _ completion: @escaping Sent) {
            let count = content?.count ?? 0
            let unsent = handlers.withLock { handlers in
                handlers.unsent += count
                return handlers.unsent
            }
            FakeNetwork.count { $0.mostUnsentBytes = max($0.mostUnsentBytes, unsent) }
            own.async {
                let bytes = content.map { [UInt8]($0) } ?? []
                self.sends.append(Send(bytes: bytes, count: count, isFinal: isFinal, completion: completion))
                self.writeMore()
            }
        }

        // MARK: Opening

        private func prepare() {
            guard FakeNetwork.path.status == .satisfied else {
                FakeNetwork.whenPathReturns { self.own.async { self.prepareAgain() } }
                return wait(.posix(POSIXErrorCode(rawValue: ENETDOWN)!))
            }
            move(to: .preparing)
            let proxy = parameters.privacyContext?.proxyConfigurations.first
            switch FakeAddress.connect(to: proxy?.endpoint ?? endpoint) {
            case .failure(let error): return wait(error)
            case .success(let descriptor): self.descriptor = descriptor
            }
            if let proxy { tunnel = FakeTunnel(proxy, to: endpoint) }
            if let tls = parameters.tls {
                self.tls = FakeTLS(tls.securityProtocolOptions as! FakeProtocolOptions, port: port)
            }
            isConnecting = true
            resumeWriter()
        }

        private func prepareAgain() {
            guard case .waiting = state else { return }
            prepare()
        }

        /// Waits for what is wanted now.
        private func watch() {
            guard descriptor >= 0 else { return }
            let events = (isReading ? POLLIN : 0) | (isWriting ? POLLOUT : 0)
            let token = ObjectIdentifier(self).hashValue
            guard events != 0 else { return FakePoller.shared.unwatch(token) }
            FakePoller.shared.watch(token, descriptor, events, on: own) { self.ready() }
        }

        private func ready() {
            guard descriptor >= 0 else { return }
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
            _ = Glibc.poll(&poll, 1, 0)
            if isWriting, Int32(poll.revents) & (POLLOUT | POLLERR | POLLHUP) != 0 { writable() }
            if isReading, Int32(poll.revents) & (POLLIN | POLLERR | POLLHUP) != 0 { readable() }
            watch()
        }

        private func connected() {
            isConnecting = false
            let code = FakeAddress.error(of: descriptor)
            guard code == 0 else { return fail(posix(code)) }
            if let greeting = tunnel?.begin() {
                handshake = greeting
                flushHandshake()
                resumeReader()
            } else {
                beginTLS()
            }
        }

        private func beginTLS() {
            guard tls != nil else { return becomeReady() }
            continueTLS()
        }

        private func continueTLS() {
            guard let tls else { return }
            let step = tls.handshake()
            handshake += tls.takeOutput()
            flushHandshake()
            switch step {
            case .wantsInput: resumeReader()
            case .done:
                handlers.withLock { $0.metadata = tls.metadata() }
                becomeReady()
                if state == .ready { decrypt() }
            case .failed(let status): fail(.tls(status))
            }
        }

        private func becomeReady() {
            move(to: .ready)
            setViable(true)
            FakeNetwork.setViabilityHandler(of: ObjectIdentifier(self)) { [weak self] isViable in
                guard let self else { return }
                own.async { self.setViable(isViable) }
            }
            writeMore()
            readMore()
        }

        private func setViable(_ isViable: Bool) {
            let viability = viabilityHandler
            queue?.async { viability?(isViable) }
        }

        // MARK: Reading

        private func readMore() {
            deliver()
            if state == .ready, !receives.isEmpty, !hasEnded { resumeReader() }
        }

        /// Returns whether anything came.
        @discardableResult private func readable() -> Bool {
            let isOpening = state == .preparing
            guard isOpening || !receives.isEmpty else {
                pauseReader()
                return false
            }
            var buffer = [UInt8](repeating: 0, count: 64 * 1024)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 {
                if errno != EAGAIN, errno != EINTR { fail(posix(errno)) }
            } else if count == 0 {
                ended()
            } else {
                received(Array(buffer[..<count]), isOpening: isOpening)
            }
            return count > 0
        }

        private func received(_ bytes: [UInt8], isOpening: Bool) {
            var bytes = bytes
            if let tunnel, !tunnel.isOpen {
                switch tunnel.receive(bytes) {
                case .failure(let error): return fail(error)
                case .success(let answer):
                    handshake += answer.reply
                    flushHandshake()
                    guard tunnel.isOpen else { return }
                    bytes = answer.rest
                    if bytes.isEmpty { return beginTLS() }
                }
            }
            guard let tls else {
                unread += bytes
                if isOpening { becomeReady() }
                return deliver()
            }
            tls.feed(bytes)
            if isOpening { continueTLS() } else { decrypt() }
        }

        private func decrypt() {
            guard let tls else { return }
            let step = tls.read(into: &unread)
            handshake += tls.takeOutput()
            flushHandshake()
            switch step {
            case .wantsInput: break
            case .done: hasEnded = true
            case .failed(let status):
                deliver()
                return fail(.tls(status))
            }
            deliver()
        }

        private func ended() {
            pauseReader()
            if state == .preparing {
                return fail(tunnel?.isOpen == false || tls == nil ? posix(ECONNRESET) : .tls(errSSLClosedAbort))
            }
            if tls != nil, !hasEnded { return fail(.tls(errSSLClosedNoNotify)) }
            hasEnded = true
            deliver()
        }

        private func deliver() {
            while let receive = receives.first, hasEnded || unread.count >= max(1, receive.minimum) {
                let count = min(receive.maximum, unread.count)
                let data = count > 0 ? Data(unread[..<count]) : nil
                unread.removeFirst(count)
                let isComplete = hasEnded && unread.isEmpty
                receives.removeFirst()
                queue?.async { receive.completion(data, isComplete, nil) }
            }
            if receives.isEmpty { pauseReader() }
        }

        // MARK: Writing

        private func writeMore() {
            guard state == .ready else {
                if case .failed(let error) = state { failSends(error) }
                return
            }
            while handshake.isEmpty, !sends.isEmpty {
                if hasFinished { return failSends(posix(EPIPE)) }
                guard mayLeave() else { return }
                if let tls, !sends[0].isEncoded { sends[0].encode(tls) }
                while sends[0].written < sends[0].bytes.count {
                    let count = transmit(sends[0].bytes[sends[0].written...])
                    guard count >= 0 else { return resumeWriter() }
                    sends[0].written += count
                }
                let send = sends.removeFirst()
                if send.isFinal {
                    hasFinished = true
                    shutdown(descriptor, Int32(SHUT_WR))
                }
                complete(send, nil)
            }
        }

        /// Whether the first send may leave; called again when it may.
        private func mayLeave() -> Bool {
            if let mayLeave = sends[0].mayLeave { return mayLeave }
            guard let speed = FakeNetwork.faults.bytesPerSecond[port], sends[0].count > 0 else {
                sends[0].mayLeave = true
                return true
            }
            sends[0].mayLeave = false
            own.asyncAfter(deadline: .now() + .microseconds(sends[0].count * 1_000_000 / speed)) {
                guard !self.sends.isEmpty else { return }
                self.sends[0].mayLeave = true
                self.writeMore()
            }
            return false
        }

        private func transmit(_ bytes: ArraySlice<UInt8>) -> Int {
            let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno != EAGAIN, errno != EINTR {
                let code = errno
                own.async {
                    // What came before a reset is read first, such as the alert that says why.
                    while self.state == .preparing || self.state == .ready, !self.hasEnded, self.readable() {}
                    self.fail(self.posix(code))
                }
            }
            return count
        }

        private func flushHandshake() {
            while !handshake.isEmpty {
                let count = transmit(handshake[...])
                guard count > 0 else { return resumeWriter() }
                handshake.removeFirst(count)
            }
        }

        private func writable() {
            if isConnecting {
                pauseWriter()
                return connected()
            }
            flushHandshake()
            guard handshake.isEmpty else { return }
            pauseWriter()
            writeMore()
        }

        // MARK: Ending

        private func complete(_ send: Send, _ error: NWError?) {
            handlers.withLock { $0.unsent -= send.count }
            queue?.async { send.completion(error) }
        }

        private func failSends(_ error: NWError) {
            let failed = sends
            sends = []
            for send in failed { complete(send, error) }
        }

        private func fail(_ error: NWError) {
            guard state == .preparing || state == .ready else { return }
            let isOpening = state == .preparing
            end(error)
            if case .posix = error, isOpening { return move(to: .waiting(error)) }
            if isOpening, FakeNetwork.faults.reportsTLSFailuresAsWaiting { return move(to: .waiting(error)) }
            move(to: .failed(error))
        }

        private func wait(_ error: NWError) {
            move(to: .waiting(error))
        }

        private func end(_ error: NWError?) {
            FakeNetwork.setViabilityHandler(of: ObjectIdentifier(self), nil)
            (isReading, isWriting) = (false, false)
            watch()
            if descriptor >= 0 { close(descriptor) }
            descriptor = -1
            let waiting = receives
            receives = []
            for receive in waiting { queue?.async { receive.completion(nil, false, error) } }
            if let error { failSends(error) }
        }

        private func move(to state: NWConnection.State) {
            self.state = state
            let handler = stateHandler
            queue?.async { handler?(state) }
        }

        private func posix(_ code: Int32) -> NWError { .posix(POSIXErrorCode(rawValue: code)!) }

        private func resumeReader() {
            isReading = true
            watch()
        }
        private func pauseReader() {
            isReading = false
            watch()
        }
        private func resumeWriter() {
            isWriting = true
            watch()
        }
        private func pauseWriter() {
            isWriting = false
            watch()
        }
    }
#endif
