#if TSAN
    /// A lock that the thread sanitizer knows: `Mutex` waits in code of the standard library that it cannot see into,
    /// and every access under it would be reported. Used by builds with `-D TSAN` only.
    // Safe to use: the lock owns mutex and value, and the value is accessed with the mutex held only.
    @safe
    @usableFromInline
    package struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        // Sendable because `value` is touched with `handle` held only.
        private let handle: UnsafeMutablePointer<pthread_mutex_t>
        private let value: UnsafeMutablePointer<Value>

        @usableFromInline
        package init(_ initial: consuming sending Value) {
            unsafe handle = .allocate(capacity: 1)
            unsafe handle.initialize(to: pthread_mutex_t())
            unsafe pthread_mutex_init(handle, nil)
            unsafe value = .allocate(capacity: 1)
            unsafe value.initialize(to: initial)
        }

        @usableFromInline
        deinit {
            unsafe pthread_mutex_destroy(handle)
            unsafe handle.deallocate()
            unsafe value.deinitialize(count: 1)
            unsafe value.deallocate()
        }

        @usableFromInline
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            unsafe pthread_mutex_lock(handle)
            defer { unsafe pthread_mutex_unlock(handle) }
            return try unsafe body(&value.pointee)
        }
    }
#elseif SIMULATION
    public import Synchronization

    /// A lock that lets the other threads of a simulation run before it is taken, and after it was given back. Used by builds
    /// with `-D SIMULATION` only.
    @usableFromInline
    package struct Lock<Value: ~Copyable>: ~Copyable, Sendable {
        private let mutex: Mutex<Value>

        @usableFromInline
        package init(_ initial: consuming sending Value) {
            mutex = Mutex(initial)
        }

        @usableFromInline
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            WorldThreads.current?.lockWillBeTaken()
            defer { WorldThreads.current?.lockWasGivenBack() }
            return try mutex.withLock(body)
        }
    }
#else
    public import Synchronization

    /// The lock of this package: a name of its own, so that builds for the thread sanitizer and for simulations of threads can
    /// replace it here.
    @usableFromInline
    package typealias Lock<Value: ~Copyable> = Mutex<Value>
#endif
