import Synchronization
import Wire

/// Looks names up on threads of its own, since that blocks: never on a cooperative thread or a loop's.
///
/// Equal questions share one look-up. Each look-up has a thread, up to `maximumThreads`, so that names whose server is
/// silent hold up no others; beyond that they queue. While all threads are stuck, a query fails at once. A query whose
/// callers have all cancelled leaves the queue; one that a thread has started cannot be stopped.
package final class Resolver: Sendable {
    /// Names a caller's interest in an answer, for `cancel`.
    package typealias Ticket = UInt64
    package typealias Receiver = @Sendable (NameQuery.Answer) -> Void

    package static let shared = Resolver()

    private struct LookUp {
        var receivers: [(ticket: Ticket, receive: Receiver)] = []
        /// When its thread began; nil in the queue.
        var start: Int64?
        /// Whether it leaves most of the threads to others.
        var isOptional: Bool
    }

    private struct State {
        var lookUps: [NameQuery: LookUp] = [:]
        /// Those without a thread, oldest first.
        var queue: [NameQuery] = []
        var queries: [Ticket: NameQuery] = [:]
        var lastTicket: Ticket = 0
        var threads = 0
    }

    private let state = Lock(State())
    private let maximumThreads: Int
    private let ask: @Sendable (NameQuery) -> NameQuery.Answer

    private let patience: Int64

    /// - Parameters:
    ///   - patience: nanoseconds after which a thread that waits for an answer counts as stuck.
    ///   - ask: looks one name up and may block; the system's way unless a test has another.
    package init(
        maximumThreads: Int = 16, patience: Int64 = 1_000_000_000,
        ask: @escaping @Sendable (NameQuery) -> NameQuery.Answer = { $0.lookUp() }
    ) {
        self.patience = patience
        self.maximumThreads = max(2, maximumThreads)
        self.ask = ask
    }

    /// Asks; `receive` is called once, on any thread, unless the question is cancelled before.
    ///
    /// - Parameter isOptional: whether the caller may do without an answer. The question then waits while a quarter of
    ///   the threads is busy, until `hurry` is called.
    @discardableResult
    package func start(_ query: NameQuery, isOptional: Bool = false, _ receive: @escaping Receiver) -> Ticket {
        let now = MonotonicClock.now
        let (ticket, step, stuck) = state.withLock { state in
            state.lastTicket += 1
            let ticket = state.lastTicket
            let step = add(query, isOptional, ticket, receive, at: now, &state)
            // What queues then would wait for nothing.
            let stuck = step == .refuse ? takeQueue(&state) : []
            return (ticket, step, stuck)
        }
        switch step {
        case .wait: break
        case .run: runThread(query)
        case .refuse: receive(.failure(NameQuery.stuck(of: query.name, maximumThreads)))
        }
        for (query, receivers) in stuck {
            for receive in receivers { receive(.failure(NameQuery.stuck(of: query.name, maximumThreads))) }
        }
        return ticket
    }

    /// Cancels: the receiver will not be called, unless that has begun.
    package func cancel(_ ticket: Ticket) {
        state.withLock { state in
            guard let query = state.queries.removeValue(forKey: ticket) else { return }
            state.lookUps[query]?.receivers.removeAll { $0.ticket == ticket }
            guard let lookUp = state.lookUps[query], lookUp.start == nil, lookUp.receivers.isEmpty else { return }
            state.lookUps[query] = nil
            state.queue.removeAll { $0 == query }
        }
    }

    /// The answer is needed after all.
    package func hurry(_ ticket: Ticket) {
        let started = state.withLock { state -> NameQuery? in
            guard let query = state.queries[ticket], state.lookUps[query]?.isOptional == true else { return nil }
            state.lookUps[query]?.isOptional = false
            guard state.lookUps[query]?.start == nil, hasThread(isOptional: false, state) else { return nil }
            state.queue.removeAll { $0 == query }
            state.threads += 1
            state.lookUps[query]?.start = MonotonicClock.now
            return query
        }
        if let started { runThread(started) }
    }

    /// How many questions wait for a thread.
    package var queuedCount: Int { state.withLock { $0.queue.count } }

    private enum Step { case wait, run, refuse }

    private func add(
        _ query: NameQuery, _ isOptional: Bool, _ ticket: Ticket, _ receive: @escaping Receiver, at now: Int64,
        _ state: inout State
    ) -> Step {
        var step = Step.wait
        if state.lookUps[query] == nil {
            if hasThread(isOptional: isOptional, state) {
                state.threads += 1
                state.lookUps[query] = LookUp(start: now, isOptional: isOptional)
                step = .run
            } else if state.threads >= maximumThreads, allAreStuck(state, at: now) {
                return .refuse
            } else {
                state.queue.append(query)
                state.lookUps[query] = LookUp(isOptional: isOptional)
            }
        }
        state.queries[ticket] = query
        state.lookUps[query]?.receivers.append((ticket, receive))
        return step
    }

    private func hasThread(isOptional: Bool, _ state: borrowing State) -> Bool {
        state.threads < (isOptional ? max(1, maximumThreads / 4) : maximumThreads)
    }

    private func allAreStuck(_ state: borrowing State, at now: Int64) -> Bool {
        state.lookUps.values.allSatisfy { lookUp in
            lookUp.start.map { now >= $0.advanced(byNanoseconds: patience) } ?? true
        }
    }

    private func takeQueue(_ state: inout State) -> [(NameQuery, [Receiver])] {
        defer { state.queue = [] }
        return state.queue.map { ($0, takeReceivers(of: $0, &state)) }
    }

    private func takeReceivers(of query: NameQuery, _ state: inout State) -> [Receiver] {
        guard let lookUp = state.lookUps.removeValue(forKey: query) else { return [] }
        for receiver in lookUp.receivers { state.queries[receiver.ticket] = nil }
        return lookUp.receivers.map(\.receive)
    }

    /// Starts a thread for a look-up that is counted as running.
    private func runThread(_ query: NameQuery) {
        do {
            try startThread(named: "messaging-names") { self.work(query) }
        } catch {
            // Without any thread nothing would take the queue up.
            let orphans = state.withLock { state in
                state.threads -= 1
                return takeReceivers(of: query, &state) + (state.threads == 0 ? takeQueue(&state).flatMap(\.1) : [])
            }
            for receive in orphans { receive(.failure(error)) }
        }
    }

    private func work(_ first: NameQuery) {
        var next: NameQuery? = first
        while let query = next {
            let answer = ask(query)
            let receivers: [Receiver]
            (receivers, next) = state.withLock { state in
                let receivers = takeReceivers(of: query, &state)
                state.threads -= 1
                let next = takeNext(&state)
                return (receivers, next)
            }
            for receive in receivers { receive(answer) }
        }
    }

    private func takeNext(_ state: inout State) -> NameQuery? {
        let index = state.queue.firstIndex { query in
            hasThread(isOptional: state.lookUps[query]?.isOptional ?? true, state)
        }
        guard let index else { return nil }
        let query = state.queue.remove(at: index)
        state.threads += 1
        state.lookUps[query]?.start = MonotonicClock.now
        return query
    }
}

extension Resolver {
    /// All addresses of `endpoint`, in the system's order of preference; never empty.
    package func resolve(_ endpoint: Endpoint) async throws(TransportError) -> [SocketAddress] {
        if let known = try endpoint.knownAddresses { return known }
        guard case .host(let name, let port) = endpoint else { return [] }
        let call = PendingCall<Result<[SocketAddress], TransportError>>()
        start(NameQuery(name, .any)) { call.end($0) }
        return try await call.answer().get().map { $0.with(port: port) }
    }
}
