import Synchronization

/// The value that came last: what a shaken device sends again.
package final class Latest<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)

    package init() {}

    package var value: Value? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
