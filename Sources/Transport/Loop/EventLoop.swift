import Synchronization

/// One thread that waits for descriptors, deadlines and posted work, and serves every connection that lives on it.
///
/// All connections share `EventLoop.shared` unless they are given another. Handlers run on the loop's thread, one at
/// a time, and must never block it.
package final class EventLoop: Sendable {
    /// The loop that connections use by default; its thread starts with its first use and lives as long as the process.
    package static let shared = EventLoop.start()

    /// Starts a loop of its own, with its own thread.
    package static func start(selector kind: SelectorKind = .automatic) -> EventLoop {
        do {
            let loop = EventLoop(selector: try kind.make())
            startThread(named: "messaging-loop") { loop.run() }
            return loop
        } catch {
            // No descriptor left for the loop itself: nothing that this library does could work.
            fatalError("swift-messaging: \(error)")
        }
    }

    private struct Posted {
        let handler: LoopHandler
        let code: Int
    }

    private struct Inbox {
        var posted: [Posted] = []
        var jobs: [@Sendable () -> Void] = []
        var wakeIsDue = false
        var stopping = false

        /// Only the first post after the loop last looked pays for waking it.
        mutating func claimWake() -> Bool {
            if wakeIsDue { return false }
            wakeIsDue = true
            return true
        }
    }

    /// What only the loop's thread touches.
    private final class Inside: @unchecked Sendable {
        // Sendable because every access is on the loop's thread; the loop hands it to no one.
        var timers = TimerHeap()
        var handlers: [LoopHandler?] = []
        var generations: [Int] = []
        var freeSlots: [Int] = []
        var scratch: [ObjectIdentifier: AnyObject] = [:]
        let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readBufferSize, alignment: 16)
        var thread: ThreadIdentity?
        deinit { readBuffer.deallocate() }
    }

    /// The size of the one buffer that all connections of a loop read into.
    package static let readBufferSize = 256 * 1024

    private let selector: any Selector
    private let inbox = Mutex(Inbox())
    private let inside = Inside()

    private init(selector: any Selector) {
        self.selector = selector
    }

    // MARK: From any thread

    /// Calls `handler.posted(code)` soon, in the order of posting.
    package func post(_ handler: LoopHandler, _ code: Int) {
        let wake = inbox.withLock { inbox in
            inbox.posted.append(Posted(handler: handler, code: code))
            return inbox.claimWake()
        }
        if wake { selector.wake() }
    }

    /// Runs `job` soon on the loop's thread. For the slow edges; `post` allocates nothing.
    package func execute(_ job: @escaping @Sendable () -> Void) {
        let wake = inbox.withLock { inbox in
            inbox.jobs.append(job)
            return inbox.claimWake()
        }
        if wake { selector.wake() }
    }

    /// Ends the thread of a loop that was started for a test or a benchmark, after the work that is already posted.
    package func stop() {
        inbox.withLock { $0.stopping = true }
        selector.wake()
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool { ThreadIdentity.current == inside.thread }

    // MARK: On the loop's thread

    /// The buffer that handlers read into; its content is theirs until they return.
    package var readBuffer: UnsafeMutableRawBufferPointer { inside.readBuffer }

    /// Watches `descriptor` for `handler` until `unregister`.
    package func register(_ handler: LoopHandler, descriptor: Int32, interest: Readiness) {
        let slot = inside.freeSlots.popLast() ?? inside.handlers.count
        if slot == inside.handlers.count {
            inside.handlers.append(nil)
            inside.generations.append(0)
        }
        inside.handlers[slot] = handler
        handler.token = slot | inside.generations[slot] << 32
        selector.add(descriptor, token: handler.token, interest: interest)
    }

    package func change(_ handler: LoopHandler, descriptor: Int32, interest: Readiness) {
        guard handler.token >= 0 else { return }
        selector.change(descriptor, token: handler.token, interest: interest)
    }

    package func unregister(_ handler: LoopHandler, descriptor: Int32) {
        guard handler.token >= 0 else { return }
        selector.remove(descriptor, token: handler.token)
        let slot = handler.token & 0xFFFF_FFFF
        inside.handlers[slot] = nil
        // Events already fetched for the old owner carry the old generation and are dropped.
        inside.generations[slot] = (inside.generations[slot] + 1) & 0x3FFF_FFFF
        inside.freeSlots.append(slot)
        handler.token = -1
    }

    /// Sets, moves or (with `.max`) cancels the one deadline of `handler`.
    package func setDeadline(_ handler: LoopHandler, to deadline: Int64) {
        inside.timers.set(handler, to: deadline)
    }

    /// The one object of its type that all handlers of this loop share for scratch.
    package func scratch<Scratch: AnyObject>(_ type: Scratch.Type, make: () -> Scratch) -> Scratch {
        if let existing = inside.scratch[ObjectIdentifier(type)] { return unsafeDowncast(existing, to: type) }
        let made = make()
        inside.scratch[ObjectIdentifier(type)] = made
        return made
    }

    private func run() {
        inside.thread = .current
        var events: [ReadyEvent] = []
        var posted: [Posted] = []
        var jobs: [@Sendable () -> Void] = []
        while true {
            let next = inside.timers.nextDeadline
            let timeout = next == .max ? Int64.max : max(0, next &- MonotonicClock.now)
            events.removeAll(keepingCapacity: true)
            selector.wait(timeout: timeout, events: &events)

            let now = MonotonicClock.now
            for event in events {
                let slot = event.token & 0xFFFF_FFFF
                guard inside.generations[slot] == event.token >> 32 else { continue }
                inside.handlers[slot]?.ready(event.readiness, at: now)
            }
            let stopping = inbox.withLock { inbox in
                swap(&inbox.posted, &posted)
                swap(&inbox.jobs, &jobs)
                inbox.wakeIsDue = false
                return inbox.stopping
            }
            for item in posted { item.handler.posted(item.code, at: now) }
            for job in jobs { job() }
            posted.removeAll(keepingCapacity: posted.capacity <= 4096)
            jobs.removeAll(keepingCapacity: jobs.capacity <= 4096)
            while let handler = inside.timers.popExpired(at: now) {
                handler.deadlineReached(at: now)
            }
            if stopping { return }
        }
    }
}
