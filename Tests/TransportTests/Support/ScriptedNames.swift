import Dispatch
import Synchronization
import Transport

/// A name service of a test's own: answers names at once, or not before the test says so.
final class ScriptedNames: Sendable {
    private struct State {
        var asked: [NameQuery] = []
        /// How many questions wait for ``ScriptedNames/release()``.
        var held = 0
    }

    private let known: [NameQuery: String]
    private let silent = DispatchSemaphore(value: 0)
    private let state = Mutex(State())

    /// - Parameter known: the addresses, as text with spaces between them, of what is answered at once. Other names are not
    ///   answered.
    init(_ known: [NameQuery: String] = [:]) {
        self.known = known
    }

    /// The questions that reached the service, in their order.
    var questions: [NameQuery] { state.withLock { $0.asked } }

    /// - Parameter hosts: what the machine knows by itself, as in its file of hosts.
    func resolver(maximumThreads: Int = 16, hosts: String = "") -> Resolver {
        Resolver(maximumThreads: maximumThreads, ask: { [self] in answer($0) }, known: { $0.known(in: hosts) })
    }

    private func answer(_ query: NameQuery) -> NameQuery.Answer {
        let address = known[query]
        // In one step, so that a test which has seen the question can release it.
        state.withLock { state in
            state.asked.append(query)
            if address == nil { state.held += 1 }
        }
        guard let address else {
            silent.wait()
            return .failure(TransportError(.unknownHost, "nobody knows \(query.name)"))
        }
        let addresses = address.split(separator: " ").compactMap { try? NameQuery(String($0), .any).lookUp().get() }
        return .success(addresses.flatMap { $0 })
    }

    /// Answers all questions that are under way, so that their threads end: nothing is known of those names.
    func release() {
        let count = state.withLock { state in
            defer { state.held = 0 }
            return state.held
        }
        for _ in 0..<count { silent.signal() }
    }
}
