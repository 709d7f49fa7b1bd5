import Synchronization
import Transport
package import Wire

/// Requests of callers that found the lock of their link taken, until the loop hands them to the machine: see
/// `Link.performIfFree`. Any thread may use it.
///
/// The lock in here is held for the time of an append, and never while a request is handled.
package struct DeferredRequests<Request: ~Copyable & Sendable>: ~Copyable, Sendable {
    private let requests = Lock(UniqueArray<Request>())

    package init() {}

    /// Leaves a request; the loop has to be asked to take it.
    package func add(_ request: consuming Request) {
        var request: Request? = request
        requests.withLock { requests in
            if let request = request.take() { requests.append(request) }
        }
    }

    /// Moves all requests out, in the order in which they came.
    package func take() -> UniqueArray<Request> {
        requests.withLock { requests in
            var taken = UniqueArray<Request>()
            swap(&taken, &requests)
            return taken
        }
    }
}
