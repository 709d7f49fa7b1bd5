#if canImport(Network)
    import Network
    import Wire

    extension Connector {
        /// Connects by Network.framework, without TLS.
        package static func connectByNetwork(
            to endpoint: Endpoint, peerName: String? = nil, timeout: Int64, loop: EventLoop
        ) async throws(TransportError) -> any ByteStream {
            let name = peerName ?? "\(endpoint)"
            let failures = NetworkFailures(peerName: name, hasIdentity: false)
            return try await NetworkConnecting.open(
                to: endpoint, parameters: parameters(tls: nil, proxy: nil), peerName: name, failures: failures,
                deadline: MonotonicClock.now.advanced(byNanoseconds: timeout), loop: loop)
        }

        /// Connects by Network.framework, with TLS that is established when this returns.
        ///
        /// - Parameters:
        ///   - protocols: offered by ALPN unless the options say otherwise.
        ///   - proxy: asked for the connection.
        package static func connectByNetwork(
            to endpoint: Endpoint, secure contexts: TLSContexts, protocols: [String] = [], proxy: ProxyServer? = nil,
            timeout: Int64, loop: EventLoop
        ) async throws(TransportError) -> any ByteStream {
            guard case .host(let host, _) = endpoint else {
                throw TransportError(.unsupported, "TLS needs a host, unlike '\(endpoint)'")
            }
            let name = proxy.map { "\(endpoint), through the proxy \($0)," } ?? "\(endpoint)"
            let tls = try contexts.networkTLS()
            let failures = NetworkFailures(peerName: name, hasIdentity: tls.hasIdentity)
            let options = try tls.options(host: host, protocols: protocols, peerName: name, failures: failures)
            return try await NetworkConnecting.open(
                to: endpoint, parameters: parameters(tls: options, proxy: try proxy?.configuration()), peerName: name,
                failures: failures, deadline: MonotonicClock.now.advanced(byNanoseconds: timeout), loop: loop)
        }

        private static func parameters(
            tls: NWProtocolTLS.Options?, proxy: ProxyConfiguration?
        ) -> NWParameters {
            let tcp = NWProtocolTCP.Options()
            tcp.noDelay = true
            let parameters = NWParameters(tls: tls, tcp: tcp)
            if let proxy {
                let context = NWParameters.PrivacyContext(description: "swift-messaging")
                context.proxyConfigurations = [proxy]
                parameters.setPrivacyContext(context)
            }
            return parameters
        }
    }

    extension TLSOptions {
        /// What Network.framework cannot use.
        var needsOpenSSL: Bool {
            if libraryPath != nil || System.environment("MESSAGING_LIBSSL") != nil { return true }
            #if os(macOS) || os(Linux)
                if case .pem = identity?.kind { return true }
            #endif
            return false
        }
    }
#endif
