import Dispatch
import Synchronization
import Transport

/// A name service of a test's own: answers names at once, or not before the test says so.
final class ScriptedNames: Sendable {
    private let known: Mutex<[NameQuery: String]>
    private let silent = DispatchSemaphore(value: 0)
    private let asked = Mutex<[NameQuery]>([])
    private let held = Mutex(0)

    /// - Parameter known: the addresses, as text, of what is answered at once. Other names are not answered.
    init(_ known: [NameQuery: String] = [:]) {
        self.known = Mutex(known)
    }

    /// The questions that reached the service, in their order.
    var questions: [NameQuery] { asked.withLock { $0 } }

    func resolver(maximumThreads: Int = 16, patience: Int64 = 1_000_000_000) -> Resolver {
        Resolver(maximumThreads: maximumThreads, patience: patience) { [self] query in answer(query) }
    }

    private func answer(_ query: NameQuery) -> NameQuery.Answer {
        asked.withLock { $0.append(query) }
        guard let address = known.withLock({ $0[query] }) else {
            held.withLock { $0 += 1 }
            silent.wait()
            return .failure(TransportError(.unknownHost, "nobody knows \(query.name)"))
        }
        return NameQuery(address, .any).lookUp()
    }

    /// Answers all questions that are under way, so that their threads end: nothing is known of those names.
    func release() {
        let count = held.withLock { held in
            defer { held = 0 }
            return held
        }
        for _ in 0..<count { silent.signal() }
    }
}
