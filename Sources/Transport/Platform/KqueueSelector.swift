#if canImport(Darwin)
    /// `kqueue`, woken by an event of its own.
    ///
    /// Unlike `epoll` and `poll` it reports nothing of a descriptor without an interest: a connection that was reset while
    /// it is neither read nor written is noticed by the next read or write.
    // Safe to use: the events are written by the system within their number, read up to it, and freed with the object.
    @safe
    final class KqueueSelector: Selector, @unchecked Sendable {
        // Sendable because the descriptor never changes, `wake()` only hands the system an event,
        // and all else is called by the loop's thread alone.
        private let queue: Int32
        /// Filled by the system only. With 64 bits for the token, where pointers have 32 as well.
        private let ready = UnsafeMutableBufferPointer<kevent64_s>.allocate(capacity: 256)

        init() throws(TransportError) {
            queue = kqueue()
            guard queue >= 0 else {
                throw noDescriptorForLoop(errno)
            }
            _ = fcntl(queue, F_SETFD, FD_CLOEXEC)
            // Reported once for each time it is triggered.
            apply([Self.event(0, EVFILT_USER, EV_ADD | EV_CLEAR, token: -1)])
        }

        deinit {
            unsafe ready.deallocate()
            close(queue)
        }

        func add(_ descriptor: Int32, token: Int64, interest: Readiness) {
            change(descriptor, token: token, interest: interest)
        }

        func change(_ descriptor: Int32, token: Int64, interest: Readiness) {
            // Adding an existing filter changes only its token. Removing a missing filter is refused, and the other
            // change is made nevertheless.
            apply([
                Self.event(descriptor, EVFILT_READ, interest.contains(.read) ? EV_ADD : EV_DELETE, token: token),
                Self.event(descriptor, EVFILT_WRITE, interest.contains(.write) ? EV_ADD : EV_DELETE, token: token),
            ])
        }

        func remove(_ descriptor: Int32, token: Int64) {
            change(descriptor, token: token, interest: [])
        }

        func wait(timeout: Int64, events: inout [ReadyEvent]) {
            let count = awaitEvents(timeout)
            guard count > 0 else { return }
            for index in 0..<Int(count) {
                let event = unsafe ready[index]
                guard Int32(event.filter) != EVFILT_USER else { continue }
                var readiness: Readiness = Int32(event.filter) == EVFILT_WRITE ? .write : .read
                let hasEnded = Int32(event.flags) & EV_EOF != 0
                // The end of what can be read is read; the rest are errors, and a peer that reads no more.
                if hasEnded, event.fflags != 0 || readiness == .write { readiness.insert(.hangUp) }
                events.append(ReadyEvent(token: Int64(bitPattern: event.udata), readiness: readiness))
            }
        }

        private func awaitEvents(_ timeout: Int64) -> Int32 {
            guard timeout != .max else {
                return unsafe kevent64(queue, nil, 0, ready.baseAddress, Int32(ready.count), 0, nil)
            }
            // The clock of deadlines continues while the machine sleeps, but this wait does not: overdue work runs at most
            // this long after waking.
            let nanoseconds = min(max(timeout, 0), 10_000_000_000)
            var time = timespec(
                tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
            return unsafe kevent64(queue, nil, 0, ready.baseAddress, Int32(ready.count), 0, &time)
        }

        func wake() {
            var event = Self.event(0, EVFILT_USER, 0, token: -1)
            event.fflags = UInt32(NOTE_TRIGGER)
            _ = unsafe kevent64(queue, &event, 1, nil, 0, 0, nil)
        }

        /// Hands in changes. Each is answered in its own place, so that one that is refused does not end the call.
        private func apply(_ changes: [kevent64_s]) {
            var answers = changes
            _ = unsafe kevent64(queue, changes, Int32(changes.count), &answers, Int32(answers.count), 0, nil)
        }

        private static func event(_ identity: Int32, _ filter: Int32, _ flags: Int32, token: Int64) -> kevent64_s {
            // Each change is answered, whether it was refused or not.
            let isChange = flags != 0
            return kevent64_s(
                ident: UInt64(UInt32(bitPattern: identity)), filter: Int16(filter),
                flags: UInt16(flags | (isChange ? EV_RECEIPT : 0)), fflags: 0, data: 0,
                udata: UInt64(bitPattern: token), ext: (0, 0))
        }
    }
#endif
