#if canImport(Glibc)
    import Foundation
    import Synchronization

    /// A name server on a loopback address, over UDP and TCP, with one answer to every question; ends with the last
    /// reference.
    public final class NameServer: Sendable {
        public enum Answer: Sendable {
            /// SRV records.
            case servers([(priority: UInt8, port: Int, target: String)])
            /// The same, too long for UDP: whoever asks has to come again over TCP.
            case truncated([(priority: UInt8, port: Int, target: String)])
            /// A code such as 3, NXDOMAIN, without records.
            case failure(UInt8)
            /// None.
            case silence
        }

        private let port: UInt16
        /// How long a question waits for an answer, in seconds: for one that comes also on a busy machine.
        private let patience: Int32
        private let questions = Mutex<[String]>([])
        private let isOver = Atomic(false)

        /// The names that were asked for, with the transport in front, such as `udp _mqtt._tcp.example.test`.
        public var asked: [String] { questions.withLock { $0 } }

        public init(_ answer: Answer) throws {
            port = UInt16(FreePort.next())
            if case .silence = answer { patience = 1 } else { patience = 30 }
            let address = SocketAddress.loopback(port)
            let (udp, tcp) = (socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0), address.makeSocket())
            guard address.withPointer({ bind(udp, $0, $1) }) == 0, address.withPointer({ bind(tcp, $0, $1) }) == 0,
                listen(tcp, 4) == 0
            else { throw SystemCallError("listening on \(port)") }
            // A thread of its own, since it blocks, which holds the server only while it works.
            Thread.detachNewThread { [weak self] in
                while self?.isOver.load(ordering: .relaxed) == false {
                    var entries = [udp, tcp].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                    guard poll(&entries, 2, 20) > 0, let self else { continue }
                    if entries[0].revents != 0 { answerDatagram(udp, answer) }
                    if entries[1].revents != 0 { answerConnection(tcp, answer) }
                }
                close(udp)
                close(tcp)
            }
        }

        deinit { isOver.store(true, ordering: .relaxed) }

        /// Makes this the only name server that the calling thread asks through the C library, once.
        public func serveThisThread() {
            typealias Initialize = @convention(c) () -> Int32
            typealias State = @convention(c) () -> UnsafeMutableRawPointer
            let library = dlopen(nil, RTLD_NOW)
            _ = unsafeBitCast(dlsym(library, "__res_init"), to: Initialize.self)()
            // The head of struct __res_state: retrans, retry, options, nscount, nsaddr_list.
            let state = unsafeBitCast(dlsym(library, "__res_state"), to: State.self)()
            state.storeBytes(of: patience, as: Int32.self)
            state.storeBytes(of: 1, toByteOffset: 4, as: Int32.self)
            state.storeBytes(of: 1, toByteOffset: 16, as: Int32.self)
            SocketAddress.loopback(port).withPointer { address, _ in
                state.advanced(by: 20).copyMemory(from: address, byteCount: 16)
            }
        }

        private func answerDatagram(_ socket: Int32, _ answer: Answer) {
            var query = [UInt8](repeating: 0, count: 512)
            var (peer, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            withUnsafeMutablePointer(to: &peer) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
                    query.removeLast(512 - max(0, recvfrom(socket, &query, 512, 0, peer, &size)))
                    guard let message = message(query, answer, "udp") else { return }
                    _ = sendto(socket, message, message.count, 0, peer, size)
                }
            }
        }

        private func answerConnection(_ listener: Int32, _ answer: Answer) {
            let connection = accept(listener, nil, nil)
            defer { close(connection) }
            // Whoever connects sends its query at once, the size before it.
            var query = [UInt8](repeating: 0, count: 512)
            var count = 0
            while count < 2 || count < 2 + Int(query[0]) << 8 + Int(query[1]) {
                let more = query.withUnsafeMutableBytes { read(connection, $0.baseAddress! + count, 512 - count) }
                guard more > 0 else { return }
                count += more
            }
            guard let message = message(Array(query[2..<count]), answer, "tcp") else { return }
            let bytes = [UInt8(message.count >> 8), UInt8(message.count & 255)] + message
            _ = write(connection, bytes, bytes.count)
        }

        /// The answer to a query with one question (RFC 1035 4.1).
        private func message(_ query: [UInt8], _ answer: Answer, _ transport: String) -> [UInt8]? {
            var (at, labels) = (12, [transport])
            guard query.count > at else { return nil }
            while query[at] != 0 {
                labels.append(String(decoding: query[(at + 1)...(at + Int(query[at]))], as: UTF8.self))
                at += 1 + Int(query[at])
            }
            questions.withLock { $0.append("\(transport) \(labels.dropFirst().joined(separator: "."))") }
            let question = query[12..<(at + 5)]
            func head(_ flags: UInt8, _ code: UInt8, _ answers: Int) -> [UInt8] {
                [query[0], query[1], flags, 0x80 | code, 0, 1, 0, UInt8(answers), 0, 0, 0, 0] + question
            }
            switch answer {
            case .silence: return nil
            case .failure(let code): return head(0x81, code, 0)
            case .truncated where transport == "udp": return head(0x83, 0, 0)
            case .servers(let servers), .truncated(let servers):
                return servers.reduce(head(0x81, 0, servers.count)) { message, server in
                    let labels = server.target.split(separator: ".")
                    var target: [UInt8] = labels.flatMap { [UInt8($0.utf8.count)] + $0.utf8 }
                    target.append(0)
                    // The name of the question, SRV, IN, 60 seconds; priority, weight and port.
                    let fixed: [UInt8] = [0xC0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0, UInt8(6 + target.count)]
                    let port = [UInt8(server.port >> 8), UInt8(server.port & 255)]
                    return message + fixed + [0, server.priority, 0, 1] + port + target
                }
            }
        }
    }
#endif
