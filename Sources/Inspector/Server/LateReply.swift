import HTTPCore
import Synchronization
import Transport

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
