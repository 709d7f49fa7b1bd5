public import Synchronization
public import Transport

/// A value that is made when it is first needed, on any thread: most clients never need it.
@usableFromInline
package struct MadeOnce<Value: Sendable>: ~Copyable, Sendable {
    @usableFromInline let known: Lock<Value?>

    @inlinable
    package init() {
        known = Lock(nil)
    }

    /// The value, if it was needed before.
    package var ifMade: Value? { known.withLock { $0 } }

    /// The value.
    ///
    /// - Parameter make: called under a lock.
    package func value(_ make: () -> Value) -> Value {
        known.withLock { known in
            if let known { return known }
            let made = make()
            known = made
            return made
        }
    }
}
