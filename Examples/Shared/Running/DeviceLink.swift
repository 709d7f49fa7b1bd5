package import Inspector
package import MessagingShell

/// What the devices need from a client, whichever protocol it speaks.
package protocol DeviceClient: Sendable {
    associatedtype Failure: ClientError
    associatedtype Record: DeviceFrame

    /// The server that is connected, or was tried last.
    var server: BrokerURL? { get }
    var states: Updates<ConnectionState<Failure>> { get }
    /// Connections so far, the present one included.
    var connectionCount: Int { get }
    func connect() async throws(Failure)
    func disconnect() async
    func inspect(showingSecrets: Bool) -> Updates<Record>
    func inspect(into log: FrameLog, as name: String?)
}

extension MessagingClient {
    package nonisolated var connectionCount: Int { counters.connections }
}

/// A frame or packet to be shown with `--frames`; its description is one line.
package protocol DeviceFrame: Sendable, CustomStringConvertible {
    var direction: FrameDirection { get }
}

/// One device and its connection: plays the device's values while there is one, reports its states, and decides which
/// failures are final.
package struct DeviceLink<Client: DeviceClient, Value: Sendable & CustomStringConvertible>: Sendable {
    package let client: Client
    package let post: Fleet.Post
    private let source: ReplaySource<Value>
    /// Paused while there is no connection.
    private let replay = Replay(clock: ContinuousClock())
    /// The number of the connection that messages may be sent over. What an earlier one left unconfirmed was sent first.
    private let prepared = Watched(0)
    /// What a shaken device sends again.
    private let last = Watched<Value?>(nil)
    private var meter: ProgressMeter { post.fleet.meter }
    package var isLive: Bool { source.isLive }

    package init(_ client: Client, _ source: ReplaySource<Value>, _ post: Fleet.Post) {
        self.client = client
        self.source = source
        self.post = post
        replay.pause()
    }

    // MARK: Running

    /// Connects, runs `body` and disconnects. When the program is to stop, `body` is cancelled and may still say good-bye.
    ///
    /// - Parameters:
    ///   - publish: Publishes what a visitor of the inspector typed; returns when the broker has confirmed it.
    ///   - reconnected: Called after each reconnect, before the replay continues.
    ///   - body: Called when the client has begun to connect, so that it accepts subscriptions.
    /// - Throws: What `body` throws, or a `DeviceFailure` when the client has stopped.
    package func run(
        publish: @escaping InspectorPage.Publish, reconnected: @escaping @Sendable () async -> Void = {},
        _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        if let log = post.fleet.frames { client.inspect(into: log, as: post.id) }
        if post.index == 0 { post.fleet.publisher?.use(publish) }
        let frames = post.fleet.options.showsFrames ? showFrames() : nil
        do {
            try await post.stop.untilStopped { try await connected(reconnected, body) }
        } catch {
            // How an operation fails that the user has stopped is not worth reporting.
            if !post.stop.isStopped {
                await finish(frames)
                throw error
            }
        }
        await finish(frames)
    }

    private func connected(
        _ reconnected: @escaping @Sendable () async -> Void, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        // Made before connecting, so that none is missed.
        let states = client.states
        let hasBegun = Watched(false)
        do {
            let watcher = { @Sendable () async throws in
                try await watch(states, hasBegun: { hasBegun.value = true }, reconnected: reconnected)
            }
            try await running(beside: [watcher]) {
                async let isConnected = connects()
                // The body subscribes before there is a connection, since a resumed session delivers at once.
                await hasBegun.wait { $0 }
                do {
                    try await body()
                } catch {
                    // The watcher, which counts the attempts, reports that the client has stopped.
                    if await !isConnected { try await Task.sleep(for: .seconds(1_000_000_000)) }
                    throw error
                }
            }
        } catch {
            await client.disconnect()
            throw error
        }
        await client.disconnect()
    }

    private func connects() async -> Bool {
        do throws(Client.Failure) {
            try await client.connect()
            return true
        } catch {
            return false
        }
    }

    /// Runs `work` and the others beside it until it returns. The first error of any ends all.
    package func running(
        beside others: [@Sendable () async throws -> Void], _ work: @escaping @Sendable () async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for other in others {
                group.addTask {
                    try await other()
                    return false
                }
            }
            group.addTask {
                try await work()
                return true
            }
            defer { group.cancelAll() }
            while let isWork = try await group.next(), !isWork {}
        }
    }

    /// Runs `goodBye` for two seconds at most, so that a broker that does not answer cannot delay the end.
    package func leave(_ goodBye: @escaping @Sendable () async -> Void) async {
        let (done, continuation) = AsyncStream.makeStream(of: Void.self)
        // Unstructured, because this task is already cancelled when the program is to stop.
        let leaving = Task {
            await goodBye()
            continuation.finish()
        }
        let limit = Task {
            try? await Task.sleep(for: .seconds(2))
            continuation.finish()
        }
        await Task { for await _ in done {} }.value
        leaving.cancel()
        limit.cancel()
    }

    /// Shows the frames from here on.
    private func showFrames() -> Task<Void, Never> {
        let frames = client.inspect(showingSecrets: false)
        return Task {
            var iterator = frames.makeAsyncIterator()
            var missedCount = 0
            while let frame = await iterator.next() {
                let count = iterator.missedCount
                if count > missedCount { post.say("… \(count - missedCount) frames came too fast to be shown", .faint) }
                missedCount = count
                post.console.frame(frame.direction, "\(frame)", prefix: post.prefix)
            }
        }
    }

    /// Shows the frames that still wait.
    private func finish(_ frames: Task<Void, Never>?) async {
        // A cancelled iterator ends after what it has.
        frames?.cancel()
        await frames?.value
    }

    // MARK: Sending

    /// Plays the device's recording, or what comes on standard input: each value goes out when it is due and there is a
    /// connection.
    ///
    /// - Parameters:
    ///   - interval: Of live values; the steps of a recording have theirs.
    ///   - isWanted: Called for each live value when it is read; false skips it.
    ///   - untilConfirmed: Called at the end.
    ///   - send: Sends a value; false if it was skipped.
    package func play(
        interval: Duration, isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        untilConfirmed: () async -> Void = {}, _ send: (Value) async throws -> Bool
    ) async throws {
        meter.begin(device: post.index, duration: source.duration, loops: source.loops)
        var pass = 0
        let ending = try await replay.play(source, interval: interval, isWanted: isWanted) { value, step in
            if let step, step.pass != pass {
                pass = step.pass
                post.announceRun(pass + 1)
            }
            last.value = value
            // A live value may have waited for its interval or for a connection since it was read.
            guard try await send(value) else { return }
            meter.sent(device: post.index, due: step?.due)
            post.showSent("\(value)")
        }
        await untilConfirmed()
        if ending == .atEnd { meter.ended(device: post.index) }
    }

    /// Sends the last value again.
    package func shake(_ send: (Value) async throws -> Bool) async throws {
        guard let last = last.value else {
            return post.say("shaken, but there is no \(ReplayProgress.singular(meter.unit)) yet to send again")
        }
        if try await send(last) { meter.sent(device: post.index, due: nil) }
        post.report("shaken: \(last)")
    }

    /// Runs `send` when there is a connection, and again if that is lost meanwhile.
    ///
    /// - Throws: `CancellationError`, or a `DeviceFailure` for a failure that another attempt cannot mend.
    package func send<Result>(_ send: () async throws(Client.Failure) -> Result) async throws -> Result {
        while true {
            await replay.untilResumed()
            try Task.checkCancellation()
            if prepared.value == client.connectionCount {
                do throws(Client.Failure) {
                    return try await send()
                } catch {
                    try Task.checkCancellation()
                    guard error.isLostConnection else { throw DeviceFailure(error) }
                }
            }
            // The watcher has not yet seen the loss, and is about to pause the replay.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Returns once there is a connection and what the last one left unconfirmed was sent over it.
    package func untilConnected() async {
        await replay.untilResumed()
    }

    // MARK: States

    /// - Parameters:
    ///   - hasBegun: Called when the client has begun to connect.
    ///   - reconnected: As in `run`.
    private func watch(
        _ states: Updates<ConnectionState<Client.Failure>>, hasBegun: () -> Void, reconnected: () async -> Void
    ) async throws {
        var connections = 0
        var isFirstAttempt = true
        // The number of the attempt that is made or waited for. It starts over with each connection that is lost; the
        // client's own number starts over only when a connection has held for some time.
        var attempt = 1
        var isConnected = false
        var lastReason = ""
        var silence: Task<Void, any Error>?
        defer { silence?.cancel() }
        for await state in states {
            silence?.cancel()
            switch state {
            case .connecting:
                pause()
                silence = Task {
                    try await Task.sleep(for: .seconds(3))
                    post.report("still waiting: \(client.server?.shown ?? post.fleet.name) has not answered yet")
                }
                hasBegun()
                // After a failure, its line has announced this attempt.
                if isFirstAttempt {
                    post.report("connecting to \(post.fleet.name)…")
                } else if lastReason.isEmpty {
                    post.report("connecting…")
                }
                isFirstAttempt = false
            case .connected:
                let connection = client.connectionCount
                connections += 1
                isConnected = true
                lastReason = ""
                meter.connection(of: post.index, isThere: true)
                let place = post.fleet.urls.count > 1 ? client.server.map { " to \($0.shown)" } ?? "" : ""
                post.report(
                    connections == 1 ? "connected\(place)" : "connected again\(place); the replay continues", .good)
                if connections > 1 {
                    meter.count { $0.reconnects += 1 }
                    await reconnected()
                }
                prepared.value = connection
                // Unless this one is lost already: then the state of the next one is on its way.
                if connection == client.connectionCount { replay.resume() }
            case .waiting(let delay, let failed, let failure):
                pause()
                let words = describe(failure, wasConnected: isConnected, connections: connections)
                if connections == 0, failure.code == .protocolError { throw words }
                attempt = connections == 0 ? failed + 1 : isConnected ? 1 : attempt + 1
                let most = connections == 0 ? post.fleet.options.reconnectPolicy.firstConnectAttempts : nil
                let count = most.map { "\(attempt) of \($0)" } ?? "\(attempt)"
                let tenths = DecimalText.fixed(max(0.1, Double(delay.wholeNanoseconds) / 1e9), places: 1)
                let reason = words.message == lastReason ? "the same again" : words.message
                post.report(
                    "\(reason); \(isConnected ? "the replay waits; " : "")trying again in \(tenths) s (attempt \(count))",
                    .bad)
                lastReason = words.message
                isConnected = false
            case .disconnected(let failure?):
                pause()
                var words = describe(failure, wasConnected: isConnected, connections: connections)
                if !isConnected, attempt > 1 { words.message = "gave up after \(attempt) attempts: \(words.message)" }
                throw words
            case .waitingForNetwork:
                post.report("this device has no network; trying again when it has one", .bad)
            case .disconnected(nil), .disconnecting, .suspended:
                pause()
            }
        }
    }

    /// Pauses the replay until there is a connection.
    private func pause() {
        replay.pause()
        meter.connection(of: post.index, isThere: false)
    }

    private func describe(_ failure: Client.Failure, wasConnected: Bool, connections: Int) -> DeviceFailure {
        var words = DeviceFailure(failure)
        // More follows in the same sentence.
        if words.message.hasSuffix(".") { words.message.removeLast() }
        if wasConnected {
            words.message = "connection lost: \(words.message)"
        } else {
            if connections == 0, failure.isLostConnection {
                words.status = .protocolError
                // Unless the error itself advises on the port.
                if !words.message.contains(" port") { words.message += "; check the port and the protocol" }
            }
            words.message =
                words.message.hasPrefix("Cannot ")
                ? "c" + words.message.dropFirst() : "cannot connect: \(words.message)"
        }
        return words
    }
}

extension ClientError {
    /// The connection is gone or not there; the client is opening another.
    fileprivate var isLostConnection: Bool {
        code == .connectionLost || code == .notConnected || code == .disconnected
    }
}

extension BrokerURL {
    /// The URL without user information.
    fileprivate var shown: String { "\(scheme.rawValue):\(scheme == .unix ? "" : "//")\(endpoint)" }
}
