public import Synchronization
public import Transport

/// An object that is made when it is first needed, on any thread: most clients never need it.
///
/// The lock is declared for any object: a lock of the object's own type would look that type up at run time, also for the
/// clients that never make the object.
@usableFromInline
package struct MadeOnce<Value: AnyObject & Sendable>: ~Copyable, Sendable {
    @usableFromInline let known: Lock<(any AnyObject & Sendable)?>

    @inlinable
    package init() {
        known = Lock(nil)
    }

    /// The object, if it was needed before.
    package var ifMade: Value? { known.withLock { $0.map(Self.typed) } }

    /// The object.
    ///
    /// - Parameter make: called under a lock.
    package func value(_ make: () -> Value) -> Value {
        known.withLock { known in
            if let known { return Self.typed(known) }
            let made = make()
            known = made
            return made
        }
    }

    /// Safe: only ``value(_:)`` sets the object.
    private static func typed(_ known: any AnyObject & Sendable) -> Value {
        unsafe unsafeDowncast(known, to: Value.self)
    }
}
