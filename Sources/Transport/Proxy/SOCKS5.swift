import MessagingWire

/// The client's side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).
///
/// Every answer has a length that its first bytes tell, 262 at most.
struct SOCKS5: ProxyHandshake {
    private enum Phase { case choosingMethod, loggingIn, connecting, done }

    let subject: String
    private let login: [UInt8]?
    private let request: [UInt8]
    private var phase = Phase.choosingMethod
    private var answer: [UInt8] = []

    private static let version: UInt8 = 5
    private static let noAuthentication: UInt8 = 0
    private static let userNameAndPassword: UInt8 = 2
    private static let noneAcceptable: UInt8 = 0xFF

    init(_ proxy: ProxyServer, host: String, port: UInt16) throws(TransportError) {
        subject = "The SOCKS5 proxy \(proxy), asked for \(Endpoint.host(host, port: port)),"
        login = try proxy.login.map { login throws(TransportError) in try Self.encoded(login, proxy) }
        var request = [Self.version, 1, 0]
        if let literal = IPLiteral(host) {
            request.append(literal.bytes.count == 4 ? 1 : 4)
            request += literal.bytes
        } else {
            guard (1...255).contains(host.utf8.count), !host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x3A }) else {
                throw TransportError(
                    .badURL,
                    "A SOCKS5 proxy cannot connect to '\(host)'. A host name has 1 to 255 bytes without blanks.")
            }
            request += [3, UInt8(host.utf8.count)] + host.utf8
        }
        self.request = request + [UInt8(port >> 8), UInt8(port & 0xFF)]
    }

    private static func encoded(_ login: ProxyServer.Login, _ proxy: ProxyServer) throws(TransportError) -> [UInt8] {
        let (name, password) = (Array(login.userName.utf8), Array(login.password.utf8))
        guard (1...255).contains(name.count), (1...255).contains(password.count) else {
            throw TransportError(
                .badURL,
                "The SOCKS5 proxy \(proxy) needs a user name and a password of 1 to 255 bytes each. Correct those in its URL."
            )
        }
        return [1, UInt8(name.count)] + name + [UInt8(password.count)] + password
    }

    var isDone: Bool { phase == .done }

    mutating func begin(wire: inout [UInt8]) {
        let methods = login == nil ? [Self.noAuthentication] : [Self.noAuthentication, Self.userNameAndPassword]
        wire += [Self.version, UInt8(methods.count)] + methods
    }

    mutating func receive(_ bytes: RawSpan, wire: inout [UInt8]) throws(TransportError) -> Int {
        var index = 0
        while index < bytes.byteCount && !isDone {
            answer.append(bytes.byte(at: index))
            index += 1
            try takeAnswer(wire: &wire)
        }
        return index
    }

    private mutating func takeAnswer(wire: inout [UInt8]) throws(TransportError) {
        switch phase {
        case .choosingMethod:
            try requireVersion(Self.version)
            guard answer.count == 2 else { return }
            try begin(method: answer[1], wire: &wire)
        case .loggingIn:
            // The version of the negotiation inside, which some proxies confuse with that of SOCKS.
            guard answer[0] == 1 || answer[0] == Self.version else { throw garbage }
            guard answer.count == 2 else { return }
            guard answer[1] == 0 else {
                throw TransportError(
                    .proxyCredentialsRefused,
                    "\(subject) refused the user name or the password. Check those in its URL.")
            }
            connect(wire: &wire)
        case .connecting:
            try requireVersion(Self.version)
            if answer.count == 2, answer[1] != 0 { throw refusal(answer[1]) }
            guard let length = try replyLength(), answer.count == length else { return }
            phase = .done
        case .done:
            break
        }
        if phase == .done { answer = [] }
    }

    private mutating func begin(method: UInt8, wire: inout [UInt8]) throws(TransportError) {
        switch method {
        case Self.noAuthentication:
            connect(wire: &wire)
        case Self.userNameAndPassword:
            guard let login else { throw garbage }
            wire += login
            phase = .loggingIn
            answer = []
        case Self.noneAcceptable:
            throw TransportError(
                .proxyCredentialsRefused,
                login == nil
                    ? "\(subject) requires authentication. Put a user name and a password into its URL."
                    : "\(subject) supports no authentication that this client has. Configure the proxy to accept user names with passwords, or clients without them."
            )
        default:
            throw garbage
        }
    }

    private mutating func connect(wire: inout [UInt8]) {
        wire += request
        phase = .connecting
        answer = []
    }

    /// Bytes of the reply, as soon as they can be known; the address in it is of no use to a client.
    private func replyLength() throws(TransportError) -> Int? {
        guard answer.count >= 5 else { return nil }
        switch answer[3] {
        case 1: return 10
        case 3: return 7 + Int(answer[4])
        case 4: return 22
        default: throw garbage
        }
    }

    private func requireVersion(_ version: UInt8) throws(TransportError) {
        guard answer[0] == version else { throw garbage }
    }

    private var garbage: TransportError {
        TransportError(
            .proxyFailed, "\(subject) did not reply in SOCKS5. Is it a SOCKS5 proxy?")
    }

    private func refusal(_ reply: UInt8) -> TransportError {
        let words =
            switch reply {
            case 1: "general SOCKS server failure"
            case 2: "connection not allowed by ruleset"
            case 3: "network unreachable"
            case 4: "host unreachable"
            case 5: "connection refused"
            case 6: "TTL expired"
            case 7: "command not supported"
            case 8: "address type not supported"
            default: "a reply that RFC 1928 does not know"
            }
        return TransportError(.proxyRefused, "\(subject) refused with reply \(reply): \(words).")
    }
}
