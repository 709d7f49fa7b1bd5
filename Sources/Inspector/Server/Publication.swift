import MessagingHTTPCore
import Synchronization
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

/// The way back to a connection whose answer takes longer than its request.
final class LateReply: Sendable {
    private struct State {
        weak var link: Link<PageMachine>?
    }

    private let state = Lock(State())

    var link: Link<PageMachine>? {
        get { state.withLock { $0.link } }
        set { state.withLock { $0.link = newValue } }
    }

    /// Answers, unless the browser has left.
    func send(_ response: HTTPResponse) {
        link?.perform { $0.finish(with: response) }
    }
}
