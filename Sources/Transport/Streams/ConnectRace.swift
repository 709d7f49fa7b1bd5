import MessagingWire

/// The attempts on all addresses of one endpoint; the first that succeeds wins, and the rest are dropped.
final class ConnectRace: LoopHandler, @unchecked Sendable {
    // Sendable because all but the constants is touched on the loop's thread only.
    private let endpoint: Endpoint
    let peerName: String
    private let overall: Int64
    private let serviceClass: ServiceClass
    private let network: NetworkOptions
    private let keepAlive: Int64
    /// Where attempts leave from, if the options say so; set at the start.
    private var localAddress: SocketAddress?
    typealias Outcome = Result<SocketStream, TransportError>

    /// The stream of the attempt that won.
    private(set) var winner: SocketStream?
    /// The winner's address, if the endpoint has others as well.
    private(set) var choice: AddressChoice?
    /// Why no attempt won, once the race is over.
    private var failure: TransportError?
    private var isOver: Bool { winner != nil || failure != nil }
    /// Ends when the race is over; nil as long as no caller waits for that.
    private var call: PendingCall<Outcome>?
    private var hasStarted = false
    /// The addresses that are still to be tried; the next is the last.
    private var waiting: [SocketAddress] = []
    /// Tried after the others.
    private let avoided: [SocketAddress]
    /// Those of them that are not tried at all.
    private let excluded: [SocketAddress]
    /// When avoided addresses are tried although others have not failed.
    private var avoidance = Int64.max
    private var attempts: [AddressAttempt] = []
    /// The failure that explains most, the last one of those that explain as much.
    private var lastFailure: TransportError?
    private var lastWeight = Weight.untried
    /// When the next address is tried although those before have not failed.
    private var nextAttempt = Int64.max

    private let resolver: Resolver
    /// Questions whose answers are to come.
    private var lookUps: [NameQuery.Family: Resolver.Ticket] = [:]
    /// Whether all of them are needed.
    private var isHurried = false
    private var lookUpFailure: TransportError?
    /// IPv4 addresses that wait a moment for those of IPv6, and until when.
    private var heldBack: [SocketAddress] = []
    private var startWithout = Int64.max

    /// How much a failure explains.
    private enum Weight: Int {
        /// Nothing was tried, because the options do not allow it.
        case untried
        /// The system knows no way to the address, and nothing left this machine.
        case unsent
        /// The address answered or did not answer in time, or the process lacks a descriptor.
        case tried
    }

    private static let attemptDelay: Int64 = 250_000_000
    private static let resolutionDelay: Int64 = 50_000_000
    private static let avoidanceDelay: Int64 = 2_000_000_000

    init(
        endpoint: Endpoint, peerName: String, serviceClass: ServiceClass, network: NetworkOptions, keepAlive: Int64,
        deadline: Int64, avoided: [SocketAddress], excluded: [SocketAddress],
        resolver: Resolver, loop: EventLoop
    ) {
        self.avoided = avoided
        self.excluded = excluded
        self.resolver = resolver
        self.serviceClass = serviceClass
        self.network = network
        self.keepAlive = keepAlive
        self.endpoint = endpoint
        self.peerName = peerName
        overall = deadline
        super.init(loop: loop)
    }

    /// Ends `call` when the race is over; on the loop's thread.
    func end(_ call: PendingCall<Outcome>) {
        if let winner {
            call.end(.success(winner))
        } else if let failure {
            call.end(.failure(failure))
        } else {
            self.call = call
        }
    }

    /// On the loop's thread.
    func cancel() {
        fail(TransportError(.cancelled, "Connecting to \(endpoint) was cancelled."))
    }

    // MARK: Addresses

    /// Starts the race unless it has started or was cancelled; on the loop's thread.
    func start() {
        guard !hasStarted, !isOver else { return }
        hasStarted = true
        avoidance = loop.now.advanced(byNanoseconds: Self.avoidanceDelay)
        do throws(TransportError) {
            if case .host = endpoint {
                try network.checkForSockets()
                localAddress = try network.localSocketAddress()
            }
            if let known = try endpoint.knownAddresses {
                waiting = Connector.order(known, avoiding: avoided).reversed()
                return startNext(at: loop.now)
            }
        } catch {
            return fail(error)
        }
        guard case .host(let name, let port) = endpoint else { return }
        arm()
        // IPv4 first: it is the one to have a thread if there is only one left.
        for family in [NameQuery.Family.ipv4, .ipv6] {
            lookUps[family] = resolver.start(NameQuery(name, family), isOptional: family == .ipv6) {
                [weak self] answer in
                guard let self else { return }
                loop.execute { self.resolved(family, answer.map { $0.map { $0.with(port: port) } }) }
            }
        }
    }

    private func resolved(_ family: NameQuery.Family, _ answer: NameQuery.Answer) {
        guard !isOver else { return }
        lookUps[family] = nil
        let now = loop.now
        switch answer {
        case .success(let addresses) where family == .ipv4 && lookUps[.ipv6] != nil:
            // IPv6 is preferred if it comes soon (RFC 8305 section 3).
            heldBack = addresses
            startWithout = now.advanced(byNanoseconds: Self.resolutionDelay)
            return arm()
        case .success(let addresses):
            // Addresses of the other family alternate with the remaining ones.
            let isStarted = !attempts.isEmpty
            let others = waiting.reversed() + heldBack
            waiting = Connector.order(addresses + others, avoiding: avoided).reversed()
            stopHolding()
            guard !isStarted || attempts.allSatisfy(\.isOver) else {
                nextAttempt = min(nextAttempt, now.advanced(byNanoseconds: Self.attemptDelay))
                return arm()
            }
        case .failure(let error):
            lookUpFailure = lookUpFailure ?? error
            if !heldBack.isEmpty {
                waiting = Connector.order(heldBack, avoiding: avoided).reversed()
                stopHolding()
            } else if !lookUps.isEmpty || !attempts.isEmpty {
                return finishIfNothingIsLeft()
            }
        }
        startNext(at: now)
    }

    private func stopHolding() {
        heldBack = []
        startWithout = .max
    }

    // MARK: Attempts

    private func startNext(at now: Int64) {
        guard !isOver else { return }
        while let address = waiting.last {
            if now < avoidance, avoided.contains(address), !lookUps.isEmpty || !attempts.allSatisfy(\.isOver) {
                nextAttempt = avoidance
                if attempts.allSatisfy(\.isOver) { hurry() }
                return arm()
            }
            waiting.removeLast()
            if excluded.contains(address) { continue }
            let attempt = AddressAttempt(address, race: self, loop: loop)
            attempts.append(attempt)
            if attempt.start() {
                if isOver { return }
                nextAttempt = now.advanced(byNanoseconds: Self.attemptDelay)
                return arm()
            }
            if isOver { return }
        }
        finishIfNothingIsLeft()
    }

    /// Fails if there is neither an attempt under way nor an address to come.
    private func finishIfNothingIsLeft() {
        guard attempts.allSatisfy(\.isOver), waiting.isEmpty, heldBack.isEmpty else { return arm() }
        // Where an address is excluded, the others are waited for only for as long as an avoided one is.
        guard lookUps.isEmpty || !excluded.isEmpty && loop.now >= avoidance else {
            hurry()
            return arm()
        }
        fail(lastFailure ?? lookUpFailure ?? timedOut)
    }

    /// The answers to come are needed: no address that is known, or none that is left, has helped.
    private func hurry() {
        isHurried = true
        for ticket in lookUps.values { resolver.hurry(ticket) }
    }

    /// The timer may just have fired for something else than what comes next.
    private func arm() {
        let awaitsAddresses = !lookUps.isEmpty && !isHurried
        let next = waiting.isEmpty && !awaitsAddresses ? Int64.max : nextAttempt
        loop.setDeadline(self, to: min(overall, min(next, startWithout)))
    }

    override func deadlineReached(at now: Int64) {
        if now >= overall {
            fail(timedOut)
        } else if now >= startWithout {
            waiting = Connector.order(heldBack, avoiding: avoided).reversed()
            stopHolding()
            startNext(at: now)
        } else if waiting.isEmpty {
            // The last address that is known has not answered.
            if now >= nextAttempt { hurry() }
            arm()
        } else {
            startNext(at: now)
        }
    }

    private var timedOut: TransportError {
        if case .host(let name, _) = endpoint, !lookUps.isEmpty, attempts.allSatisfy(\.isOver) {
            if let lastFailure { return lastFailure }
            let areQueued = lookUps.values.allSatisfy { resolver.isQueued($0) }
            return areQueued ? NameQuery.stuck(of: name) : NameQuery.late(of: name)
        }
        return TransportError(
            .timedOut, "\(endpoint) did not answer in time. Check the address, or allow more time to connect.")
    }

    func succeeded(_ stream: SocketStream, at address: SocketAddress) {
        guard !isOver else { return }
        winner = stream
        let others = attempts.filter { !$0.isOver }.map(\.address) + waiting + heldBack
        guard !others.isEmpty || !lookUps.isEmpty else { return finish() }
        choice = AddressChoice(address, others: others, mayHaveMore: !lookUps.isEmpty)
        finish()
    }

    func failed(_ code: Int32) {
        failedAtOnce(code)
        startNext(at: loop.now)
    }

    /// Sets up a socket that is not connected yet. Returns why the options cannot be honoured, or nil.
    func prepare(_ descriptor: Int32, family: Int32) -> TransportError? {
        guard family != AF_UNIX else { return nil }
        System.setServiceClass(descriptor, serviceClass)
        if keepAlive > 0 { System.keepAlive(descriptor, after: keepAlive) }
        #if !canImport(Darwin)
            // Apple's systems honour these options by Network.framework.
            if let name = network.interface {
                let code = System.setInterface(descriptor, to: name)
                if code != 0 { return network.failure(code, toBind: "interface", name) }
            }
            if let address = localAddress {
                let text = network.localAddress ?? ""
                guard address.family == family else {
                    return TransportError(
                        .unreachable,
                        "\(endpoint) has no address of the same family as \(text), from which connections have to leave. "
                            + "Check localAddress of the network options.")
                }
                let code = System.setLocalAddress(descriptor, to: address)
                if code != 0 { return network.failure(code, toBind: "localAddress", text) }
            }
        #endif
        return nil
    }

    /// Notes why an address could not be tried, without trying another.
    func failedAtOnce(_ failure: TransportError) {
        note(failure, .untried)
    }

    /// Notes why an attempt failed, without starting another.
    func failedAtOnce(_ code: Int32) {
        let words = System.describe(code)
        switch code {
        case ECONNREFUSED:
            note(
                TransportError(
                    .connectionRefused,
                    "\(endpoint) refused the connection. Check the address and the port, and that the server is running and listens on this address.",
                    errno: code), .tried)
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN:
            note(.unreachable("\(endpoint)", code), .unsent)
        case EADDRNOTAVAIL, EAFNOSUPPORT:
            note(TransportError(.unreachable, "Cannot connect to \(endpoint): \(words).", errno: code), .unsent)
        case ETIMEDOUT:
            note(timedOut, .tried)
        case _ where System.isShortage(code):
            note(.shortage("Cannot connect to \(endpoint)", code), .tried)
        default:
            note(TransportError(.unreachable, "Cannot connect to \(endpoint): \(words).", errno: code), .tried)
        }
    }

    private func note(_ failure: TransportError, _ weight: Weight) {
        // If no address could be tried, the failure of the first one counts.
        guard lastFailure == nil || weight != .untried && weight.rawValue >= lastWeight.rawValue else { return }
        (lastFailure, lastWeight) = (failure, weight)
    }

    private func fail(_ error: TransportError) {
        guard !isOver else { return }
        failure = error
        finish()
    }

    private func finish() {
        waiting.removeAll()
        for ticket in lookUps.values { resolver.cancel(ticket) }
        lookUps.removeAll()
        stopHolding()
        for attempt in attempts { attempt.abandon() }
        attempts.removeAll()
        loop.setDeadline(self, to: .max)
        if let call { end(call) }
    }
}

/// One non-blocking `connect(2)` under way.
final class AddressAttempt: LoopHandler, @unchecked Sendable {
    // Sendable because all is touched on the loop's thread only.
    let address: SocketAddress
    private let race: ConnectRace
    private var descriptor: Int32 = -1
    private(set) var isOver = false

    init(_ address: SocketAddress, race: ConnectRace, loop: EventLoop) {
        self.address = address
        self.race = race
        super.init(loop: loop)
    }

    /// Returns false when it failed at once; the race then continues with the next address.
    func start() -> Bool {
        descriptor = System.makeStreamSocket(family: address.family)
        let made = descriptor < 0 ? errno : 0
        if made == 0, let failure = race.prepare(descriptor, family: address.family) {
            close()
            race.failedAtOnce(failure)
            return false
        }
        let code = made != 0 ? made : begin()
        guard code != 0 else { return true }
        close()
        race.failedAtOnce(code)
        return false
    }

    /// Returns 0 when the connection is under way or established, or why not.
    private func begin() -> Int32 {
        let result = unsafe address.withPointer { unsafe connect(descriptor, $0, $1) }
        let code = result == 0 ? 0 : errno
        switch code {
        case 0, EINPROGRESS, EINTR:
            // Within one machine the server has accepted by now, and the loop need not wait for it.
            if code == 0 || System.isConnected(descriptor) { return succeed() }
            loop.register(self, descriptor: descriptor, interest: .write)
            return 0
        case EAGAIN where address.family == AF_UNIX:
            // The listener's queue is full, and nothing reports when it no longer is.
            loop.setDeadline(self, to: loop.now.advanced(byNanoseconds: 10_000_000))
            return 0
        default:
            return code
        }
    }

    override func deadlineReached(at now: Int64) {
        guard !isOver else { return }
        let code = begin()
        guard code != 0 else { return }
        close()
        race.failed(code)
    }

    override func ready(_ readiness: Readiness, at now: Int64) {
        guard !isOver else { return }
        var code = System.takeSocketError(descriptor)
        loop.unregister(self, descriptor: descriptor)
        if code == 0 { code = succeed() }
        guard code != 0 else { return }
        close()
        race.failed(code)
    }

    /// Hands the connection over, and returns 0, or why it is of no use.
    private func succeed() -> Int32 {
        if System.isConnectedToItself(descriptor, address) {
            // Otherwise the system would keep the port from the server for a minute.
            System.reset(descriptor)
            return ECONNREFUSED
        }
        isOver = true
        let isTCP = address.family == AF_INET || address.family == AF_INET6
        let stream = SocketStream(descriptor: descriptor, peerName: race.peerName, isTCP: isTCP)
        descriptor = -1
        race.succeeded(stream, at: address)
        return 0
    }

    func abandon() {
        guard !isOver else { return }
        loop.unregister(self, descriptor: descriptor)
        loop.setDeadline(self, to: .max)
        close()
    }

    private func close() {
        isOver = true
        if descriptor >= 0 { _ = closeDescriptor(descriptor) }
        descriptor = -1
    }
}
