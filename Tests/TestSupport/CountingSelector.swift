import Synchronization
package import Transport

/// Counts what a loop asks of its selector: each is a system call.
package final class CountingSelector: Selector {
    package struct Counts: Equatable {
        package var additions = 0
        package var changes = 0
        package var removals = 0
        /// Waits that only look whether something is ready.
        package var polls = 0
        package var wakes = 0
    }

    private let selector: any Selector
    private let shared: Mutex<Counts>

    package init(_ selector: any Selector) {
        self.selector = selector
        shared = Mutex(Counts())
    }

    package var counts: Counts { shared.withLock { $0 } }

    package func add(_ descriptor: Int32, token: Int64, interest: Transport.Readiness) {
        shared.withLock { $0.additions += 1 }
        selector.add(descriptor, token: token, interest: interest)
    }

    package func change(_ descriptor: Int32, token: Int64, interest: Transport.Readiness) {
        shared.withLock { $0.changes += 1 }
        selector.change(descriptor, token: token, interest: interest)
    }

    package func remove(_ descriptor: Int32, token: Int64) {
        shared.withLock { $0.removals += 1 }
        selector.remove(descriptor, token: token)
    }

    package func forget(_ descriptor: Int32, token: Int64) { selector.forget(descriptor, token: token) }

    package func wait(timeout: Int64, events: inout [ReadyEvent]) {
        if timeout == 0 { shared.withLock { $0.polls += 1 } }
        selector.wait(timeout: timeout, events: &events)
    }

    package func wake() {
        shared.withLock { $0.wakes += 1 }
        selector.wake()
    }
}
