// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Dispatch
    import Glibc
    import Synchronization

    /// One thread that waits for the sockets of all fake connections; each report ends the watch that it answers.
    final class FakePoller: Sendable {
        static let shared = FakePoller()

        private struct Watch {
            let descriptor: Int32
            let queue: DispatchQueue
            let ready: @Sendable () -> Void
            var events: Int16
        }

        private let watches = Mutex<[Int: Watch]>([:])
        private let ends: (reader: Int32, writer: Int32)

        private init() {
            var ends: [Int32] = [-1, -1]
            pipe(&ends)
            for end in ends {
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            }
            self.ends = (ends[0], ends[1])
            Thread.start { Self.shared.run() }
        }

        /// Calls `ready` on `queue` once one of the events has come. Replaces what `token` waited for before.
        func watch(
            _ token: Int, _ descriptor: Int32, _ events: Int32, on queue: DispatchQueue,
            _ ready: @escaping @Sendable () -> Void
        ) {
            watches.withLock {
                $0[token] = Watch(descriptor: descriptor, queue: queue, ready: ready, events: Int16(events))
            }
            wake()
        }

        func unwatch(_ token: Int) {
            watches.withLock { _ = $0.removeValue(forKey: token) }
            wake()
        }

        private func wake() {
            var byte: UInt8 = 1
            _ = write(ends.writer, &byte, 1)
        }

        private func run() {
            while true {
                var tokens = [-1]
                var descriptors = [pollfd(fd: ends.reader, events: Int16(POLLIN), revents: 0)]
                watches.withLock { watches in
                    for (token, watch) in watches {
                        tokens.append(token)
                        descriptors.append(pollfd(fd: watch.descriptor, events: watch.events, revents: 0))
                    }
                }
                poll(&descriptors, nfds_t(descriptors.count), -1)
                var bytes = [UInt8](repeating: 0, count: 256)
                while read(ends.reader, &bytes, bytes.count) > 0 {}
                for (token, descriptor) in zip(tokens, descriptors).dropFirst() where descriptor.revents != 0 {
                    guard let watch = watches.withLock({ $0.removeValue(forKey: token) }) else { continue }
                    watch.queue.async(execute: watch.ready)
                }
            }
        }

        private enum Thread {
            static func start(_ body: @escaping @Sendable () -> Void) {
                final class Box {
                    let body: @Sendable () -> Void
                    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
                }
                var thread = pthread_t()
                pthread_create(
                    &thread, nil,
                    { raw in
                        Unmanaged<Box>.fromOpaque(raw!).takeRetainedValue().body()
                        return nil
                    }, Unmanaged.passRetained(Box(body)).toOpaque())
                pthread_detach(thread)
            }
        }
    }
#endif
