import Transport

/// Keeps tasks without an executor, which run on Swift's pool of threads, on the loop of the simulation that starts or
/// resumes them. The first simulation of a process sets the runtime's hook; it passes everything else on.
enum TaskHooks {
    /// The C conventions of these functions are those of Swift's, as long as all arguments are pointers.
    private typealias Enqueue = @convention(c) (OpaquePointer) -> Void
    private typealias Hook = @convention(c) (OpaquePointer, Enqueue) -> Void

    /// Whether the runtime has the hook.
    static let isInstalled: Bool = {
        // Safe: the variable lives as long as the process, and has this type (swift_task_enqueueGlobal_hook in the runtime's
        // Concurrency.h).
        guard let symbol = unsafe dlsym(dlopen(nil, RTLD_NOW), "swift_task_enqueueGlobal_hook") else { return false }
        let hook: Hook = { job, enqueue in
            guard let loop = WorldThreads.currentLoop, let world = loop.world else { return unsafe enqueue(job) }
            // Safe: both are a pointer to the job.
            unsafe world.run(unsafeBitCast(job, to: UnownedJob.self), on: loop)
        }
        unsafe symbol.assumingMemoryBound(to: Optional<Hook>.self).pointee = hook
        return true
    }()
}
