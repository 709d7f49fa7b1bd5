package import Transport

/// What a ``Supervisor`` needs from the client that it keeps connected.
///
/// Methods and properties are used on the loop's thread, except `openStream`, which runs in the task of an attempt;
/// static members are used on any thread.
package protocol SupervisedClient: AnyObject, Sendable {
    associatedtype Failure: Error & Sendable

    /// What keeps this client connected.
    var supervisor: Supervisor<Self> { get }
    /// The failure of callers that wait for a connection while the user disconnects.
    static var stopped: Failure { get }
    /// The failure of callers that wait for a connection while the event loop cannot start.
    static func notStarted(_ error: TransportError) -> Failure
    /// An attempt begins: called before `openStream`.
    func prepare(_ attempt: ConnectionAttempt)
    /// Opens a stream to a server; called in a task of its own for each attempt, which runs on the loop's thread.
    func openStream(_ attempt: ConnectionAttempt) async throws(Failure) -> OpenedStream
    /// Passes the stream to the link, which begins the protocol's handshake.
    func attach(_ opened: OpenedStream)
    /// Whether nothing more can be sent on the connection, the end of which is about to be reported.
    var isEnding: Bool { get }
    /// The network has changed, and the connection may be dead: asks the server for an answer, if the protocol can.
    func checkConnection()
    /// Closes the connection without a farewell to the server.
    func dropConnection()
    /// Writes the protocol's farewell, after which the connection ends.
    func sayGoodbye()
    /// The connection, which has this age in nanoseconds, is about to end gracefully, and another follows.
    func willMove(after age: Int64)
    func stateChanged(to state: ConnectionState<Failure>)
    /// `start()` had no effect, because the event loop could not start; on the caller's thread.
    func couldNotStart(_ failure: Failure)
    /// An attempt failed before the server had accepted.
    func attemptFailed(_ failure: Failure)
    /// What to do after a failure. Changes nothing.
    func verdict(on failure: Failure) -> ReconnectVerdict
    /// The verdict was `retryNow`: changes what the client asks for.
    func willRetry(after failure: Failure)
    /// The failure of a round in which every server failed.
    func failure(ofAll failures: [(server: Int, failure: Failure)]) -> Failure
    /// The failure of a client whose first attempts all failed, and that will not try again.
    static func firstFailure(_ failure: Failure) -> Failure
}

extension SupervisedClient {
    package func prepare(_ attempt: ConnectionAttempt) {}
    package func couldNotStart(_ failure: Failure) {}
    package func checkConnection() {}
    package func willMove(after age: Int64) {}
    package func attemptFailed(_ failure: Failure) {}
    package func willRetry(after failure: Failure) {}
}

/// What a connection that ends says about the next one.
package enum ConnectionEndCause: Sendable, Equatable {
    case other
    /// The same requests as on the connection before were unanswered: it counts as a failed attempt, however long it lasted.
    case missingAnswer
    /// The server ended it because of a request, which is not repeated: it counts as a connection that lasted.
    case refusedRequest
}

/// What follows a failure.
package enum ReconnectVerdict: Sendable, Equatable {
    /// Connect again without a delay, and ask for something else: another version, another server.
    case retryNow
    /// Connect again without a delay and ask for other credentials. The second time in a row at one server it means
    /// `giveUp`.
    case askForCredentials
    /// The same, but the second time in a row at one server it means `wait`: the refusal may have another reason.
    case askForCredentialsOrWait
    /// Try the next server, or wait as the policy demands. After a connection that held, its server comes first.
    case wait
    /// The same, but after a connection another server or address comes first: this one is silent, broke the protocol or
    /// sent the client away.
    case leaveServer
    /// Another attempt at this server is pointless until a person changes something. Try the next server; `giveUp` if there is
    /// none, or if it is so at each server of a round.
    case giveUpServer
    /// Another attempt is pointless until a person changes something.
    case giveUp
}

/// One attempt to connect.
package struct ConnectionAttempt: Sendable {
    /// Counts rounds through all servers, from 1 since the last connection that held.
    package let number: Int
    /// The server's index in the list.
    package let server: Int
    /// The server has refused the last credentials that it was given, so that others are needed.
    package let credentialsWereRefused: Bool
    /// The time by which the server has to accept; nanoseconds of the monotonic clock.
    package let deadline: Int64
    /// Whether one server gets all of that time although there are others: none of them answered in the round before.
    package let isPatient: Bool
    /// Whether it follows the last attempt at once, because the client asks for something else: another version or other
    /// credentials.
    package let continuesLast: Bool
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

/// The callers that wait for what a ``Supervisor`` does; on the loop's thread.
///
/// The failures are declared as `any Error` although each is of the client's type, so that all clients share this type
/// and nothing has to be looked up at run time.
struct SupervisorCallers {
    /// Ends with the failure, or with nil for success: a `Result` would be looked up at run time as well.
    typealias Call = PendingCall<(any Error)?>
    typealias Restart = (begun: PendingCall<Void>, run: Call?)

    /// Callers of `connect`.
    private var connects: [Call] = []
    /// Callers of `run`.
    private var runs: [Call] = []
    /// Callers of `stop` and `suspend`.
    private var stops: [PendingCall<Void>] = []
    /// Callers of `start` and `run` that wait until the client has disconnected.
    private var restarts: [Restart] = []

    mutating func addConnect(_ call: Call) { connects.append(call) }
    mutating func addRun(_ call: Call) { runs.append(call) }
    mutating func addStop(_ call: PendingCall<Void>) { stops.append(call) }
    mutating func addRestart(_ begun: PendingCall<Void>, run: Call?) { restarts.append((begun, run)) }

    /// Removes a caller of `connect`. Returns whether it waited and no other does.
    mutating func removeConnect(_ call: Call) -> Bool {
        guard let index = connects.firstIndex(where: { $0 === call }) else { return false }
        connects.remove(at: index)
        return connects.isEmpty
    }

    mutating func connected() { Self.end(&connects, nil) }

    /// Supervision has ended.
    ///
    /// - Parameters:
    ///   - failure: nil if the user disconnected.
    ///   - stopped: what `connect` then throws.
    mutating func ended(_ failure: (any Error)?, stopped: @autoclosure () -> any Error) {
        if !connects.isEmpty { Self.end(&connects, failure ?? stopped()) }
        Self.end(&runs, failure)
    }

    /// The connection is closed. Returns the callers that wait to start anew.
    mutating func closed() -> [Restart] {
        Self.end(&stops, ())
        defer { restarts = [] }
        return restarts
    }

    /// A disconnect came after `start`, which therefore has no effect.
    mutating func cancelRestarts() {
        for (begun, run) in restarts {
            begun.end(())
            run?.end(nil)
        }
        restarts = []
    }

    private static func end<Answer>(_ calls: inout [PendingCall<Answer>], _ answer: Answer) {
        let ended = calls
        calls = []
        for call in ended { call.end(answer) }
    }
}
