/// Where the tasks of a row run.
enum Place: String {
    case pool = ""
    case loop = ", on the client's executor"

    /// Runs `body` there.
    func run<Answer: Sendable>(
        on executor: any TaskExecutor, _ body: @Sendable () async throws -> Answer
    ) async throws -> Answer {
        switch self {
        case .pool: try await body()
        case .loop: try await withTaskExecutorPreference(executor) { try await body() }
        }
    }
}
