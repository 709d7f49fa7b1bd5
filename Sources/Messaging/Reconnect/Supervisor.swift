package import Transport
import Wire

/// What a supervisor needs from the client that it keeps connected.
package protocol SupervisedClient: AnyObject, Sendable {
    associatedtype Failure: Error & Sendable

    /// Opens a stream to a server; called in a task of its own for each attempt.
    func openStream(_ attempt: ConnectionAttempt) async throws(Failure) -> OpenedStream
    /// Hands the stream to the link; on the loop's thread.
    func attach(_ opened: OpenedStream)
    /// Drops the connection without a word; on the loop's thread.
    func dropConnection()
    /// On the loop's thread.
    func stateChanged(to state: ConnectionState<Failure>)
    /// Whether trying again without a change by a person is pointless (refused credentials, another client took over).
    func isPermanent(_ failure: Failure) -> Bool
    /// Whether the next attempt may follow without a wait, because the client has changed something about it (another
    /// version, another server); called once for each failure, on the loop's thread, before anything else is asked.
    func retriesAtOnce(after failure: Failure) -> Bool
    /// Whether the server refused the credentials, and asking for others may help.
    func wantsFreshCredentials(after failure: Failure) -> Bool
    /// An attempt is about to begin; on the loop's thread.
    func willTry(_ attempt: ConnectionAttempt)
    /// It failed before the server had accepted; on the loop's thread.
    func attemptFailed(_ failure: Failure)
    /// The failure of everything that waits when the client is told to stop.
    var stopped: Failure { get }
    /// The peer ended the connection without a reason.
    var endedByPeer: Failure { get }
}

extension SupervisedClient {
    package func retriesAtOnce(after failure: Failure) -> Bool { false }
    package func willTry(_ attempt: ConnectionAttempt) {}
}

/// A stream and the layers between it and the engine.
package struct OpenedStream: Sendable {
    package let stream: any ByteStream
    package let layers: LayerStack?

    package init(stream: any ByteStream, layers: LayerStack? = nil) {
        self.stream = stream
        self.layers = layers
    }
}

/// Keeps a client connected: opens a stream, waits for the protocol to settle, and opens another after a loss.
///
/// With several servers the next one is tried as soon as one has failed; the wait comes when all have, and after a loss.
/// Between attempts there is no task, only an alarm on the loop. Everything runs on the loop's thread; the public
/// entry points post themselves there.
package final class Supervisor<Client: SupervisedClient>: @unchecked Sendable {
    // Sendable because all mutable fields are touched on the loop's thread only.
    private enum Phase {
        case idle, opening, settling, connected, waiting, stopping, suspended
    }

    private let loop: EventLoop
    private weak var client: Client?
    private var schedule: ReconnectSchedule
    /// Nanoseconds from the beginning of an attempt until the server has accepted.
    private let connectTimeout: Int64
    /// The credentials were refused and others asked for; once until a server accepts.
    private var askedForFresh = false
    private var phase = Phase.idle
    /// Stopping ends in `suspended`.
    private var suspends = false
    /// Tells answers of an attempt that was given up from those of the one under way.
    private var generation: UInt32 = 0
    private let servers: ServerTurns
    private var task: Task<Void, Never>?
    private var starts: [PendingCall<Result<Void, Client.Failure>>] = []
    private var stops: [PendingCall<Void>] = []
    /// There as long as it is set.
    private var alarm: LoopAlarm?
    private static var stopTimeout: Int64 { 3_000_000_000 }

    package init(policy: Shared<ReconnectPolicy>, servers: ServerTurns, connectTimeout: Int64, loop: EventLoop) {
        self.connectTimeout = connectTimeout
        schedule = ReconnectSchedule(policy)
        self.servers = servers
        self.loop = loop
    }

    /// Names the client; before anything else.
    package func supervise(_ client: Client) {
        self.client = client
    }

    // MARK: From any thread

    /// Starts to connect, if not already at it; returns with the first success or throws the final failure.
    ///
    /// A cancelled wait throws `cancelled`; nobody is left waiting for a first connection then, so nobody tries on.
    package func start(cancelled: Client.Failure) async throws(Client.Failure) {
        let call = PendingCall<Result<Void, Client.Failure>>()
        let result = await call.answer {
            loop.execute { self.startNow(call) }
        } onCancel: {
            loop.execute { self.cancel(call, cancelled) }
        }
        try result.get()
    }

    /// The network is back or better: a wait is cut short.
    package func networkChanged() {
        loop.execute {
            self.schedule.resetDelay()
            if self.phase == .waiting { self.open() }
        }
    }

    /// Ends supervision; `goodbye` lets the protocol end a live connection in order. Returns when it is over.
    package func stop(goodbye: @escaping @Sendable () -> Void) async {
        let call = PendingCall<Void>()
        loop.execute {
            self.suspends = false
            self.stopNow(call, goodbye: goodbye)
        }
        await call.answer()
    }

    /// Ends the connection and opens none until `resume` or `start`; everything that waits goes on waiting.
    package func suspend(goodbye: @escaping @Sendable () -> Void) async {
        let call = PendingCall<Void>()
        loop.execute {
            guard self.phase != .idle, self.phase != .suspended else {
                call.end(())
                return
            }
            if self.phase != .stopping { self.suspends = true }
            self.stopNow(call, goodbye: goodbye)
        }
        await call.answer()
    }

    /// Connects again after `suspend`.
    package func resume() {
        loop.execute {
            self.suspends = false
            if self.phase == .suspended { self.open() }
        }
    }

    // MARK: On the loop's thread

    /// Whether a connection is there or on its way.
    package var isActive: Bool { phase != .idle && (phase != .stopping || suspends) }
    package var isConnected: Bool { phase == .connected }
    /// Whether the connection has held for as long as the policy asks for.
    package func isStable(at now: Int64) -> Bool { schedule.isStable(at: now) }

    /// The protocol's own handshake succeeded.
    package func established(at now: Int64) {
        guard phase == .settling else { return }
        phase = .connected
        askedForFresh = false
        schedule.established(at: now)
        client?.stateChanged(to: .connected)
        resumeWaiters(.success(()))
    }

    /// The connection is gone, or the attempt failed.
    package func ended(_ failure: Client.Failure?, at now: Int64) {
        switch phase {
        case .idle, .waiting, .suspended: return
        case .stopping: return finish(nil)
        case .opening, .settling, .connected: break
        }
        guard let client else { return finish(nil) }
        let reason = failure ?? client.endedByPeer
        let wasConnected = phase == .connected
        generation &+= 1
        if !wasConnected { client.attemptFailed(reason) }
        if client.retriesAtOnce(after: reason) {
            schedule.retriesAtOnce(at: now)
            return open()
        }
        if !askedForFresh, client.wantsFreshCredentials(after: reason) {
            askedForFresh = true
            return open(credentialsWereRefused: true)
        }
        if client.isPermanent(reason) { return finish(reason) }
        if wasConnected {
            servers.lost(held: schedule.isStable(at: now))
        } else if servers.failed() {
            return open()
        }
        let attempt = schedule.attempt
        switch schedule.failed(at: now, random: Double.random(in: 0..<1)) {
        case .giveUp:
            finish(reason)
        case .retry(let delay):
            phase = .waiting
            setAlarm(now.advanced(byNanoseconds: delay))
            client.stateChanged(to: .waiting(.nanoseconds(delay), attempt: attempt, after: reason))
        }
    }

    private func cancel(_ call: PendingCall<Result<Void, Client.Failure>>, _ failure: Client.Failure) {
        // A task that is cancelled early gets here before it waits.
        call.end(.failure(failure))
        guard let index = starts.firstIndex(where: { $0 === call }) else { return }
        starts.remove(at: index)
        guard starts.isEmpty, isActive, phase != .connected, !schedule.everConnected else { return }
        generation &+= 1
        task?.cancel()
        task = nil
        if phase == .settling { client?.dropConnection() }
        finish(failure)
    }

    private func startNow(_ call: PendingCall<Result<Void, Client.Failure>>) {
        if call.isOver { return }
        switch phase {
        case .connected:
            call.end(.success(()))
        case .stopping:
            call.end(client.map { .failure($0.stopped) } ?? .success(()))
        case .opening, .settling, .waiting:
            starts.append(call)
        case .idle:
            starts.append(call)
            schedule = ReconnectSchedule(schedule.policy)
            servers.beginAnew()
            askedForFresh = false
            open()
        case .suspended:
            starts.append(call)
            open()
        }
    }

    private func open(credentialsWereRefused: Bool = false) {
        guard let client else { return finish(nil) }
        phase = .opening
        generation &+= 1
        let mine = generation
        let attempt = ConnectionAttempt(
            number: schedule.attempt, server: servers.current, credentialsWereRefused: credentialsWereRefused,
            deadline: MonotonicClock.now.advanced(byNanoseconds: connectTimeout))
        cancelAlarm()
        client.willTry(attempt)
        client.stateChanged(to: .connecting(attempt: attempt.number))
        task = Task { [self, weak client] in
            guard let client else { return }
            let result: Result<OpenedStream, Client.Failure>
            do throws(Client.Failure) {
                result = .success(try await client.openStream(attempt))
            } catch {
                result = .failure(error)
            }
            loop.execute { self.opened(result, generation: mine) }
        }
    }

    private func opened(_ result: Result<OpenedStream, Client.Failure>, generation mine: UInt32) {
        task = nil
        guard mine == generation, phase == .opening, let client else {
            if case .success(let opened) = result { opened.stream.close() }
            return
        }
        switch result {
        case .success(let opened):
            phase = .settling
            client.attach(opened)
        case .failure(let failure):
            ended(failure, at: MonotonicClock.now)
        }
    }

    private func setAlarm(_ deadline: Int64) {
        cancelAlarm()
        alarm = LoopAlarm(loop: loop) { [weak self] now in self?.alarmFired(at: now) }
        alarm?.set(deadline)
    }

    private func cancelAlarm() {
        alarm?.set(.max)
        alarm = nil
    }

    private func alarmFired(at now: Int64) {
        switch phase {
        case .waiting: open()
        case .stopping:
            client?.dropConnection()
            finish(nil)
        default: break
        }
    }

    private func stopNow(_ call: PendingCall<Void>, goodbye: () -> Void) {
        if phase == .idle {
            call.end(())
            return
        }
        stops.append(call)
        if phase == .suspended { return finish(nil) }
        guard phase != .stopping else { return }
        let wasConnected = phase == .connected
        let wasSettling = phase == .settling
        phase = .stopping
        generation &+= 1
        task?.cancel()
        task = nil
        client?.stateChanged(to: .disconnecting)
        if wasConnected {
            setAlarm(MonotonicClock.now.advanced(byNanoseconds: Self.stopTimeout))
            goodbye()
        } else {
            if wasSettling { client?.dropConnection() }
            finish(nil)
        }
    }

    private func finish(_ failure: Client.Failure?) {
        cancelAlarm()
        if suspends, phase == .stopping { return finishSuspending() }
        suspends = false
        phase = .idle
        client?.stateChanged(to: .disconnected(failure))
        if let reason = failure ?? client?.stopped {
            resumeWaiters(.failure(reason))
        }
        endStops()
    }

    private func finishSuspending() {
        suspends = false
        phase = .suspended
        client?.stateChanged(to: .suspended)
        endStops()
    }

    private func endStops() {
        let stopped = stops
        stops = []
        for call in stopped { call.end(()) }
    }

    private func resumeWaiters(_ result: Result<Void, Client.Failure>) {
        let started = starts
        starts = []
        for call in started { call.end(result) }
    }
}
