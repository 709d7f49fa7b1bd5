import MessagingShell

/// Where the tasks of a row run.
enum Place: String {
    case pool = ""
    case loop = ", on the client's executor"

    /// Runs `body` there.
    func run<Answer: Sendable>(
        on client: some MessagingClient, _ body: @concurrent @Sendable () async throws -> Answer
    ) async throws -> Answer {
        switch self {
        case .pool: try await body()
        case .loop: try await client.withExecutor(body)
        }
    }
}

/// Whether the machine's cores may sleep between two messages.
enum Cores: String {
    case idle = "idle cores"
    case awake = "awake cores"

    /// What keeps them awake until it is ended.
    func keptAwake() throws -> Child? {
        guard self == .awake else { return nil }
        return try Shell.serve(try Shell.compile("awake", options: ["-lpthread"])).0
    }
}
