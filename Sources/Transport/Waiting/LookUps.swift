import MessagingWire
import Synchronization

/// Answers questions on threads of its own, since that blocks: never on a cooperative thread or a loop's.
///
/// Equal questions share one look-up. Each look-up has a thread, up to `maximumThreads`, so that those that hang, as with a
/// name server that is silent, hold up no others; beyond that they queue. What can be answered at once does not queue: one
/// more thread answers it. A query whose callers have all cancelled leaves the queue; one that a thread has started cannot be
/// stopped. A caller that asks the same question then gets a second look-up, because things, such as the network, may have
/// changed since the first one began; the one that finds something first answers.
package final class LookUps<Query: Hashable & Sendable, Found: Sendable>: Sendable {
    /// Names a caller's interest in an answer, for `cancel`.
    package typealias Ticket = UInt64
    package typealias Answer = Result<Found, TransportError>
    package typealias Receiver = @Sendable (Answer) -> Void

    private struct LookUp {
        /// The ticket of its first caller, by which its thread knows it.
        let id: Ticket
        var receivers: [(ticket: Ticket, receive: Receiver)] = []
        /// Whether it has a thread; false in the queue.
        var hasBegun = false
        /// Whether it leaves most of the threads to others.
        var isOptional: Bool
    }

    private struct State {
        var lookUps: [Query: LookUp] = [:]
        /// The questions without a thread, oldest first.
        var queue: [Query] = []
        var queries: [Ticket: Query] = [:]
        var lastTicket: Ticket = 0
        var threads = 0
        /// How many of them each question has.
        var threadsOfQuery: [Query: Int] = [:]
        /// The questions in the queue that may be answered at once.
        var unchecked: [Query] = []
        var checks = false
    }

    private let state = Lock(State())
    private let maximumThreads: Int
    private let threadName: StaticString
    private let ask: @Sendable (Query) -> Answer
    private let known: (@Sendable (Query) -> Answer?)?

    /// - Parameters:
    ///   - maximumThreads: for the look-ups; two at least.
    ///   - threadName: of the threads.
    ///   - ask: answers one question and may block.
    ///   - known: what can be answered at once, or nil.
    package init(
        maximumThreads: Int = 16, threadName: StaticString, ask: @escaping @Sendable (Query) -> Answer,
        known: (@Sendable (Query) -> Answer?)? = nil
    ) {
        self.maximumThreads = max(2, maximumThreads)
        self.threadName = threadName
        self.known = known
        self.ask = ask
    }

    /// Asks; `receive` is called once, on any thread, unless the question is cancelled before.
    ///
    /// - Parameter isOptional: whether the caller may do without an answer. The question then waits while a quarter of
    ///   the threads is busy, until `hurry` is called.
    @discardableResult
    package func start(_ query: Query, isOptional: Bool = false, _ receive: @escaping Receiver) -> Ticket {
        let (ticket, step) = state.withLock { state in
            state.lastTicket += 1
            let ticket = state.lastTicket
            return (ticket, add(query, isOptional, ticket, receive, &state))
        }
        switch step {
        case .wait: break
        case .run: runThread((query, ticket))
        case .check: runCheck()
        }
        return ticket
    }

    /// Cancels: the receiver will not be called, unless that has begun.
    package func cancel(_ ticket: Ticket) {
        state.withLock { state in
            guard let query = state.queries.removeValue(forKey: ticket) else { return }
            state.lookUps[query]?.receivers.removeAll { $0.ticket == ticket }
            guard let lookUp = state.lookUps[query], !lookUp.hasBegun, lookUp.receivers.isEmpty else { return }
            state.lookUps[query] = nil
            removeFromQueue(query, &state)
        }
    }

    /// Whether a question still waits for a thread, because others wait for their answers.
    package func isQueued(_ ticket: Ticket) -> Bool {
        state.withLock { state in state.queries[ticket].map { state.queue.contains($0) } ?? false }
    }

    /// The answer is needed after all.
    package func hurry(_ ticket: Ticket) {
        let started = state.withLock { state -> Begun? in
            guard let query = state.queries[ticket], state.lookUps[query]?.isOptional == true else { return nil }
            state.lookUps[query]?.isOptional = false
            guard state.lookUps[query]?.hasBegun == false, hasThread(isOptional: false, state) else { return nil }
            removeFromQueue(query, &state)
            return begin(query, &state)
        }
        if let started { runThread(started) }
    }

    /// How many questions wait for a thread.
    package var queuedCount: Int { state.withLock { $0.queue.count } }

    private enum Step { case wait, run, check }
    /// A look-up that a thread works on.
    private typealias Begun = (query: Query, id: Ticket)

    private func add(
        _ query: Query, _ isOptional: Bool, _ ticket: Ticket, _ receive: @escaping Receiver, _ state: inout State
    ) -> Step {
        var step = Step.wait
        if isAbandoned(query, state), hasThread(isOptional: isOptional, state) { state.lookUps[query] = nil }
        if state.lookUps[query] == nil {
            state.lookUps[query] = LookUp(id: ticket, isOptional: isOptional)
            if hasThread(isOptional: isOptional, state) {
                _ = begin(query, &state)
                step = .run
            } else {
                state.queue.append(query)
                if known != nil, state.threads >= maximumThreads {
                    state.unchecked.append(query)
                    step = state.checks ? .wait : .check
                    state.checks = true
                }
            }
        }
        state.queries[ticket] = query
        state.lookUps[query]?.receivers.append((ticket, receive))
        return step
    }

    /// Whether a thread looks the name up for no caller any more, and no second thread does: questions that hang must
    /// not take all threads.
    private func isAbandoned(_ query: Query, _ state: borrowing State) -> Bool {
        guard let lookUp = state.lookUps[query] else { return false }
        return lookUp.hasBegun && lookUp.receivers.isEmpty && state.threadsOfQuery[query, default: 0] < 2
    }

    /// Counts a thread for the look-up.
    private func begin(_ query: Query, _ state: inout State) -> Begun {
        state.threads += 1
        state.threadsOfQuery[query, default: 0] += 1
        state.lookUps[query]?.hasBegun = true
        return (query, state.lookUps[query]?.id ?? 0)
    }

    private func end(_ query: Query, _ state: inout State) {
        state.threads -= 1
        let count = state.threadsOfQuery[query, default: 1] - 1
        state.threadsOfQuery[query] = count == 0 ? nil : count
    }

    private func removeFromQueue(_ query: Query, _ state: inout State) {
        state.queue.removeAll { $0 == query }
        state.unchecked.removeAll { $0 == query }
    }

    private func hasThread(isOptional: Bool, _ state: borrowing State) -> Bool {
        state.threads < (isOptional ? max(1, maximumThreads / 4) : maximumThreads)
    }

    private func takeQueue(_ state: inout State) -> [(Query, [Receiver])] {
        defer { state.queue = [] }
        return state.queue.map { ($0, takeReceivers(of: $0, &state)) }
    }

    private func takeReceivers(of query: Query, _ state: inout State) -> [Receiver] {
        guard let lookUp = state.lookUps.removeValue(forKey: query) else { return [] }
        for receiver in lookUp.receivers { state.queries[receiver.ticket] = nil }
        return lookUp.receivers.map(\.receive)
    }

    /// Starts a thread for a look-up that is counted as running.
    private func runThread(_ begun: Begun) {
        do {
            try startThread(named: threadName) { self.work(begun) }
        } catch {
            // Without any thread nothing would take the queue up.
            let orphans = state.withLock { state in
                end(begun.query, &state)
                return takeReceivers(of: begun.query, &state)
                    + (state.threads == 0 ? takeQueue(&state).flatMap(\.1) : [])
            }
            for receive in orphans { receive(.failure(error)) }
        }
    }

    private func work(_ first: Begun) {
        var next: Begun? = first
        while let (query, id) = next {
            let answer = ask(query)
            let receivers: [Receiver]
            (receivers, next) = state.withLock { state in
                // An answer whose callers have left serves callers that have asked since. A failure does not, because
                // its reason, such as a missing network, may have passed.
                let isCurrent = state.lookUps[query]?.id == id
                let isFound = (try? answer.get()) != nil
                if state.lookUps[query]?.hasBegun == false, isFound { removeFromQueue(query, &state) }
                let receivers = isCurrent || isFound ? takeReceivers(of: query, &state) : []
                end(query, &state)
                return (receivers, takeNext(&state))
            }
            for receive in receivers { receive(answer) }
        }
    }

    private func takeNext(_ state: inout State) -> Begun? {
        let index = state.queue.firstIndex { query in
            hasThread(isOptional: state.lookUps[query]?.isOptional ?? true, state)
        }
        guard let index else { return nil }
        let query = state.queue[index]
        removeFromQueue(query, &state)
        return begin(query, &state)
    }

    /// Answers those in the queue that need no look-up.
    private func runCheck() {
        do {
            try startThread(named: threadName) { self.check() }
        } catch {
            // They wait in the queue like others.
            state.withLock { state in
                state.unchecked = []
                state.checks = false
            }
        }
    }

    private func check() {
        while true {
            let query = state.withLock { state -> Query? in
                if state.unchecked.isEmpty { state.checks = false }
                return state.unchecked.isEmpty ? nil : state.unchecked.removeFirst()
            }
            guard let query else { return }
            guard let answer = known?(query) else { continue }
            let receivers = state.withLock { state -> [Receiver] in
                // The question may have got a thread in the meantime, which then answers it.
                guard state.lookUps[query]?.hasBegun == false else { return [] }
                state.queue.removeAll { $0 == query }
                return takeReceivers(of: query, &state)
            }
            for receive in receivers { receive(answer) }
        }
    }
}
