package import MessagingWire
import Synchronization
package import Transport

/// Keeps a client connected: opens a stream, waits for the handshake of the protocol, and opens another after a loss.
///
/// With several servers, or several addresses of one, the next is tried shortly after one has failed; the client waits
/// after all have failed, and after a connection is lost. Between attempts there is no task, only an alarm on the loop;
/// while a monitor reports that there is no network, it is set to the policy's longest delay. Everything runs on the
/// loop's thread; what the user calls posts itself there.
package final class Supervisor<Client: SupervisedClient>: @unchecked Sendable {
    // Sendable because all mutable fields are touched on the loop's thread only.
    private enum Phase {
        case idle, opening, handshaking, connected, waiting, offline, stopping, suspended
    }

    /// What follows when the connection that is being closed is closed.
    private enum Ending {
        case disconnected, suspended
        /// Suspended, and connected again at once: the user resumed in the meantime.
        case resumed
        /// Connected again at once, to another server for example.
        case moved
    }

    private let loop: EventLoop
    let opener: StreamOpener
    private weak var client: Client?
    private var schedule: ReconnectSchedule
    /// Nanoseconds from the beginning of an attempt until the server has accepted.
    private let connectTimeout: Int64
    /// When the attempt that is being made began.
    private var attemptBegan = Int64.min
    /// When it times out; on the loop's thread.
    package private(set) var attemptDeadline = Int64.max
    /// The last server that has refused credentials since a server has accepted: it was asked again, with others.
    private var refusingServer: Int?
    // Small fields are next to each other, because every idle client has them.
    private var phase = Phase.idle
    /// Whether each server and address of this round is given the whole `connectTimeout`, because the round before it was
    /// hurried.
    private var isPatient = false
    /// Whether the client gave up a server or address of this round before `connectTimeout` was over.
    private var roundWasHurried = false
    /// Whether the attempt that is being made began while the monitor reported no network; its failure does not count.
    private var triesWithoutNetwork = false
    /// What stopping leads to.
    private var ending = Ending.disconnected
    /// Whether the client leaves its server for another one, until that connection has ended; from any thread.
    let isMoving = Atomic(false)
    /// Nil if the client does not follow the network.
    let network: NetworkMonitor?
    /// From `start` to the end of supervision.
    private var observation: NetworkMonitor.Observation?
    /// The streams that are being opened: that of the attempt and, behind it, that of a hint which came meanwhile. The first
    /// that opens wins.
    private var openings: [Opening] = []
    private var openingCount: UInt32 = 0
    /// Connections that the client has left, and whose end has not been reported yet.
    private var abandonedCount: UInt32 = 0
    /// Nil for a single server.
    private let servers: ServerRounds<Client.Failure>?
    private var callers = SupervisorCallers()
    /// Exists only while it is set.
    private var alarm: LoopAlarm?
    private static var stopTimeout: Int64 { 3_000_000_000 }
    /// How long an attempt counts as one of the present network: a monitor reports one change several times.
    private static var freshness: Int64 { 1_000_000_000 }

    private struct Opening {
        let number: UInt32
        let deadline: Int64
        let task: Task<Void, Never>
    }

    private typealias Call = SupervisorCallers.Call

    /// - Parameters:
    ///   - connectTimeout: nanoseconds from the beginning of an attempt until the server has accepted.
    ///   - network: what the servers are reached through; nil if attempts do not depend on it.
    package init(
        policy: Shared<ReconnectPolicy>, opener: StreamOpener, serverOrder: ServerOrder, connectTimeout: Int64,
        network: NetworkMonitor? = nil, loop: EventLoop
    ) {
        self.opener = opener
        self.network = network
        self.connectTimeout = connectTimeout
        schedule = ReconnectSchedule(policy)
        let count = opener.serverCount
        servers = count > 1 ? ServerRounds(count: count, order: serverOrder.decided(on: loop)) : nil
        self.loop = loop
    }

    deinit {
        // Otherwise the loop would hold the alarm until the connection had reached its age.
        if let alarm { loop.execute { alarm.set(.max) } }
    }

    /// Sets the client; called before anything else.
    package func supervise(_ client: Client) {
        self.client = client
    }

    // MARK: From any thread

    /// Call this before waiting for the loop: otherwise the call would wait until the loop has a descriptor and a
    /// thread.
    package func startLoop() throws(Client.Failure) {
        do throws(TransportError) { try loop.start() } catch { throw Client.notStarted(error) }
    }

    /// Starts to connect unless that has happened already; returns with the first success or throws the final failure.
    ///
    /// A cancelled caller gets `cancelled`. If no other caller waits for the first connection, connecting stops.
    ///
    /// - Parameter moves: whether an open connection ends gracefully first, and a wait at once.
    package func connect(cancelled: Client.Failure, moves: Bool = false) async throws(Client.Failure) {
        try startLoop()
        let call = Call()
        let failure = await call.answer {
            loop.execute {
                if moves { self.reconnectNow(call) } else { self.connectNow(call) }
            }
        } onCancel: {
            loop.execute { self.cancel(call, cancelled) }
        }
        try Self.check(failure)
    }

    /// Keeps the client connected from now on: its first connection is tried like one that was lost. Returns when the
    /// client tries to be connected: at once, or when a disconnect that is under way is done.
    package func start() async {
        do throws(Client.Failure) {
            try startLoop()
        } catch {
            client?.couldNotStart(error)
            return
        }
        let begun = PendingCall<Void>()
        loop.execute { self.startNow(begun, run: nil) }
        await begun.answer()
    }

    /// Starts, and returns when supervision has ended or the caller is cancelled.
    ///
    /// - Throws: the failure because of which the client stopped connecting; nothing after a disconnect.
    package func run() async throws(Client.Failure) {
        try startLoop()
        let call = Call()
        let failure = await call.answer {
            loop.execute { self.startNow(PendingCall(), run: call) }
        } onCancel: {
            call.end(nil)
        }
        try Self.check(failure)
    }

    /// The cast cannot trap: only this type ends its callers' waits, and each failure that it gives them is declared as
    /// `Client.Failure` where it comes from.
    private static func check(_ failure: (any Error)?) throws(Client.Failure) {
        if let failure { throw failure as! Client.Failure }
    }

    /// Ends supervision, and returns when the connection is closed.
    ///
    /// - Parameter goodbye: writes the protocol's farewell; nil for the client's usual one.
    package func stop(goodbye: (@Sendable () -> Void)? = nil) async {
        // A loop that could not start has begun nothing.
        guard (try? startLoop()) != nil else { return }
        let call = PendingCall<Void>()
        loop.execute { self.stopNow(call, leadingTo: .disconnected, goodbye) }
        await call.answer()
    }

    /// Ends the connection and opens none until `resume`, `connect` or `start`; pending operations stay pending.
    package func suspend() async {
        guard (try? startLoop()) != nil else { return }
        let call = PendingCall<Void>()
        loop.execute { self.stopNow(call, leadingTo: .suspended) }
        await call.answer()
    }

    /// Connects again after `suspend`, or as soon as a `suspend` that is under way is done.
    package func resume() {
        loop.execute {
            if self.phase == .suspended { self.open() }
            if self.phase == .stopping, self.ending == .suspended { self.ending = .resumed }
        }
    }

    /// The network has improved or changed: a client that waits connects now, one that is opening a connection for a second
    /// or more opens another beside it, and one that is connected checks that.
    package func networkChanged() {
        loop.execute { self.openNow() }
    }

    // MARK: On the loop's thread

    /// Whether there is a connection, or one is being opened or waited for.
    package var isActive: Bool { phase != .idle && (phase != .stopping || ending != .disconnected) }
    package var isConnected: Bool { phase == .connected }
    /// Whether the client has not been started, or has stopped and its connection is closed.
    package var isIdle: Bool { phase == .idle }
    /// Whether the connection has lasted for as long as the policy asks for.
    package func isStable(at now: Int64) -> Bool { schedule.isStable(at: now) }

    /// Why the last attempt failed or the last connection ended; nil while the client is connected.
    package private(set) var lastFailure: Shared<Client.Failure>?

    /// The protocol's own handshake succeeded.
    package func established(at now: Int64) {
        guard phase == .handshaking else { return }
        phase = .connected
        lastFailure = nil
        triesWithoutNetwork = false
        refusingServer = nil
        schedule.established(at: now)
        endRound()
        isPatient = false
        opener.serverAnswered()
        if let limit = schedule.ageLimit(random: randomFraction()) { setAlarm(now.advanced(byNanoseconds: limit)) }
        client?.stateChanged(to: .connected)
        callers.connected()
    }

    /// The connection is closed, or the attempt failed.
    package func ended(_ failure: Client.Failure, for cause: ConnectionEndCause = .other, at now: Int64) {
        // An abandoned attempt ended, not the present one.
        if abandonedCount > 0 {
            abandonedCount -= 1
            return
        }
        switch phase {
        case .idle, .waiting, .offline, .suspended: return
        case .stopping: return finish(nil)
        case .opening, .handshaking, .connected: break
        }
        guard let client else { return finish(nil) }
        if let before = lastFailure?.value, opener.foundNoOtherAddress {
            // The server's own failure was judged when it came.
            return attemptFailed(before, at: now)
        }
        lastFailure = Shared(failure)
        let wasConnected = phase == .connected
        if wasConnected { schedule.ends(for: cause) } else { client.attemptFailed(failure) }
        switch client.verdict(on: failure) {
        case .retryNow:
            client.willRetry(after: failure)
            schedule.retriesAtOnce(at: now)
            open(continues: true)
        case .askForCredentials where refusingServer != currentServer,
            .askForCredentialsOrWait where refusingServer != currentServer:
            refusingServer = currentServer
            open(continues: true)
        case .askForCredentials, .giveUp: finish(failure)
        case .giveUpServer where servers == nil: finish(failure)
        case .wait where wasConnected: lost(failure, leavesServer: false, at: now)
        case .leaveServer where wasConnected, .giveUpServer where wasConnected:
            lost(failure, leavesServer: cause != .refusedRequest, at: now)
        case .wait, .leaveServer, .askForCredentialsOrWait, .giveUpServer: attemptFailed(failure, at: now)
        }
    }

    /// A connection was lost: waits before the first attempt of a new round.
    ///
    /// - Parameter leavesServer: whether the round begins with another server or address, if there is one.
    private func lost(_ failure: Client.Failure, leavesServer: Bool, at now: Int64) {
        let leaves = leavesServer || !schedule.isStable(at: now)
        let isFailover = beginRound(leaves ? .last : .first)
        wait(after: failure, isFailover: isFailover, at: now)
    }

    /// Begins a round in which the server and address of the connection before come at this place. Returns whether the round
    /// begins with another server or address.
    @discardableResult
    private func beginRound(_ place: ServerRounds<Client.Failure>.Place) -> Bool {
        let server = servers?.current
        servers?.beginRound(place)
        // Before `endRound`, which forgets what was tried.
        let hasOtherAddress = place == .last && opener.addressFailed()
        if place == .any { opener.forgetFailedAddresses() }
        endRound()
        return servers?.current != server || hasOtherAddress
    }

    /// An attempt failed: tries the next address or server of the round, or waits before the next round.
    private func attemptFailed(_ failure: Client.Failure, at now: Int64) {
        if loop.lastSleep.upperBound > attemptBegan, isLong(loop.lastSleep) {
            // The time passed while the system slept. That says nothing about the server.
            return open(continues: true)
        }
        var failure = failure
        if now >= opener.patienceEnd { roundWasHurried = true }
        if opener.addressFailed() { return failOver(at: now) }
        if let servers {
            guard let all = servers.failed(failure) else { return failOver(at: now) }
            guard let client else { return finish(nil) }
            failure = client.failure(ofAll: all)
            if all.allSatisfy({ client.verdict(on: $0.failure) == .giveUpServer }) { return finish(failure) }
        }
        isPatient = roundWasHurried
        endRound()
        wait(after: failure, isFailover: false, at: now)
    }

    private func endRound() {
        roundWasHurried = false
        opener.roundEnded()
    }

    /// Continues the round after `failoverDelay`. That is part of the attempt, and the state does not change.
    private func failOver(at now: Int64) {
        let delay = schedule.failoverDelay
        guard delay > 0 else { return open() }
        phase = .waiting
        setAlarm(now.advanced(byNanoseconds: delay))
    }

    /// Waits for as long as the schedule demands.
    private func wait(after failure: Client.Failure, isFailover: Bool, at now: Int64) {
        if triesWithoutNetwork, network?.isAvailable == false { return waitForNetwork() }
        let attempt = schedule.endedAttempt(at: now)
        switch schedule.failed(at: now, isFailover: isFailover, random: randomFraction()) {
        case .giveUp:
            finish(schedule.keepsTrying ? failure : Client.firstFailure(failure))
        case .retry(let delay):
            phase = .waiting
            setAlarm(now.advanced(byNanoseconds: delay))
            client?.stateChanged(to: .waiting(.nanoseconds(delay), attempt: attempt, after: failure))
            pauseWithoutNetwork()
        }
    }

    private func randomFraction() -> Double {
        var random = loop.random
        return Double.random(in: 0..<1, using: &random)
    }

    private func cancel(_ call: Call, _ failure: Client.Failure) {
        // A task that is cancelled early comes here before it waits.
        call.end(failure)
        guard callers.removeConnect(call), isActive, phase != .connected, !schedule.keepsTrying else { return }
        cancelOpenings()
        if phase == .handshaking { abandonConnection() }
        finish(failure)
    }

    private func connectNow(_ call: Call) {
        if call.isOver { return }
        switch phase {
        case .connected where client?.isEnding == true:
            // Otherwise a caller that has just failed to send would connect and fail in turns until the end is reported.
            callers.addConnect(call)
        case .connected:
            call.end(nil)
        case .stopping where ending == .disconnected:
            call.end(Client.stopped)
        case .stopping:
            callers.addConnect(call)
            if ending == .suspended { ending = .resumed }
        case .opening, .handshaking, .waiting, .offline, .idle, .suspended:
            callers.addConnect(call)
            begin()
        }
    }

    private func reconnectNow(_ call: Call) {
        if call.isOver { return }
        switch phase {
        case .connected where client?.isEnding != true:
            callers.addConnect(call)
            move(.last)
        case .waiting, .offline:
            callers.addConnect(call)
            openNow()
        default: connectNow(call)
        }
    }

    private func startNow(_ begun: PendingCall<Void>, run: Call?) {
        if run?.isOver == true { return }
        if phase == .stopping { return callers.addRestart(begun, run: run) }
        if let run { callers.addRun(run) }
        begin()
        schedule.keepTrying()
        begun.end(())
    }

    /// Opens a connection unless there is one, or one is being opened or waited for.
    private func begin() {
        switch phase {
        case .idle:
            followNetwork()
            schedule = ReconnectSchedule(schedule.policy)
            servers?.begin()
            refusingServer = nil
            triesWithoutNetwork = false
            isPatient = false
            endRound()
            open()
        case .suspended:
            triesWithoutNetwork = false
            open()
        case .opening, .handshaking, .waiting, .offline, .connected, .stopping:
            break
        }
    }

    private var currentServer: Int { servers?.current ?? 0 }

    /// - Parameter continues: as ``ConnectionAttempt/continuesLast``.
    private func open(continues: Bool = false) {
        guard let client else { return finish(nil) }
        phase = .opening
        cancelOpenings()
        cancelAlarm()
        beginOpening(client, continues: continues)
    }

    /// The network has changed while a stream is being opened, perhaps on the former network: opens another one beside it. Of
    /// two, the younger gives way, so that hints that come often do not keep the client from connecting.
    private func openBeside() {
        guard let client, let last = openings.last,
            loop.now.advanced(byNanoseconds: connectTimeout - Self.freshness) >= last.deadline
        else { return }
        if openings.count > 1 { openings.removeLast().task.cancel() }
        beginOpening(client, continues: true)
    }

    private func beginOpening(_ client: Client, continues: Bool) {
        openingCount &+= 1
        let mine = openingCount
        let attempt = ConnectionAttempt(
            number: schedule.attempt, server: currentServer, credentialsWereRefused: refusingServer == currentServer,
            deadline: loop.now.advanced(byNanoseconds: connectTimeout), isPatient: isPatient,
            continuesLast: continues)
        attemptDeadline = attempt.deadline
        if openings.isEmpty { attemptBegan = loop.now }
        client.prepare(attempt)
        if openings.isEmpty { client.stateChanged(to: .connecting(attempt: attempt.number)) }
        loop.beginWork()
        // On the loop's thread, since most steps of an attempt wait for the loop: a switch of threads for each of them
        // would cost more than the attempt. What may block runs elsewhere.
        let task = loop.startTask(preferring: loop) { [self, weak client] in
            await loop.asWork {
                guard let client else { return loop.executeNow { self.loop.endWork() } }
                let result: Result<OpenedStream, Client.Failure>
                do throws(Client.Failure) {
                    result = .success(try await client.openStream(attempt))
                } catch {
                    result = .failure(error)
                }
                loop.executeNow { self.opened(result, mine) }
            }
        }
        openings.append(Opening(number: mine, deadline: attempt.deadline, task: task))
    }

    private func opened(_ result: Result<OpenedStream, Client.Failure>, _ number: UInt32) {
        loop.endWork()
        guard let client, let place = openings.firstIndex(where: { $0.number == number }) else {
            if case .success(let opened) = result { opened.stream.close() }
            return
        }
        assert(phase == .opening)
        let opening = openings.remove(at: place)
        switch result {
        case .success(let opened):
            // The other one sends no CONNECT.
            cancelOpenings()
            phase = .handshaking
            attemptDeadline = min(opening.deadline, opener.patienceEnd)
            client.attach(opened)
        case .failure(let failure):
            // The other one may still succeed.
            guard let other = openings.first else { return ended(failure, at: loop.now) }
            attemptDeadline = other.deadline
        }
    }

    /// What is being opened is of no use any more.
    private func cancelOpenings() {
        for opening in openings { opening.task.cancel() }
        openings = []
    }

    private func setAlarm(_ deadline: Int64) {
        cancelAlarm()
        // The client, because weak references to it exist anyway: the first to the supervisor would take memory for good.
        var slept: (@Sendable (Int64, Int64) -> Void)?
        if phase == .waiting || phase == .offline {
            slept = { [weak client] start, now in client?.supervisor.systemSlept(since: start, at: now) }
        }
        alarm = LoopAlarm(loop: loop, slept: slept) { [weak client] in client?.supervisor.alarmFired(at: $0) }
        alarm?.set(deadline)
    }

    private func cancelAlarm() {
        alarm?.set(.max)
        alarm = nil
    }

    private func alarmFired(at now: Int64) {
        switch phase {
        case .waiting:
            open()
        case .offline:
            triesWithoutNetwork = true
            open()
        case .stopping:
            abandonConnection()
            finish(nil)
        // A connection that is failing is reported as lost.
        case .connected where client?.isEnding != true: move(.any)
        default: break
        }
    }

    // MARK: Leaving

    /// Ends the connection, or the attempt to open one. The last call while the connection closes decides what follows.
    private func stopNow(_ call: PendingCall<Void>, leadingTo next: Ending, _ goodbye: (() -> Void)? = nil) {
        let goodbye = goodbye ?? { self.client?.sayGoodbye() }
        // Nothing to suspend, or nothing to end.
        if phase == .idle || phase == .suspended && next == .suspended {
            _ = call.end(())
            return
        }
        callers.addStop(call)
        if phase == .suspended { return finish(nil) }
        if phase == .stopping {
            // Suspending does not undo a disconnect.
            if ending != .disconnected {
                // Before the farewell, with which the connection may end.
                ending = next
                // Another server does not follow.
                isMoving.store(false, ordering: .relaxed)
                // Disconnect gracefully, as far as that has not begun.
                if next == .disconnected { goodbye() }
            }
            return callers.cancelRestarts()
        }
        let wasConnected = phase == .connected
        let wasHandshaking = phase == .handshaking
        phase = .stopping
        ending = next
        cancelOpenings()
        client?.stateChanged(to: .disconnecting)
        if wasConnected {
            setAlarm(loop.now.advanced(byNanoseconds: Self.stopTimeout))
            goodbye()
        } else {
            if wasHandshaking { abandonConnection() }
            finish(nil)
        }
    }

    private func finish(_ failure: Client.Failure?) {
        cancelAlarm()
        if phase == .stopping, ending != .disconnected { return finishSuspending() }
        observation = nil
        phase = .idle
        client?.stateChanged(to: .disconnected(failure))
        callers.ended(failure, stopped: Client.stopped)
        closed()
    }

    private func finishSuspending() {
        let opens = ending != .suspended
        phase = .suspended
        if ending == .moved { schedule.retriesAtOnce(at: loop.now) } else { client?.stateChanged(to: .suspended) }
        closed()
        if opens, phase == .suspended { open() }
    }

    private func closed() {
        for (begun, run) in callers.closed() { startNow(begun, run: run) }
    }

    /// Ends the connection gracefully to open another one.
    ///
    /// - Parameter place: where its server, and its address, come among those that are tried next.
    private func move(_ place: ServerRounds<Client.Failure>.Place) {
        isMoving.store(true, ordering: .relaxed)
        client?.willMove(after: schedule.age(at: loop.now))
        beginRound(place)
        stopNow(PendingCall(), leadingTo: .moved)
    }

    /// Ends the attempt that is being made, and supervision.
    private func stop(because failure: Client.Failure) {
        lastFailure = Shared(failure)
        cancelOpenings()
        finish(failure)
    }

    /// Closes a connection whose end, which is reported soon, says nothing about a later attempt.
    private func abandonConnection() {
        abandonedCount += 1
        client?.dropConnection()
    }

    /// Stops connecting for a reason that is not a connection's. Has no effect on a connection, which has to be closed with
    /// that reason.
    package func stopTrying(_ failure: Client.Failure) {
        switch phase {
        case .opening, .waiting, .offline, .suspended: stop(because: failure)
        case .stopping where ending != .disconnected:
            ending = .disconnected
            abandonConnection()
            stop(because: failure)
        case .idle, .handshaking, .connected, .stopping: break
        }
    }

    // MARK: The network

    /// Observes the network until the end of supervision.
    private func followNetwork() {
        guard let network, observation == nil else { return }
        observation = network.observe { [weak self] in
            guard let self else { return }
            loop.execute { self.networkMoved() }
        }
    }

    private func networkMoved() {
        guard observation != nil, let network else { return }
        if network.isAvailable { openNow() } else { pauseWithoutNetwork() }
    }

    /// Waits for a network, and not for the next attempt, if the device has no network.
    private func pauseWithoutNetwork() {
        guard phase == .waiting, let network, !network.isAvailable else { return }
        waitForNetwork()
    }

    /// Waits until the network improves, or for the longest delay of the policy: a monitor knows the default path alone,
    /// and may report no network where a server can be reached, over a Wi-Fi without a router for example.
    private func waitForNetwork() {
        phase = .offline
        setAlarm(loop.now.advanced(byNanoseconds: schedule.longestDelay))
        client?.stateChanged(to: .waitingForNetwork)
    }

    /// The system slept during a wait, and after a long sleep the network may be another.
    private func systemSlept(since start: Int64, at now: Int64) {
        if isLong(start..<now), network?.isAvailable != false { openNow() }
    }

    private func isLong(_ sleep: Range<Int64>) -> Bool { sleep.upperBound - sleep.lowerBound >= .longSleep }

    /// Ends a wait, because the network has improved. A connection stays if it has outlived the change.
    private func openNow() {
        schedule.resetDelay()
        triesWithoutNetwork = false
        switch phase {
        case .waiting, .offline: open()
        case .opening: openBeside()
        case .connected: client?.checkConnection()
        case .idle, .handshaking, .stopping, .suspended: break
        }
    }
}
