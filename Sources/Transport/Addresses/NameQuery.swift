import MessagingWire

/// One question about a name. IPv4 and IPv6 are asked for apart, because a name server may answer one and not the
/// other.
package struct NameQuery: Hashable, Sendable {
    package enum Family: Sendable {
        case ipv4, ipv6
        /// Both, in the system's order of preference.
        case any
    }

    package let name: String
    package let family: Family

    package init(_ name: String, _ family: Family) {
        self.name = name
        self.family = family
    }

    package typealias Answer = Result<[SocketAddress], TransportError>

    /// Asks the system with `getaddrinfo`, which blocks. The addresses have port 0; there is at least one.
    package func lookUp() -> Answer {
        do throws(TransportError) { return .success(try lookUp(flags: 0)) } catch { return .failure(error) }
    }

    /// The address that the name is, if it is one and not a name. Does not block.
    var literal: [SocketAddress]? { try? lookUp(flags: Int32(AI_NUMERICHOST)) }

    private func lookUp(flags: Int32) throws(TransportError) -> [SocketAddress] {
        // getaddrinfo would see the part before it.
        guard !name.utf8.contains(0) else {
            throw TransportError(.unknownHost, "The host name contains a NUL character. Remove it.")
        }
        var hints = unsafe addrinfo()
        unsafe hints.ai_flags = flags
        unsafe hints.ai_family =
            switch family {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .any: AF_UNSPEC
            }
        unsafe hints.ai_socktype = LibC.streamSocketType
        // Safe: the list and its addresses are the system's until `freeaddrinfo`, and are copied before.
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(name, nil, &hints, &list)
        guard code == 0, let list = unsafe list else { throw failure(code, errno: errno) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry: UnsafeMutablePointer<addrinfo>? = unsafe list
        while let current = unsafe entry {
            if let address = unsafe current.pointee.ai_addr {
                unsafe addresses.append(SocketAddress(address, size: current.pointee.ai_addrlen))
            }
            unsafe entry = current.pointee.ai_next
        }
        guard !addresses.isEmpty else { throw failure(0, errno: 0) }
        return addresses
    }

    /// - Parameters:
    ///   - code: what `getaddrinfo` returned; 0 if it found no address.
    ///   - number: the system's reason; it counts with `EAI_SYSTEM` alone.
    func failure(_ code: Int32, errno number: Int32) -> TransportError {
        if code == EAI_SYSTEM { return failure(ofSystem: number) }
        if code == EAI_MEMORY { return failure(ofSystem: ENOMEM) }
        let reason = unsafe code == 0 ? "no address" : String(cString: gai_strerror(code))
        guard code == EAI_AGAIN else {
            return TransportError(
                .unknownHost,
                "Cannot find the host '\(name)': \(reason). Check its spelling and DNS." + Punycode.advice(on: name)
                    + TransportError.sandboxAdvice)
        }
        return TransportError(
            .unknownHost,
            "DNS did not answer for the host '\(name)': \(reason). Check the name servers of this machine."
        )
    }

    private func failure(ofSystem code: Int32) -> TransportError {
        let failure = "Cannot look up the host '\(name)'"
        if System.isShortage(code) { return .shortage(failure, code) }
        return TransportError(
            .unknownHost, "\(failure): \(System.describe(code)). Check how this machine looks names up.", errno: code)
    }

    /// The time to connect was over before DNS had answered.
    package static func late(of host: String) -> TransportError {
        TransportError(
            .unknownHost,
            "DNS did not answer in time for the host '\(host)'. Check the name servers of this machine, or allow more time to connect."
        )
    }

    /// The time to connect was over before a thread was free for the look-up.
    static func stuck(of host: String) -> TransportError {
        TransportError(
            .unknownHost,
            "Cannot look up the host '\(host)': other names still wait for DNS, which does not answer. Check the name servers of this machine."
        )
    }
}

extension NameQuery {
    /// The addresses that the system's file of hosts has for the name; nil if it has none. Reads the file, which blocks.
    package func knownHere() -> Answer? {
        guard let bytes = try? Directory("/etc").contents(of: "hosts") else { return nil }
        return known(in: String(decoding: bytes, as: UTF8.self))
    }

    /// The addresses that lines of addresses and names have for this one.
    package func known(in hosts: String) -> Answer? {
        var addresses: [SocketAddress] = []
        let wanted = name.lowercased()
        for line in hosts.split(whereSeparator: \.isNewline) {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard words.count > 1, words.dropFirst().contains(where: { $0.lowercased() == wanted }) else { continue }
            addresses += NameQuery(String(words[0]), family).literal ?? []
        }
        return addresses.isEmpty ? nil : .success(addresses)
    }
}
