/// What every client offers, under the same names. Each client documents these members for its users.
package protocol MessagingClient: Actor {
    associatedtype Failure: ClientError
    associatedtype Event: ClientEvent where Event.Failure == Failure
    associatedtype Record: Sendable

    nonisolated var state: ConnectionState<Failure> { get }
    nonisolated var states: Updates<ConnectionState<Failure>> { get }
    nonisolated var events: Updates<Event> { get }
    nonisolated var timedEvents: Updates<TimedEvent<Event>> { get }
    nonisolated var messageEvents: Updates<MessageEvent> { get }
    nonisolated var server: BrokerURL? { get }
    nonisolated var counters: ClientCounters { get }
    nonisolated var backlog: ClientBacklog { get }
    nonisolated var executor: any TaskExecutor { get }

    func start() async
    func run() async throws(Failure)
    func connect() async throws(Failure)
    func disconnect() async
    func suspend() async
    nonisolated func resume()
    nonisolated func networkChanged()

    nonisolated func inspect(showingSecrets: Bool) -> Updates<Record>
    nonisolated func inspect(into log: FrameLog, as name: String?)
    nonisolated func stopInspecting(into log: FrameLog)
}

extension MessagingClient {
    /// Connects, runs `body`, and disconnects whatever happens.
    package nonisolated(nonsending) func runConnected<Result>(
        _ body: (Self) async throws -> Result
    ) async throws -> Result {
        try await connect()
        do {
            let result = try await body(self)
            await disconnect()
            return result
        } catch {
            await disconnect()
            throw error
        }
    }

    /// What a debugger shows. Everything else changes on other threads, or holds credentials.
    package nonisolated func mirror(_ name: String, _ value: Any) -> Mirror {
        Mirror(self, children: [name: value, "state": state])
    }
}

/// What the supervision of a client reports to its users.
package protocol ClientEvent: Sendable {
    associatedtype Failure: ClientError

    static func stateChanged(_ state: ConnectionState<Failure>) -> Self
    static func connecting(to server: BrokerURL) -> Self
    static func credentialsRequested(for server: BrokerURL) -> Self
    static func attemptFailed(_ server: BrokerURL, _ failure: Failure) -> Self
}
