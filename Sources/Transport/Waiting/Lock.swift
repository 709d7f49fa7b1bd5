#if TSAN
    /// A lock that the thread sanitizer knows: `Mutex` waits in code of the standard library that it cannot see into,
    /// and every access under it would be reported. Used by builds with `-D TSAN` only.
    @usableFromInline
    package struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        // Sendable because `value` is touched with `handle` held only.
        private let handle: UnsafeMutablePointer<pthread_mutex_t>
        private let value: UnsafeMutablePointer<Value>

        @usableFromInline
        package init(_ initial: consuming sending Value) {
            handle = .allocate(capacity: 1)
            handle.initialize(to: pthread_mutex_t())
            pthread_mutex_init(handle, nil)
            value = .allocate(capacity: 1)
            value.initialize(to: initial)
        }

        @usableFromInline
        deinit {
            pthread_mutex_destroy(handle)
            handle.deallocate()
            value.deinitialize(count: 1)
            value.deallocate()
        }

        @usableFromInline
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            pthread_mutex_lock(handle)
            defer { pthread_mutex_unlock(handle) }
            return try body(&value.pointee)
        }
    }
#else
    public import Synchronization

    /// The lock of this package: a name of its own, so that builds for the thread sanitizer can replace it here.
    @usableFromInline
    package typealias Lock<Value: ~Copyable> = Mutex<Value>
#endif

/// A value that never changes, held once for many.
package final class Shared<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}

extension Shared: Equatable where Value: Equatable {
    package static func == (one: Shared, other: Shared) -> Bool { one === other || one.value == other.value }
}

extension Shared: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
