import MessagingWire

/// Which of the device's networks a connection may use, and from where it leaves. The defaults leave both to the system.
///
///     var options = NetworkOptions()
///     options.allowsExpensive = false
///
/// They hold for connections to servers and to a proxy. A Unix-domain socket uses no network. If the system cannot honour
/// an option, connecting fails with the code `unsupported` and names it.
public struct NetworkOptions: Sendable, Hashable {
    /// Whether a network may be used that the system considers expensive, such as a cellular one or a personal hotspot.
    /// Default: true. Only Apple's systems can honour false.
    public var allowsExpensive = true
    /// Whether a network in Low Data Mode may be used. Default: true. Only Apple's systems can honour false.
    public var allowsConstrained = true
    /// The kind of interface that has to be used. Default: nil, any. Only Apple's systems can honour another value.
    public var interfaceType: InterfaceType?
    /// The name of the interface that has to be used, such as `en0` or `wwan0`. Default: nil, any.
    ///
    /// On Linux `SO_BINDTODEVICE`. The look-up of the server's name may use another interface there.
    public var interface: String?
    /// The address of this device that the connection leaves from, IPv4 or IPv6. Default: nil, any.
    ///
    /// Addresses of the server that are of the other family are not tried.
    public var localAddress: String?
    /// Whether to connect without the proxies of the system's settings where that is possible. Default: false. Only Apple's
    /// systems have such proxies for this library; a proxy of the configuration is used all the same.
    public var prefersNoProxies = false

    /// Makes options that leave everything to the system.
    public init() {}

    /// Whether all options are equal, texts by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.allowsExpensive == other.allowsExpensive && one.allowsConstrained == other.allowsConstrained
            && one.interfaceType == other.interfaceType && one.interface.hasSameBytes(as: other.interface)
            && one.localAddress.hasSameBytes(as: other.localAddress) && one.prefersNoProxies == other.prefersNoProxies
    }

    /// A kind of network interface.
    public struct InterfaceType: Sendable, Hashable {
        enum Kind { case wifi, cellular, wired }
        let kind: Kind

        /// Wi-Fi.
        public static let wifi = InterfaceType(kind: .wifi)
        /// A cellular network.
        public static let cellular = InterfaceType(kind: .cellular)
        /// Ethernet by cable.
        public static let wired = InterfaceType(kind: .wired)
    }
}

extension NetworkOptions {
    /// - Throws: `unsupported` for an option that sockets cannot honour.
    func checkForSockets() throws(TransportError) {
        let problem: String
        if !allowsExpensive {
            problem = "allowsExpensive = false"
        } else if !allowsConstrained {
            problem = "allowsConstrained = false"
        } else if interfaceType != nil {
            problem = "interfaceType"
        } else {
            return
        }
        throw TransportError(
            .unsupported,
            "This system cannot honour \(problem) of the network options: it does not report what kind a network is. Name "
                + "an interface instead.")
    }

    /// - Throws: `unsupported` for a text that is not an address.
    func localSocketAddress() throws(TransportError) -> SocketAddress? {
        guard let localAddress else { return nil }
        guard let address = NameQuery(localAddress, .any).literal?.first else {
            throw TransportError(
                .unsupported,
                "localAddress of the network options is '\(localAddress)'. Use an IPv4 or IPv6 address of this device.")
        }
        return address
    }

    /// The connection cannot leave as these options demand; `code` is the system's reason.
    func failure(_ code: Int32, toBind option: String, _ value: String) -> TransportError {
        switch code {
        case ENODEV, ENXIO:
            return TransportError(
                .unreachable, "This device has no interface '\(value)' now. Check \(option) of the network options.",
                errno: code)
        case EADDRNOTAVAIL:
            return TransportError(
                .unreachable,
                "This device does not have the address \(value) now. Check \(option) of the network options.",
                errno: code)
        default:
            // EPERM before Linux 5.7, EINVAL for a name that no interface can have.
            return TransportError(
                .unsupported,
                "This system cannot honour \(option) of the network options, which is '\(value)': "
                    + "\(System.describe(code)).", errno: code)
        }
    }
}

#if !canImport(Darwin)
    extension System {
        /// Makes a socket that is not connected yet use one interface. Returns 0, or why not.
        static func setInterface(_ descriptor: Int32, to name: String) -> Int32 {
            // The system would cut a longer name, and take an empty one for "any".
            let bytes = Array(name.utf8)
            let maximumSize = 15
            guard (1...maximumSize).contains(bytes.count), !bytes.contains(0) else { return EINVAL }
            let result = unsafe setsockopt(
                descriptor, SOL_SOCKET, SO_BINDTODEVICE, bytes, socklen_t(bytes.count))
            return result == 0 ? 0 : errno
        }

        /// Makes a socket that is not connected yet leave from an address. Returns 0, or why not.
        static func setLocalAddress(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
            // The port is chosen with the peer's address, so that many connections can share one.
            setOption(descriptor, level: Int32(IPPROTO_IP), name: IP_BIND_ADDRESS_NO_PORT, to: 1)
            let result = unsafe address.with(port: 0).withPointer { unsafe bind(descriptor, $0, $1) }
            return result == 0 ? 0 : errno
        }
    }
#endif
