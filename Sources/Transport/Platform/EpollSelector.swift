#if os(Linux) || os(Android)
    /// `epoll`, woken by an `eventfd`, and by a `timerfd` when the system wakes from sleep.
    // Safe to use: the events are written by the system within their number, read up to it, and freed with the object.
    @safe
    final class EpollSelector: Selector, @unchecked Sendable {
        // Sendable because the descriptors never change, `wake()` only writes to one of them,
        // and all else is called by the loop's thread alone.
        let epoll: Int32
        private let wakeDescriptor: Int32
        /// Never expires, and is ready when the time of day jumps, as it does when the system wakes: the wait itself stands still
        /// while the system sleeps. Negative where the system refuses it; a wait then ends late after a sleep.
        let clockDescriptor: Int32
        /// Filled by the system only.
        private let ready = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
        #if !os(Android)
            private var isPrecise = true
        #endif
        private static let wakeToken = UInt64.max

        /// The kernel's numbers: each C library declares them as another type.
        private enum EventBits {
            static let input: UInt32 = 0x1
            static let output: UInt32 = 0x4
            static let error: UInt32 = 0x8
            static let hangUp: UInt32 = 0x10
            static let edge: UInt32 = 1 << 31
        }

        init() throws(TransportError) {
            epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
            wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
            let code = errno
            clockDescriptor = make_clock_change_descriptor()
            guard epoll >= 0, wakeDescriptor >= 0 else { throw noDescriptorForLoop(code) }
            // Each write, and each jump of the clock, is reported once, so that the counters need not be read.
            control(EPOLL_CTL_ADD, wakeDescriptor, Self.wakeToken, .read, EventBits.edge)
            if clockDescriptor >= 0 { control(EPOLL_CTL_ADD, clockDescriptor, Self.wakeToken, .read, EventBits.edge) }
        }

        deinit {
            unsafe ready.deallocate()
            close(epoll)
            close(wakeDescriptor)
            if clockDescriptor >= 0 { close(clockDescriptor) }
        }

        func add(_ descriptor: Int32, token: Int64, interest: Readiness) {
            control(EPOLL_CTL_ADD, descriptor, UInt64(bitPattern: token), interest)
        }

        func change(_ descriptor: Int32, token: Int64, interest: Readiness) {
            control(EPOLL_CTL_MOD, descriptor, UInt64(bitPattern: token), interest)
        }

        func remove(_ descriptor: Int32, token: Int64) {
            var event = unsafe epoll_event()
            _ = unsafe epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, &event)
        }

        func wait(timeout: Int64, events: inout [ReadyEvent]) {
            let count = awaitEvents(timeout)
            guard count > 0 else { return }
            for index in 0..<Int(count) {
                let token = unsafe ready[index].data.u64
                if token == Self.wakeToken { continue }
                let flags = unsafe ready[index].events
                var readiness: Readiness = []
                if flags & EventBits.input != 0 { readiness.insert(.read) }
                if flags & EventBits.output != 0 { readiness.insert(.write) }
                if flags & (EventBits.error | EventBits.hangUp) != 0 { readiness.insert(.hangUp) }
                events.append(ReadyEvent(token: Int64(bitPattern: token), readiness: readiness))
            }
        }

        /// Milliseconds are what timers need; only the pauses of a link are shorter. On Android these take a millisecond.
        private func awaitEvents(_ timeout: Int64) -> Int32 {
            #if !os(Android)
                if timeout > 0 && timeout < 1_000_000 && isPrecise {
                    let count = unsafe epoll_wait_nanoseconds(epoll, ready.baseAddress, Int32(ready.count), timeout)
                    if count >= 0 || errno == EINTR { return count }
                    // Linux before 5.11, or a sandbox that does not know the call.
                    isPrecise = false
                }
            #endif
            return unsafe epoll_wait(epoll, ready.baseAddress!, Int32(ready.count), pollMilliseconds(timeout))
        }

        func wake() {
            var one: UInt64 = 1
            _ = unsafe write(wakeDescriptor, &one, 8)
        }

        private func control(
            _ operation: Int32, _ descriptor: Int32, _ token: UInt64, _ interest: Readiness, _ mode: UInt32 = 0
        ) {
            var event = unsafe epoll_event()
            unsafe event.events = mode
            if interest.contains(.read) { unsafe event.events |= EventBits.input }
            if interest.contains(.write) { unsafe event.events |= EventBits.output }
            unsafe event.data.u64 = token
            _ = unsafe epoll_ctl(epoll, operation, descriptor, &event)
        }
    }
#endif
