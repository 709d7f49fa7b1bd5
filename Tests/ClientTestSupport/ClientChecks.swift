package import LoopbackBroker
package import MessagingShell
import Synchronization
import TestSupport
import Testing
package import Transport

/// What the clients of all protocols do in the same way. The tests of each client call these with a client of theirs.
package enum ClientChecks {
    // MARK: Observing

    /// Sequences that are made before a connection bring all of it, however late they are iterated.
    package static func earlySequences<Client: MessagingClient>(
        of client: Client, isConnected: @Sendable (Client.Event) -> Bool
    ) async throws {
        let states = client.states
        let events = client.events
        let records = client.inspect()
        try await client.connect()
        await client.disconnect()
        let seen = await states.prefix { if case .disconnecting = $0 { false } else { true } }.reduce(into: []) {
            $0.append($1)
        }
        #expect(seen.count == 3, "disconnected, connecting, connected")
        let hasConnected = await events.contains { isConnected($0) }
        #expect(hasConnected)
        let first = try #require(await records.first { _ in true })
        #expect("\(first)".hasPrefix("CONNECT"))
    }

    // MARK: Starting

    /// `connect()` reports that no descriptor is left for the event loop, and the client can be used later.
    package static func startWithoutDescriptor<Client: MessagingClient>(
        _ makeClient: (EventLoop) throws -> Client
    ) async throws where Client.Failure: ClientError {
        let failuresLeft = Atomic(1)
        let loop = EventLoop { () throws(TransportError) in
            guard failuresLeft.subtract(1, ordering: .relaxed).newValue < 0 else { throw noDescriptorForLoop(EMFILE) }
            return try SelectorKind.automatic.make()
        }
        defer { loop.stop() }
        let client = try makeClient(loop)
        let error = await #expect(throws: Client.Failure.self) { try await client.connect() }
        #expect(error?.code == .systemLimit)
        #expect((error?.underlying as? TransportError)?.code == .systemLimit)
        try await client.connect()
        await client.disconnect()
    }

    /// No call waits while no descriptor is left for the event loop, and what is begun later works.
    ///
    /// - Parameter calls: further calls, by name, that need the loop.
    package static func callsWithoutDescriptor<Client: MessagingClient>(
        _ calls: [(name: String, call: @Sendable (Client) async throws -> Void)],
        makeClient: (EventLoop) throws -> Client
    ) async throws where Client.Failure: ClientError {
        let isLeft = Atomic(false)
        let loop = EventLoop { () throws(TransportError) in
            guard isLeft.load(ordering: .relaxed) else { throw noDescriptorForLoop(EMFILE) }
            return try SelectorKind.automatic.make()
        }
        defer { loop.stop() }
        let client = try makeClient(loop)
        /// Returns what the call threw.
        func end(of name: String, _ call: @escaping @Sendable () async throws -> Void) async -> Client.Failure? {
            let result = Mutex<Result<Void, any Error>?>(nil)
            Task {
                let ended: Result<Void, any Error>
                do { ended = .success(try await call()) } catch { ended = .failure(error) }
                result.withLock { $0 = ended }
            }
            #expect(await eventually { result.withLock { $0 != nil } }, "\(name) waits for the loop")
            guard case .failure(let error) = result.withLock({ $0 }) else { return nil }
            return error as? Client.Failure
        }
        #expect(await end(of: "start()") { await client.start() } == nil)
        if case .disconnected(let failure?) = client.state {
            #expect(failure.code == .systemLimit)
        } else {
            Issue.record("\(client.state) after start()")
        }
        #expect(await end(of: "run()") { try await client.run() }?.code == .systemLimit)
        for (name, call) in calls {
            #expect(await end(of: name) { try await call(client) }?.code == .systemLimit, "\(name)")
        }
        #expect(await end(of: "suspend()") { await client.suspend() } == nil)
        #expect(await end(of: "disconnect()") { await client.disconnect() } == nil)
        isLeft.store(true, ordering: .relaxed)
        try await client.connect()
        await client.disconnect()
    }

    // MARK: Receiving

    /// Batches hold the messages that an iterator would bring, and continue where one was left.
    ///
    /// - Parameter send: sends a message of each of these texts to the subscription.
    package static func batches<Client: MessagingClient, Subscription: MessageSubscription>(
        of messages: Subscription, _ client: Client, send: ([String]) async throws -> Void
    ) async throws where Subscription.Storage.Message == Subscription.Element {
        let sent = (0..<2_000).map { "\($0)" }
        try await send(sent)
        let received = try await withTimeout(.patience, "the messages") {
            var texts: [String] = []
            for try await message in messages {
                texts.append(String(decoding: message.content, as: UTF8.self))
                if texts.count == 3 { break }
            }
            for try await batch in messages.batches {
                #expect(!batch.isEmpty)
                #expect(batch.count == batch.endIndex - batch.startIndex)
                for message in batch { texts.append(String(decoding: message.content, as: UTF8.self)) }
                if texts.count >= sent.count { break }
            }
            return texts
        }
        #expect(received == sent)
        await client.disconnect()
        for try await _ in messages.batches { Issue.record("a batch after the end") }
    }

    // MARK: Servers

    /// After a server that it was connected to fell silent, a client begins with another.
    ///
    /// - Parameter makeClient: gets the two brokers.
    package static func silentServer<Client: MessagingClient>(
        _ clock: ManualClock, makeClient: (LoopbackBroker, LoopbackBroker) throws -> Client
    ) async throws {
        let brokers = (try await LoopbackBroker.judged(clock: clock), try await LoopbackBroker.judged(clock: clock))
        let client = try makeClient(brokers.0, brokers.1)
        try await client.connect()
        // Long enough for a stable connection.
        await clock.advance(by: .seconds(100))
        #expect(brokers.0.statistics.connections == 1 && client.state.isConnected)
        await brokers.0.freeze()
        var tenths = 0
        while tenths < 800, client.state.isConnected {
            await clock.advance(by: .milliseconds(100))
            tenths += 1
        }
        #expect(!client.state.isConnected && tenths > 50)
        await clock.advance(by: .seconds(1))
        #expect(client.state.isConnected)
        #expect(brokers.0.statistics.connections == 1 && brokers.1.statistics.connections == 1)
        await client.disconnect()
        await brokers.0.stop()
        await brokers.1.stop()
    }

    // MARK: Sleep

    /// When the system wakes, a client keeps a connection that is alive, and leaves one that is dead.
    ///
    /// - Parameters:
    ///   - client: its `initialDelay` is an hour, without jitter.
    ///   - patience: how long the server is waited for.
    package static func sleep<Client: MessagingClient>(
        of client: Client, _ broker: LoopbackBroker, _ clock: ManualClock, patience: Duration
    ) async throws {
        try await client.connect()
        for seconds in [2, 60, 86_400] {
            await clock.letSystemSleep(for: .seconds(seconds))
            await clock.advance(by: patience + .seconds(20))
            #expect(client.state.isConnected && broker.statistics.connections == 1)
        }
        // The link breaks silently while the system sleeps.
        await broker.freeze()
        await clock.letSystemSleep(for: .seconds(3_600))
        await clock.advance(by: patience - .milliseconds(100))
        #expect(client.state.isConnected)
        await clock.advance(by: .milliseconds(200))
        #expect(!client.state.isConnected)
        await broker.thaw()
        await clock.advance(by: .seconds(10))
        #expect(client.state.isConnected)
        // The client waits, for longer than this test takes, while the system sleeps.
        broker.changeFaults { $0.refusesConnections = true }
        await broker.dropAllConnections()
        await clock.advance(by: .seconds(10))
        let attempts = broker.statistics.connections
        broker.changeFaults { $0.refusesConnections = false }
        await clock.advance(by: .seconds(60))
        #expect(!client.state.isConnected && broker.statistics.connections == attempts)
        await clock.letSystemSleep(for: .seconds(2))
        #expect(!client.state.isConnected && broker.statistics.connections == attempts)
        await clock.letSystemSleep(for: .seconds(30))
        #expect(client.state.isConnected)
        await client.disconnect()
        await broker.stop()
    }

    // MARK: Credentials

    /// A gateway that answers the WebSocket handshake with 401 or 403: a provider is asked once more at once, with
    /// `wereRefused` set, and the client does not stop.
    ///
    /// - Parameter makeClient: gets the port, the provider and a policy that makes two attempts.
    package static func refusedHandshakes<Client: MessagingClient>(
        _ makeClient: (
            _ port: Int, _ provider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?, ReconnectPolicy
        ) -> Client
    ) async throws where Client.Failure: ClientError {
        for (status, asked) in [
            ("401 Unauthorized", [false, true, true]), ("403 Forbidden", [false, true, true]),
            ("503 Busy", [false, false]), ("403 Forbidden", []),
        ] {
            let requests = Mutex<[Bool]>([])
            let streams = Mutex<[SocketStream]>([])
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
                streams.withLock { $0.append(stream) }
                // In front of the request, which the client does not mind.
                let answer = Array("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n".utf8)
                _ = answer.withUnsafeBytes { stream.write(from: $0) }
            }
            var policy = ReconnectPolicy()
            policy.firstConnectAttempts = 2
            policy.initialDelay = .milliseconds(1)
            let provider: @Sendable (CredentialsRequest) async throws -> Credentials? = { request in
                requests.withLock { $0.append(request.wereRefused) }
                return Credentials(userName: "ann", password: "token")
            }
            let client = makeClient(Int(listener.port), asked.isEmpty ? nil : provider, policy)
            let error = await #expect(throws: Client.Failure.self) { try await client.connect() }
            #expect(error?.code == .webSocketRefused && error?.message.contains(String(status.prefix(3))) == true)
            #expect(requests.withLock { $0 } == asked, "\(status)")
            #expect(streams.withLock { $0.count } == max(2, asked.count))
            await listener.close()
        }
    }

    // MARK: Options

    /// `serviceClass` marks the sockets of connections to a port of this machine.
    package static func serviceClass<Client: MessagingClient>(
        port: Int, _ makeClient: (ServiceClass) -> Client
    ) async throws {
        var marks: [[[Int32]]] = []
        for serviceClass in [ServiceClass.background, .standard, .responsive] {
            let client = makeClient(serviceClass)
            try await client.connect()
            marks.append(ServiceMarks.ofConnections(to: port))
            await client.disconnect()
        }
        #if os(Linux)
            #expect(marks == [[[2, 0x20]], [[0, 0]], [[6, 0x48]]])
        #else
            #expect(Set(marks).count == 3)
        #endif
    }

    /// Each option of `network` has the effect that this system allows, or makes connecting fail and is named.
    package static func network<Client: MessagingClient>(
        _ option: String, port: Int, _ makeClient: (NetworkOptions) -> Client
    ) async throws where Client.Failure: ClientError {
        /// Why it cannot connect, or nil; `ends` is where the connection leaves from.
        func failure(
            from ends: [String]? = nil, _ change: (inout NetworkOptions) -> Void
        ) async -> Client.Failure? {
            var options = NetworkOptions()
            change(&options)
            let client = makeClient(options)
            do throws(Client.Failure) {
                try await client.connect()
                #if os(Linux)
                    if let ends { #expect(ServiceMarks.localEnds(ofConnectionsTo: port) == ends) }
                #endif
                await client.disconnect()
                return nil
            } catch {
                return error
            }
        }
        func expectUnsupported(_ change: (inout NetworkOptions) -> Void) async {
            let error = await failure(change)
            #expect(error?.code == .unsupported)
            #expect(error?.message.contains(option) == true, "\(String(describing: error))")
        }
        #expect(await failure(from: ["127.0.0.1%"]) { _ in } == nil)
        switch option {
        case "interface":
            #expect(await failure(from: ["127.0.0.1%lo"]) { $0.interface = "lo" } == nil)
            let error = await failure { $0.interface = "nowhere0" }
            #expect(error?.code == .unreachable)
            #expect(error?.message.contains("nowhere0") == true)
            // The system would cut the name, and find "lo" for none.
            await expectUnsupported { $0.interface = "" }
            await expectUnsupported { $0.interface = "an-interface-with-a-long-name" }
        case "localAddress":
            #expect(await failure(from: ["127.0.0.9%"]) { $0.localAddress = "127.0.0.9" } == nil)
            // TEST-NET-1, which no device has.
            let error = await failure { $0.localAddress = "192.0.2.1" }
            #expect(error?.code == .unreachable)
            #expect(error?.message.contains("192.0.2.1") == true)
            #expect(await failure { $0.localAddress = "::1" }?.code == .unreachable)
            await expectUnsupported { $0.localAddress = "a name" }
        case "allowsExpensive": await expectUnsupported { $0.allowsExpensive = false }
        case "allowsConstrained": await expectUnsupported { $0.allowsConstrained = false }
        case "interfaceType": await expectUnsupported { $0.interfaceType = .wifi }
        case "prefersNoProxies":
            // Nothing to go around here; tests over fakes of Apple's frameworks show the effect.
            #expect(await failure { $0.prefersNoProxies = true } == nil)
        default: Issue.record("no check of \(option)")
        }
    }

    /// `threadQuality` chooses the thread, which clients with the same quality share.
    package static func threadQuality<Client: MessagingClient>(
        _ makeClient: (ServiceClass, _ port: Int) -> Client
    ) async {
        for quality in [ServiceClass.background, .standard, .responsive] {
            let client = makeClient(quality, 1)
            let isShared = client.loop === EventLoop.shared
            #expect(isShared == (quality == .standard))
            let other = makeClient(quality, 2)
            #expect(client.loop === other.loop)
            #if os(Linux)
                // Tests that were themselves started with `nice` have no thread without it.
                guard ServiceMarks.threadNiceness == 0 else { continue }
                let niceness = await client.withExecutor { ServiceMarks.threadNiceness }
                #expect(niceness == (quality == .background ? 10 : 0))
            #endif
        }
    }

    /// `threadCount` spreads clients over threads in turn; the first of them serves those that ask for one only.
    ///
    /// - Parameter makeClient: makes clients of a quality that no other test has.
    package static func threadCount<Client: MessagingClient>(_ makeClient: (_ count: Int) -> Client) {
        let single = makeClient(1)
        for count in [0, -1, Int.min] { #expect(makeClient(count).loop === single.loop) }
        let clients = (0..<6).map { _ in makeClient(3) }
        let loops = clients.map { ObjectIdentifier($0.loop) }
        #expect(Set(loops).count == 3)
        #expect(loops[..<3] == loops[3...])
        #expect(loops.contains(ObjectIdentifier(single.loop)))
        // Fewer are the first of the same threads.
        let fewer = Set((0..<4).map { _ in ObjectIdentifier(makeClient(2).loop) })
        #expect(fewer.count == 2 && fewer.isSubset(of: loops) && fewer.contains(ObjectIdentifier(single.loop)))
        // Clients with one number are spread, also when each is made between two with another number.
        let alternating = (0..<4).map { _ in (makeClient(2).loop, makeClient(3).loop) }
        #expect(Set(alternating.map { ObjectIdentifier($0.0) }).count == 2)
        #expect(Set(alternating.map { ObjectIdentifier($0.1) }).count == 3)
    }

    /// `usesNetworkMonitor` pauses attempts while the monitor reports that there is no network.
    ///
    /// - Parameter makeClient: gets the option's value, a policy with enough attempts, and a monitor without a network.
    package static func networkMonitor<Client: MessagingClient>(
        _ makeClient: (Bool, ReconnectPolicy, NetworkMonitor) -> Client
    ) async {
        for follows in [true, false] {
            let network = NetworkMonitor()
            network.update(NetworkMonitor.Path(isAvailable: false))
            var policy = ReconnectPolicy()
            policy.firstConnectAttempts = nil
            policy.initialDelay = .milliseconds(1)
            let client = makeClient(follows, policy, network)
            var states = client.states.makeAsyncIterator()
            let connecting = Task { try await client.connect() }
            var attempts = 0
            var isPaused = false
            while attempts < 3, !isPaused, let state = await states.next() {
                if case .connecting = state { attempts += 1 }
                if case .waitingForNetwork = state { isPaused = true }
            }
            #expect(isPaused == follows)
            await client.disconnect()
            _ = await connecting.result
        }
    }

    /// A server that takes nothing while a sender waits for room is reported, and so is the end of that.
    ///
    /// - Parameters:
    ///   - freeze: makes the server read nothing; `thaw` ends that.
    ///   - standstill: what an event says about a standstill.
    ///   - send: sends a payload. It is called on the loop, so that the clock knows when it waits.
    package static func standstill<Client: MessagingClient>(
        of client: Client, clock: ManualClock, freeze: () async -> Void, thaw: () async -> Void,
        standstill: @escaping @Sendable (Client.Event) -> Standstill?,
        send: @escaping @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        try await client.connect()
        var changes = client.events.compactMap(standstill).makeAsyncIterator()
        // More than the connection and the outbox have room for.
        let sendMore = {
            Task(executorPreference: clock.loop) {
                for _ in 0..<6 { try await send([UInt8](repeating: 7, count: 3 << 20)) }
            }
        }
        // A short wait is not reported.
        await freeze()
        let first = sendMore()
        await clock.advance(by: .seconds(4))
        await thaw()
        try await first.value
        await clock.advance(by: .seconds(10))
        await freeze()
        let second = sendMore()
        await clock.advance(by: .seconds(20))
        #expect(await changes.next() == .began)
        await thaw()
        try await second.value
        #expect(await changes.next() == .ended(after: 20_000_000_000))
        // So is the end of the wait.
        await freeze()
        let third = sendMore()
        await clock.advance(by: .seconds(20))
        #expect(await changes.next() == .began)
        third.cancel()
        await #expect(throws: (any Error).self) { try await third.value }
        await clock.advance(by: .seconds(10))
        #expect(await changes.next() == .ended(after: 20_000_000_000))
        await thaw()
        await client.disconnect()
    }

    /// A sender waits for room in the outbox, while the client reads nothing because of a full buffer: it learns why. Returns
    /// its error.
    ///
    /// - Parameters:
    ///   - client: reads nothing.
    ///   - requestTimeout: that of the client.
    ///   - send: sends a payload, see ``standstill(of:clock:freeze:thaw:standstill:send:)``.
    package static func fullOutbox(
        _ broker: LoopbackBroker, _ clock: ManualClock, requestTimeout: Duration,
        send: @escaping @Sendable ([UInt8]) async throws -> Void
    ) async throws -> (any Error)? {
        await broker.freeze()
        let sending = Task(executorPreference: clock.loop) {
            for _ in 0..<6 { try await send([UInt8](repeating: 7, count: 3 << 20)) }
        }
        // Twice: the system may have taken bytes shortly before the first time was over.
        for _ in 0..<2 { await clock.advance(by: requestTimeout) }
        let error = await #expect(throws: (any Error).self) { try await sending.value(within: .patience, "a sender") }
        await broker.thaw()
        return error
    }

    /// A way to servers on which every attempt fails.
    package static let noNetwork: StreamOpener.Override = { () throws(TransportError) in
        throw TransportError(.unreachable, "no network")
    }
}
