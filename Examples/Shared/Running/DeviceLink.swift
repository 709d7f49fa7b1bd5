import Messaging

/// One device's connection: reports its states, pauses the replay while it is lost, and decides which failures are final.
package struct DeviceLink<Client: DeviceClient>: Sendable {
    package let client: Client
    package let post: Fleet.Post
    package let tally = Tally()
    /// Paused while there is no connection.
    package let replay = Replay(clock: ContinuousClock())
    /// The number of the connection that messages may be sent over. What an earlier one left unconfirmed was sent first.
    private let prepared = Latest<Int>()

    package init(_ client: Client, _ post: Fleet.Post) {
        self.client = client
        self.post = post
        replay.pause()
    }

    /// Connects, runs `body` and disconnects. When the program is to stop, `body` is cancelled and may still say good-bye.
    ///
    /// - Parameter reconnected: Called after each reconnect, before the replay continues.
    /// - Throws: What `body` throws, or a `DeviceFailure` when the client has stopped.
    package func run(
        reconnected: @escaping @Sendable () async -> Void = {}, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        if let log = post.fleet.frames { client.inspect(into: log, as: post.id) }
        if post.index == 0 {
            post.fleet.publisher?.use { [client] in try await client.publishForVisitor($1, to: $0) }
        }
        let frames = await showFrames()
        do {
            try await post.stop.untilStopped { try await connected(reconnected, body) }
            await frames?.finish()
        } catch {
            await frames?.finish()
            // How an operation fails that the user has stopped is not worth reporting.
            guard post.stop.isStopped else { throw error }
        }
    }

    private func connected(
        _ reconnected: @escaping @Sendable () async -> Void, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let result: Result<Void, any Error>
        do {
            let (connecting, isConnecting) = AsyncStream.makeStream(of: Void.self)
            let (watching, isWatching) = AsyncStream.makeStream(of: Void.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await watch(
                        isWatching: isWatching.finish, isConnecting: isConnecting.finish, reconnected: reconnected)
                }
                group.addTask {
                    for await _ in watching {}
                    async let isConnected = connects()
                    // The body subscribes before there is a connection, since a resumed session delivers at once.
                    for await _ in connecting {}
                    do {
                        try await body()
                    } catch {
                        // The watcher, which counts the attempts, reports that the client has stopped.
                        guard await isConnected else { return await untilCancelled() }
                        throw error
                    }
                    throw Finished()
                }
                defer { group.cancelAll() }
                // Unlike `waitForAll`, this ends with the first error.
                while try await group.next() != nil {}
            }
            result = .success(())
        } catch is Finished {
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await client.disconnect()
        try result.get()
    }

    private func showFrames() async -> Onlooker? {
        guard post.fleet.options.showsFrames else { return nil }
        let printer = FramePrinter(console: post.console, prefix: post.prefix)
        return await Onlooker.start(client.inspect(showingSecrets: false)) { count in
            post.say("… \(count) frames came too fast to be shown", .faint)
        } show: { frame in
            printer.show(frame.direction, "\(frame)")
        }
    }

    private func connects() async -> Bool {
        do throws(Client.Failure) {
            try await client.connect()
            return true
        } catch {
            return false
        }
    }

    /// Returns once there is a connection and `reconnected` has returned.
    package func untilConnected() async {
        await replay.time.untilResumed()
    }

    private func untilCancelled() async {
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
    }

    // MARK: States

    /// - Parameters:
    ///   - isWatching: Called when no state can be missed.
    ///   - isConnecting: Called when the client has begun to connect, so that it accepts subscriptions.
    ///   - reconnected: As in `run`.
    private func watch(
        isWatching: () -> Void, isConnecting: () -> Void, reconnected: () async -> Void
    ) async throws {
        var states = client.states.makeAsyncIterator()
        isWatching()
        var connections = 0
        var hasBegun = false
        // The number of the attempt that is made or waited for. It starts over with each connection that is lost; the
        // client's own number starts over only when a connection has held for some time.
        var attempt = 1
        var isConnected = false
        var lastReason = ""
        var silence: Task<Void, any Error>?
        defer { silence?.cancel() }
        while let state = await states.next() {
            silence?.cancel()
            switch state {
            case .connecting:
                pause()
                silence = Task {
                    try await Task.sleep(for: .seconds(3))
                    post.report("still waiting: \(client.server?.shown ?? post.fleet.name) has not answered yet")
                }
                isConnecting()
                // After a failure, its line has announced this attempt.
                if !hasBegun {
                    post.report("connecting to \(post.fleet.name)…")
                } else if lastReason.isEmpty {
                    post.report("connecting…")
                }
                hasBegun = true
            case .connected:
                let connection = client.connectionCount
                connections += 1
                isConnected = true
                lastReason = ""
                post.fleet.meter.connection(of: post.index, isThere: true)
                let place = post.fleet.urls.count > 1 ? client.server.map { " to \($0.shown)" } ?? "" : ""
                post.report(
                    connections == 1 ? "connected\(place)" : "connected again\(place); the replay continues", .good)
                if connections > 1 {
                    tally.add { $0.reconnects += 1 }
                    await reconnected()
                }
                prepared.value = connection
                // Unless this one is lost already: then the state of the next one is on its way.
                if connection == client.connectionCount { replay.resume() }
            case .waiting(let delay, let failed, let failure):
                pause()
                let words = describe(failure, wasConnected: isConnected, connections: connections)
                if connections == 0, Client.kind(failure) == .protocolError { throw words }
                attempt = connections == 0 ? failed + 1 : isConnected ? 1 : attempt + 1
                let most = connections == 0 ? post.fleet.options.reconnectPolicy.firstConnectAttempts : nil
                let count = most.map { "\(attempt) of \($0)" } ?? "\(attempt)"
                let wait = "trying again in \(tenths(delay)) s (attempt \(count))"
                let reason = words.message == lastReason ? "the same again" : words.message
                post.report(reason + "; " + (isConnected ? "the replay waits; " : "") + wait, .bad)
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
        post.fleet.meter.connection(of: post.index, isThere: false)
    }

    private func describe(_ failure: Client.Failure, wasConnected: Bool, connections: Int) -> DeviceFailure {
        var words = Client.final(failure)
        // More follows in the same sentence.
        if words.message.hasSuffix(".") { words.message.removeLast() }
        if wasConnected {
            words.message = "connection lost: \(words.message)"
        } else {
            if connections == 0, Client.kind(failure) == .lost {
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

    private func tenths(_ delay: Duration) -> String {
        DecimalText.fixed(max(0.1, Double(delay.wholeNanoseconds) / 1e9), places: 1)
    }

    // MARK: Sending

    /// Runs `send` when there is a connection, and again if that is lost meanwhile.
    ///
    /// - Throws: `CancellationError`, or a `DeviceFailure` for a failure that another attempt cannot mend.
    package func send(_ send: () async throws(Client.Failure) -> Void) async throws {
        while true {
            await replay.time.untilResumed()
            try Task.checkCancellation()
            guard prepared.value == client.connectionCount else {
                // The watcher is about to pause the replay.
                try await Task.sleep(for: .milliseconds(20))
                continue
            }
            do throws(Client.Failure) {
                return try await send()
            } catch {
                try Task.checkCancellation()
                guard Client.kind(error) == .lost else { throw Client.final(error) }
                // The watcher has not yet seen the loss, and is about to pause the replay.
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}

extension BrokerURL {
    /// The URL without user information.
    fileprivate var shown: String { "\(scheme.rawValue):\(scheme == .unix ? "" : "//")\(endpoint)" }
}

/// The body of a device has returned.
private struct Finished: Error {}

extension DeviceLink {
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
}

/// Shows the elements of a sequence of updates, from before something starts until after it has ended.
struct Onlooker: Sendable {
    private let task: Task<Void, Never>

    /// Returns once every later element will be shown. `missed` receives the number of those that came too fast.
    static func start<Element: Sendable>(
        _ updates: Updates<Element>, missed: @escaping @Sendable (Int) -> Void,
        show: @escaping @Sendable (Element) -> Void
    ) async -> Onlooker {
        let (starting, hasStarted) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var iterator = updates.makeAsyncIterator()
            hasStarted.finish()
            var missedCount = 0
            while let element = await iterator.next() {
                let count = iterator.missedCount
                if count > missedCount { missed(count - missedCount) }
                missedCount = count
                show(element)
            }
        }
        for await _ in starting {}
        return Onlooker(task: task)
    }

    /// Shows what is still waiting, and ends.
    func finish() async {
        // A cancelled iterator ends after what it has.
        task.cancel()
        await task.value
    }
}
