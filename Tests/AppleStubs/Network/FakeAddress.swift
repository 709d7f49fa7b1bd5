// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Glibc

    /// The sockets below the fake connections.
    enum FakeAddress {
        /// Starts to connect to the first address that takes it.
        static func connect(to endpoint: NWEndpoint) -> Result<Int32, NWError> {
            guard case .hostPort(.name(let name, _), let port) = endpoint else { return .failure(posix(EINVAL)) }
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            // kDNSServiceErr_NoSuchRecord
            guard getaddrinfo(name, "\(port.rawValue)", &hints, &list) == 0 else { return .failure(.dns(-65554)) }
            defer { freeaddrinfo(list) }
            var reason = ECONNREFUSED
            var entry = list
            while let address = entry?.pointee {
                entry = address.ai_next
                let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
                let descriptor = socket(address.ai_family, flags, 0)
                guard descriptor >= 0 else { return .failure(posix(errno)) }
                if Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 || errno == EINPROGRESS {
                    // Loopback answers at once, so that a refusal by the first family leads on to the second.
                    var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    if Glibc.poll(&poll, 1, 100) == 0 || error(of: descriptor) == 0 { return .success(descriptor) }
                    reason = ECONNREFUSED
                } else {
                    reason = errno
                }
                close(descriptor)
            }
            return .failure(posix(reason))
        }

        static func error(of descriptor: Int32) -> Int32 {
            var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
        }

        static func posix(_ code: Int32) -> NWError { .posix(POSIXErrorCode(rawValue: code)!) }
    }

    /// The handshake with a proxy; whatever it refuses is ECONNREFUSED or EAUTH's place, EACCES.
    final class FakeTunnel {
        private let proxy: ProxyConfiguration
        private let host: String
        private let port: UInt16
        private var answer: [UInt8] = []
        private var step = 0
        private(set) var isOpen = false

        init(_ proxy: ProxyConfiguration, to endpoint: NWEndpoint) {
            self.proxy = proxy
            guard case .hostPort(.name(let name, _), let port) = endpoint else { fatalError("not a host") }
            (host, self.port) = (name, port.rawValue)
        }

        func begin() -> [UInt8] {
            switch proxy.kind {
            case .socks5:
                return proxy.credential == nil ? [5, 1, 0] : [5, 2, 0, 2]
            case .http:
                let authority = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
                var lines = ["CONNECT \(authority) HTTP/1.1", "Host: \(authority)"]
                if let login = proxy.credential {
                    lines.append("Proxy-Authorization: Basic " + base64("\(login.username):\(login.password)"))
                }
                return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
            }
        }

        func receive(_ bytes: [UInt8]) -> Result<(reply: [UInt8], rest: [UInt8]), NWError> {
            answer += bytes
            return proxy.kind == .http ? receiveHTTP() : receiveSOCKS()
        }

        private func receiveHTTP() -> Result<(reply: [UInt8], rest: [UInt8]), NWError> {
            let end = Array("\r\n\r\n".utf8)
            guard let index = answer.indices.first(where: { answer[$0...].starts(with: end) }) else {
                return .success(([], []))
            }
            let status = String(decoding: answer[..<index], as: UTF8.self).split(separator: " ").dropFirst().first
            guard status == "200" else {
                return .failure(FakeAddress.posix(status == "407" || status == "401" ? EACCES : ECONNREFUSED))
            }
            isOpen = true
            return .success(([], Array(answer[(index + 4)...])))
        }

        private func receiveSOCKS() -> Result<(reply: [UInt8], rest: [UInt8]), NWError> {
            let request =
                [5, 1, 0, 3, UInt8(host.utf8.count)] + Array(host.utf8) + [UInt8(port >> 8), UInt8(port & 255)]
            switch step {
            case 0 where answer.count >= 2:
                let method = answer[1]
                answer.removeFirst(2)
                if method == 0 {
                    step = 2
                    return .success((request, []))
                }
                guard method == 2, let login = proxy.credential else { return .failure(FakeAddress.posix(EACCES)) }
                step = 1
                let (name, secret) = (Array(login.username.utf8), Array(login.password.utf8))
                return .success(([1, UInt8(name.count)] + name + [UInt8(secret.count)] + secret, []))
            case 1 where answer.count >= 2:
                guard answer[1] == 0 else { return .failure(FakeAddress.posix(EACCES)) }
                answer.removeFirst(2)
                step = 2
                return .success((request, []))
            case 2 where answer.count >= 5:
                guard answer[1] == 0 else { return .failure(FakeAddress.posix(ECONNREFUSED)) }
                let length = answer[3] == 1 ? 10 : answer[3] == 4 ? 22 : 7 + Int(answer[4])
                guard answer.count >= length else { return .success(([], [])) }
                isOpen = true
                return .success(([], Array(answer[length...])))
            default:
                return .success(([], []))
            }
        }

        private func base64(_ text: String) -> String {
            let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
            var (result, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
            for byte in text.utf8 {
                (bits, count) = (bits << 8 | UInt32(byte), count + 8)
                while count >= 6 {
                    count -= 6
                    result.append(digits[Int(bits >> count) & 63])
                }
            }
            if count > 0 { result.append(digits[Int(bits << (6 - count)) & 63]) }
            while result.count % 4 != 0 { result.append(UInt8(ascii: "=")) }
            return String(decoding: result, as: UTF8.self)
        }
    }
#endif
