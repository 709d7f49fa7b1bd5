/// Tells threads apart; never 0.
package var currentThreadNumber: UInt {
    #if canImport(Glibc)
        UInt(pthread_self())
    #elseif canImport(Android)
        UInt(bitPattern: pthread_self())
    #else
        unsafe UInt(bitPattern: pthread_self())
    #endif
}

/// Starts a detached thread that runs `body` and ends with it.
///
/// - Throws: `systemLimit` when the process may have no other thread.
package func startThread(named name: StaticString, _ body: @escaping @Sendable () -> Void) throws(TransportError) {
    final class Start {
        let name: StaticString
        let body: @Sendable () -> Void
        init(_ name: StaticString, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }

        func run() {
            #if os(Linux) || os(Android)
                // By the thread itself: from another one it takes three system calls.
                unsafe pthread_setname_np(pthread_self(), name.description)
            #endif
            body()
        }
    }
    // Safe: the thread takes the one reference over; if it was not started, it is released below.
    let argument = unsafe Unmanaged.passRetained(Start(name, body)).toOpaque()
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    unsafe pthread_attr_setstacksize(&attributes, 512 * 1024)
    // A number in Glibc and Bionic, a pointer elsewhere.
    #if canImport(Darwin) || canImport(Musl)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let code = unsafe pthread_create(
        &thread, &attributes,
        { raw in
            // Some C libraries declare that it is never nil.
            let argument: UnsafeMutableRawPointer? = unsafe raw
            unsafe Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue().run()
            // Nothing reads the result. Bionic of the NDK's release 27 does not allow nil.
            return unsafe raw
        }, unsafe argument)
    unsafe pthread_attr_destroy(&attributes)
    guard code != 0 else { return }
    unsafe Unmanaged<Start>.fromOpaque(argument).release()
    throw TransportError(
        .systemLimit,
        "The process cannot start the thread \(name): \(System.describe(code)). End some threads, or raise the limit of "
            + "threads (ulimit -u).", errno: code)
}

/// Lets the calling thread's short sleeps end on time, where the system rounds them up.
func sleepPrecisely() {
    #if os(Linux) || os(Android)
        sleep_precisely()
    #endif
}

/// A thread of its own for work that blocks: jobs run one after the other, in the order in which they were given.
///
/// The thread ends with the last reference, after the jobs that it was given.
package final class SerialThread: Sendable {
    /// What the thread holds on to; not the `SerialThread`, whose end it waits for.
    // Safe to use: mutex and condition are initialized as long as the queue lives.
    @safe
    private final class Queue: @unchecked Sendable {
        // Sendable because `jobs` and `isOver` are touched with `mutex` held only.
        let mutex: UnsafeMutablePointer<pthread_mutex_t>
        let condition: UnsafeMutablePointer<pthread_cond_t>
        var jobs: [@Sendable () -> Void] = []
        var isOver = false

        init() {
            unsafe mutex = .allocate(capacity: 1)
            unsafe condition = .allocate(capacity: 1)
            unsafe pthread_mutex_init(mutex, nil)
            unsafe pthread_cond_init(condition, nil)
        }

        deinit {
            unsafe pthread_mutex_destroy(mutex)
            unsafe pthread_cond_destroy(condition)
            unsafe mutex.deallocate()
            unsafe condition.deallocate()
        }

        func run() {
            var taken: [@Sendable () -> Void] = []
            while true {
                unsafe pthread_mutex_lock(mutex)
                while jobs.isEmpty && !isOver { unsafe pthread_cond_wait(condition, mutex) }
                swap(&taken, &jobs)
                let ends = isOver && taken.isEmpty
                unsafe pthread_mutex_unlock(mutex)
                if ends { return }
                for job in taken { job() }
                // The memory serves for what comes next, unless that was a crowd.
                taken.removeAll(keepingCapacity: taken.capacity <= 64)
            }
        }

        /// Changes what the thread waits for. It is woken without the lock, which it would only wait for again, and
        /// only if it may be asleep.
        func change(_ body: (Queue) -> Void) {
            unsafe pthread_mutex_lock(mutex)
            let mayBeAsleep = jobs.isEmpty
            body(self)
            unsafe pthread_mutex_unlock(mutex)
            if mayBeAsleep { unsafe pthread_cond_signal(condition) }
        }
    }

    private let queue = Queue()
    /// Where the jobs run in a simulation, which has one thread; nil outside of one.
    private let simulated: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// - Parameter loop: of the owner: in a simulation the jobs run there.
    package init(named name: StaticString, for loop: EventLoop) throws(TransportError) {
        simulated = loop.world?.makeThread(on: loop)
        guard simulated == nil else { return }
        let queue = queue
        try startThread(named: name) { queue.run() }
    }

    deinit {
        queue.change { $0.isOver = true }
    }

    package func run(_ job: @escaping @Sendable () -> Void) {
        if let simulated { return simulated(job) }
        queue.change { $0.jobs.append(job) }
    }

    /// Runs `job` as work that an advance of the loop's ``ManualClock`` waits for, together with what `job` hands in to the
    /// loop.
    package func run(asWorkOf loop: EventLoop, _ job: @escaping @Sendable () -> Void) {
        guard loop.isManual else { return run(job) }
        loop.beginWork()
        run {
            job()
            loop.execute { loop.endWork() }
        }
    }
}
