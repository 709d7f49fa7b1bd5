import HTTPCore
import Transport

/// One use of the publish pane.
struct Publication: Sendable {
    let publish: @Sendable () async throws -> Void
    let reply: LateReply

    /// Runs the app's closure in a task of its own and answers with the time that it took.
    func start() {
        Task { [publish, reply] in
            let start = MonotonicClock.now
            do {
                try await publish()
                let microseconds = (MonotonicClock.now - start) / 1000
                reply.send(.data("application/json; charset=utf-8", Array(#"{"microseconds":\#(microseconds)}"#.utf8)))
            } catch {
                reply.send(.text(500, "\(error)"))
            }
        }
    }
}
