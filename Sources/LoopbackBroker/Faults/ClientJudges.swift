package import MessagingJudge
import MessagingWire
import Synchronization
import Transport

/// What a broker does with the rules that its clients break.
package struct Judging: Sendable {
    /// Rules that clients may break.
    package var mayBreak: Set<Clause> = []
    /// Whether what a client did before explains that it breaks a rule. Called as ``onViolation`` is.
    package var isExcused: (@Sendable (Violation) -> Bool)?
    /// Whether what our clients promise beyond the specification is examined. Apps can do the same: subscribe again, or change
    /// a will. Default: false.
    package var judgesPromises = false
    /// Called at once, on the loop's thread and under the lock of a connection.
    package var onViolation: (@Sendable (Violation) -> Void)?
    /// Called with all that were found, by ``LoopbackBroker/stop()`` in the task of its caller.
    package var onStop: (@Sendable ([Violation]) -> Void)?

    package init() {}
}

/// The judges of a broker's clients. They see what clients write before faults are applied, and what is written to
/// clients after that; in the clear, since layers are below.
final class ClientJudges: Sendable {
    private struct State: Sendable {
        var mqtt: MQTTJudge
        var stomp: STOMPJudge
        var found: [Violation] = []
    }

    private let judging: Judging
    private let state: Lock<State>

    /// - Parameter judgesTime: whether the broker has a virtual clock.
    init(_ judging: Judging, judgesTime: Bool) {
        self.judging = judging
        var options = JudgeOptions()
        (options.judgesPromises, options.judgesTime) = (judging.judgesPromises, judgesTime)
        state = Lock(State(mqtt: MQTTJudge(options), stomp: STOMPJudge(options)))
    }

    /// The first hundred.
    var found: [Violation] { state.withLock { $0.found } }

    func stopped() { judging.onStop?(found) }

    func opened(_ id: Router.ConnectionID, _ kind: Service.Kind) {
        change { state in
            switch kind {
            case .mqtt: state.mqtt.opened(id)
            case .stomp: state.stomp.opened(id)
            }
        }
    }

    // Each connection is known to one judge, and the other one ignores it.

    func closed(_ id: Router.ConnectionID) {
        change { state in
            state.mqtt.closed(id)
            state.stomp.closed(id)
        }
    }

    /// The broker has not read for a while, by its own decision.
    func resumedReading(_ id: Router.ConnectionID, at now: Int64) {
        change { state in
            state.mqtt.resumedReading(id, at: now)
            state.stomp.resumedReading(id, at: now)
        }
    }

    /// What connects with this client identifier next may be another process.
    func mayBeAnother(_ client: String) { change { $0.mqtt.mayBeAnother(client) } }

    func clientWrote(_ bytes: RawSpan, on id: Router.ConnectionID, at now: Int64) {
        change { state in
            state.mqtt.clientWrote(bytes, on: id, at: now)
            state.stomp.clientWrote(bytes, on: id, at: now)
        }
    }

    func serverWrote(_ bytes: RawSpan, on id: Router.ConnectionID, at now: Int64) {
        change { state in
            state.mqtt.serverWrote(bytes, on: id, at: now)
            state.stomp.serverWrote(bytes, on: id, at: now)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let new = state.withLock { state in
            body(&state)
            let all = state.mqtt.takeViolations() + state.stomp.takeViolations()
            let new = all.filter { !judging.mayBreak.contains($0.clause) && judging.isExcused?($0) != true }
            state.found += new.prefix(max(0, 100 - state.found.count))
            return new
        }
        if let onViolation = judging.onViolation { new.forEach(onViolation) }
    }
}

/// The bytes of a client that its judge has seen, and the machine not consumed.
struct JudgedBytes: Sendable {
    private var ahead = 0

    /// Lets the judge see what it has not seen of `bytes`, which are all that were not consumed.
    mutating func see(_ bytes: RawSpan, _ body: (RawSpan) -> Void) {
        if bytes.byteCount > ahead { body(bytes.extracting(droppingFirst: ahead)) }
        ahead = bytes.byteCount
    }

    mutating func consumed(_ count: Int) { ahead -= count }
}
