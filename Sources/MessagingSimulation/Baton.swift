#if SIMULATION
    import Synchronization
    import Transport

    /// In builds with `-D SIMULATION` a simulation has three threads, that of the loop and two that run the tasks of the body,
    /// of which one runs at a time: the one that holds the baton. It may change hands wherever a thread that holds no lock is
    /// about to take one, or has given one back, so that the seed also decides what happens between two locks.
    // Safe to hold: the pointers are made by `init` and freed by `deinit`.
    @safe
    final class Baton: @unchecked Sendable {
        // Sendable because everything below the pointers is touched with `mutex` held only.
        private let mutex: UnsafeMutablePointer<pthread_mutex_t>
        /// One for each thread.
        private let conditions: UnsafeMutablePointer<pthread_cond_t>
        private var random: SplitMix
        private var runners: [Runner] = []
        private var holder = 0
        private var turns = 0
        private var tasks: [UnownedJob] = []
        private var hasBegun = false
        /// Whether another thread than that of the loop has had the baton since the loop has last asked.
        private var othersHaveRun = false
        private var isOver = false
        private let executor: SimulatedExecutor

        /// One thread. The first one is that of the loop, which always has something to look for.
        private struct Runner {
            let thread: UInt
            var isIdle = false
            /// For that many turns it runs only if no other thread can: other threads may do much between two of its
            /// locks.
            var sleepsUntil = 0
            /// How many locks it holds.
            var locks = 0
        }

        private static let workerCount = 2

        init(seed: UInt64, executor: SimulatedExecutor) {
            self.executor = executor
            random = SplitMix(seed: seed, part: 5)
            unsafe mutex = .allocate(capacity: 1)
            unsafe mutex.initialize(to: pthread_mutex_t())
            unsafe pthread_mutex_init(mutex, nil)
            unsafe conditions = .allocate(capacity: 1 + Self.workerCount)
            for index in 0...Self.workerCount {
                unsafe (conditions + index).initialize(to: pthread_cond_t())
                unsafe pthread_cond_init(conditions + index, nil)
            }
        }

        deinit {
            unsafe pthread_mutex_destroy(mutex)
            for index in 0...Self.workerCount { unsafe pthread_cond_destroy(conditions + index) }
            unsafe mutex.deallocate()
            unsafe conditions.deallocate()
        }

        private func locked<Result>(_ body: () -> Result) -> Result {
            unsafe pthread_mutex_lock(mutex)
            defer { unsafe pthread_mutex_unlock(mutex) }
            return body()
        }

        // MARK: Life

        /// Begins on the loop's thread, which holds the baton first.
        func begin(on loop: EventLoop) {
            add(Runner(thread: currentThreadNumber))
            for number in 1...Self.workerCount {
                // The world can continue with one thread less.
                guard (try? startThread(named: "simulation") { self.work(on: loop) }) != nil else { continue }
                locked { while runners.count == number { unsafe pthread_cond_wait(conditions, mutex) } }
            }
            locked { hasBegun = true }
        }

        private func add(_ runner: Runner) {
            locked {
                runners.append(runner)
                unsafe pthread_cond_signal(conditions)
            }
        }

        /// From now on tasks run on the loop; on the loop's thread.
        func end() {
            locked {
                isOver = true
                for index in runners.indices { unsafe pthread_cond_signal(conditions + index) }
            }
        }

        // MARK: Tasks

        /// Takes a task over that is ready to run; returns false when the world is over.
        func enqueue(_ task: UnownedJob) -> Bool {
            locked {
                if isOver { return false }
                tasks.append(task)
                for index in runners.indices { runners[index].isIdle = false }
                return true
            }
        }

        /// Whether the caller is one of the threads.
        var isCurrent: Bool { locked { runners.contains { $0.thread == currentThreadNumber } } }

        /// Runs tasks until the world is over.
        private func work(on loop: EventLoop) {
            WorldThreads.begin(on: loop)
            add(Runner(thread: currentThreadNumber))
            while let task = nextTask() { unsafe task.runSynchronously(on: executor.asUnownedTaskExecutor()) }
            WorldThreads.end()
        }

        /// The next task for the caller, which has the baton then; nil when the world is over and no task is left.
        private func nextTask() -> UnownedJob? {
            locked {
                let me = runners.firstIndex { $0.thread == currentThreadNumber } ?? 0
                while true {
                    if !isOver, !(hasBegun && holder == me) {
                        unsafe pthread_cond_wait(conditions + me, mutex)
                    } else if !tasks.isEmpty {
                        return tasks.remove(at: random.below(tasks.count))
                    } else if isOver {
                        return nil
                    } else {
                        runners[me].isIdle = true
                        hand(from: me, mayKeep: false)
                    }
                }
            }
        }

        // MARK: Turns

        /// Lets other threads run while the loop has nothing to do; returns false when they have nothing to do either, and
        /// have left nothing for the loop since it has last asked. On the loop's thread.
        func letOthersRun() -> Bool {
            locked {
                guard !isOver else { return false }
                hand(from: 0, mayKeep: false)
                wait(for: 0)
                defer { othersHaveRun = false }
                return othersHaveRun
            }
        }

        /// From now on a thread gives the baton to no other, as if it held a lock; by -1 no longer.
        func keep(_ change: Int) {
            locked {
                guard let me = runners.firstIndex(where: { $0.thread == currentThreadNumber }) else { return }
                runners[me].locks += change
            }
        }

        /// The calling thread is about to take a lock, or has given one back.
        func changeLocks(before: Int, after: Int) {
            locked {
                guard let me = runners.firstIndex(where: { $0.thread == currentThreadNumber }) else { return }
                runners[me].locks += before
                if hasBegun, !isOver, holder == me, runners[me].locks == 0 {
                    hand(from: me, mayKeep: true)
                    wait(for: me)
                }
                runners[me].locks += after
            }
        }

        /// Gives the baton to a thread that has something to do; with `mutex` held.
        private func hand(from me: Int, mayKeep: Bool) {
            turns += 1
            if mayKeep {
                let choice = random.below(64)
                if choice > 16 { return }
                if choice == 0 { runners[me].sleepsUntil = turns + 1 << random.below(12) }
            }
            let ready = runners.indices.filter { $0 != me && !runners[$0].isIdle }
            let awake = ready.filter { runners[$0].sleepsUntil <= turns }
            let choices = awake.isEmpty && !mayKeep ? ready : awake
            guard !choices.isEmpty else { return }
            holder = choices[random.below(choices.count)]
            if holder != 0 { othersHaveRun = true }
            unsafe pthread_cond_signal(conditions + holder)
        }

        /// With `mutex` held.
        private func wait(for me: Int) {
            while holder != me, !isOver { unsafe pthread_cond_wait(conditions + me, mutex) }
        }
    }
#endif
