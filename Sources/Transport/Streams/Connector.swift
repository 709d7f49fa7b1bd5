import MessagingWire

#if canImport(Network)
    import Network
#endif

/// Opens TCP and Unix-domain connections without blocking any thread.
package enum Connector {
    /// Connects to the first address of `endpoint` that answers, in the manner of RFC 8305: families alternate, and
    /// the next address is tried as well when one has not answered within 250 ms.
    ///
    /// - Parameters:
    ///   - peerName: what the stream calls its other end; the endpoint if it is nil.
    ///   - serviceClass: how urgent the connection's traffic is.
    ///   - network: where the connection leaves from.
    ///   - keepAlive: nanoseconds without traffic after which TCP asks for a sign of life; 0 for never.
    ///   - timeout: nanoseconds for all of it, the name's look-up included.
    ///   - avoided: addresses that are tried after the others, the first of these before the last.
    ///   - excluded: those of them that are not tried at all.
    ///   - chosen: called before this returns, with the address if the endpoint has others as well.
    ///   - resolver: looks names up; IPv4 and IPv6 apart, and IPv6 goes first if its answer comes within 50 ms.
    package static func connect(
        to endpoint: Endpoint, peerName: String? = nil, serviceClass: ServiceClass = .standard,
        network: NetworkOptions = NetworkOptions(), keepAlive: Int64 = 0, timeout: Int64,
        avoiding avoided: [SocketAddress] = [], excluding excluded: [SocketAddress] = [],
        chosen: @Sendable (AddressChoice?) -> Void = { _ in },
        resolver: Resolver = .shared, loop: EventLoop
    ) async throws(TransportError) -> SocketStream {
        let deadline = loop.now.advanced(byNanoseconds: timeout)
        let race = ConnectRace(
            endpoint: endpoint, peerName: peerName ?? "\(endpoint)", serviceClass: serviceClass, network: network,
            keepAlive: keepAlive, deadline: deadline, avoided: avoided, excluded: excluded, resolver: resolver,
            loop: loop)
        // On the loop's thread, or after the race: it does not change any more.
        defer { chosen(race.choice) }
        if loop.isCurrent {
            race.start()
            // A server on this machine has often accepted by now.
            if let stream = race.winner { return stream }
        }
        let call = PendingCall<ConnectRace.Outcome>()
        let outcome = await call.answer {
            loop.executeNow {
                race.start()
                race.end(call)
            }
        } onCancel: {
            loop.execute { race.cancel() }
        }
        return try outcome.get()
    }

    /// The order in which the addresses are tried: families alternate, and avoided addresses come last.
    static func order(_ addresses: [SocketAddress], avoiding avoided: [SocketAddress]) -> [SocketAddress] {
        let order = interleaved(addresses)
        guard !avoided.isEmpty else { return order }
        return order.filter { !avoided.contains($0) } + avoided.filter { order.contains($0) }
    }

    private static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first, addresses.count > 1 else { return addresses }
        let preferred = addresses.filter { $0.family == first.family }
        let others = addresses.filter { $0.family != first.family }
        var result: [SocketAddress] = []
        for index in 0..<max(preferred.count, others.count) {
            if index < preferred.count { result.append(preferred[index]) }
            if index < others.count { result.append(others[index]) }
        }
        return result
    }
}

/// The address of a connection, and the others that its endpoint has.
package final class AddressChoice: Sendable {
    package let address: SocketAddress
    package let others: [SocketAddress]
    /// Whether the name may have more addresses, because a look-up had not been answered yet.
    package let mayHaveMore: Bool

    init(_ address: SocketAddress, others: [SocketAddress], mayHaveMore: Bool) {
        self.address = address
        self.others = others
        self.mayHaveMore = mayHaveMore
    }
}

extension Connector {
    /// Connects without TLS by what the system advises: sockets on Linux and macOS, and for Unix-domain sockets
    /// everywhere; Network.framework on the other Apple systems, and on macOS for network options.
    package static func open(
        to endpoint: Endpoint, peerName: String? = nil, serviceClass: ServiceClass = .standard,
        network: NetworkOptions = NetworkOptions(), keepAlive: Int64 = 0, timeout: Int64,
        avoiding avoided: [SocketAddress] = [], excluding excluded: [SocketAddress] = [],
        chosen: @Sendable (AddressChoice?) -> Void = { _ in }, resolver: Resolver = .shared, loop: EventLoop
    ) async throws(TransportError) -> any ByteStream {
        if let world = loop.world { return try await world.connect(to: endpoint, timeout: timeout, on: loop) }
        if let stream = loop.connectInMemory(to: endpoint) { return stream }
        #if canImport(Network)
            #if os(macOS) || os(Linux)
                let usesNetwork = network != NetworkOptions()
            #else
                let usesNetwork = true
            #endif
            if usesNetwork, case .host = endpoint {
                return try await connectByNetwork(
                    to: endpoint, peerName: peerName, serviceClass: serviceClass, network: network,
                    keepAlive: keepAlive, timeout: timeout, loop: loop)
            }
        #endif
        return try await connect(
            to: endpoint, peerName: peerName, serviceClass: serviceClass, network: network, keepAlive: keepAlive,
            timeout: timeout, avoiding: avoided, excluding: excluded, chosen: chosen, resolver: resolver, loop: loop)
    }

    /// Connects with the system's TLS, where `contexts.usesSystem()` is true.
    package static func openSecurely(
        to endpoint: Endpoint, tls contexts: TLSContexts, protocols: [String], proxy: ProxyServer?,
        serviceClass: ServiceClass = .standard,
        network: NetworkOptions = NetworkOptions(), keepAlive: Int64 = 0, timeout: Int64, loop: EventLoop
    ) async throws(TransportError) -> any ByteStream {
        #if canImport(Network)
            return try await connectByNetwork(
                to: endpoint, secure: contexts, protocols: protocols, proxy: proxy, serviceClass: serviceClass,
                network: network, keepAlive: keepAlive, timeout: timeout, loop: loop)
        #else
            throw TransportError(
                .tlsUnavailable,
                "This system has no TLS of its own. Choose the implementation .openSSL in the TLS options.")
        #endif
    }
}

#if canImport(Network)
    extension Connector {
        /// Connects by Network.framework, without TLS.
        package static func connectByNetwork(
            to endpoint: Endpoint, peerName: String? = nil, serviceClass: ServiceClass = .standard,
            network: NetworkOptions = NetworkOptions(), keepAlive: Int64 = 0, timeout: Int64,
            loop: EventLoop
        ) async throws(TransportError) -> any ByteStream {
            let name = peerName ?? "\(endpoint)"
            let failures = NetworkFailures(peerName: name, network: network)
            return try await NetworkConnecting.open(
                to: endpoint, parameters: try parameters(tls: nil, proxy: nil, serviceClass, network, keepAlive),
                peerName: name, failures: failures, deadline: loop.now.advanced(byNanoseconds: timeout), loop: loop)
        }

        /// Connects by Network.framework, with TLS that is established when this returns.
        ///
        /// - Parameters:
        ///   - protocols: offered by ALPN unless the options say otherwise.
        ///   - proxy: asked for the connection.
        package static func connectByNetwork(
            to endpoint: Endpoint, secure contexts: TLSContexts, protocols: [String] = [], proxy: ProxyServer? = nil,
            serviceClass: ServiceClass = .standard,
            network: NetworkOptions = NetworkOptions(), keepAlive: Int64 = 0, timeout: Int64, loop: EventLoop
        ) async throws(TransportError) -> any ByteStream {
            guard case .host(let host, _) = endpoint else {
                throw TransportError(
                    .unsupported, "TLS needs a host name, which '\(endpoint)' does not have. Connect without TLS.")
            }
            let name = proxy.map { "\(endpoint), through the proxy \($0)," } ?? "\(endpoint)"
            let tls = try contexts.networkTLS()
            let failures = NetworkFailures(peerName: name, network: network, tls: tls)
            let options = try tls.options(host: host, protocols: protocols, peerName: name, failures: failures)
            return try await NetworkConnecting.open(
                to: endpoint,
                parameters: try parameters(
                    tls: options, proxy: try proxy?.configuration(), serviceClass, network, keepAlive),
                peerName: name, failures: failures, deadline: loop.now.advanced(byNanoseconds: timeout), loop: loop)
        }

        private static func parameters(
            tls: NWProtocolTLS.Options?, proxy: ProxyConfiguration?, _ serviceClass: ServiceClass,
            _ network: NetworkOptions, _ keepAlive: Int64
        ) throws(TransportError) -> NWParameters {
            let tcp = NWProtocolTCP.Options()
            tcp.noDelay = true
            if keepAlive > 0 {
                let times = KeepAlive(after: keepAlive)
                tcp.enableKeepalive = true
                tcp.keepaliveIdle = Int(times.idle)
                tcp.keepaliveInterval = Int(times.interval)
                tcp.keepaliveCount = Int(times.count)
            }
            let parameters = NWParameters(tls: tls, tcp: tcp)
            switch serviceClass.kind {
            case .background: parameters.serviceClass = .background
            case .standard: parameters.serviceClass = .bestEffort
            case .responsive: parameters.serviceClass = .responsiveData
            }
            if let proxy {
                let context = NWParameters.PrivacyContext(description: "swift-messaging")
                context.proxyConfigurations = [proxy]
                parameters.setPrivacyContext(context)
            }
            try network.apply(to: parameters)
            return parameters
        }
    }

    extension NetworkOptions {
        /// - Throws: `unreachable` for an interface that this device does not have, `unsupported` for a text that is not an
        ///   address.
        func apply(to parameters: NWParameters) throws(TransportError) {
            parameters.prohibitExpensivePaths = !allowsExpensive
            parameters.prohibitConstrainedPaths = !allowsConstrained
            parameters.preferNoProxies = prefersNoProxies
            switch interfaceType?.kind {
            case nil: break
            case .wifi: parameters.requiredInterfaceType = .wifi
            case .cellular: parameters.requiredInterfaceType = .cellular
            case .wired: parameters.requiredInterfaceType = .wiredEthernet
            }
            if let interface {
                // The only way to an interface by its name: as the zone of an address.
                guard let found = IPv6Address("fe80::1%\(interface)")?.interface, found.name == interface else {
                    throw failure(ENXIO, toBind: "interface", interface)
                }
                parameters.requiredInterface = found
            }
            if let localAddress, try localSocketAddress() != nil {
                parameters.requiredLocalEndpoint = .hostPort(host: NWEndpoint.Host(localAddress), port: .any)
            }
        }
    }
#endif
