/// Tasks that prefer the loop's thread: an answer that the loop reads resumes them without another thread.
extension EventLoop: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        run(UnownedJob(job))
    }
}
