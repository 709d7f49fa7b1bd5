#if canImport(Network)
    import Network

    extension ProxyServer {
        /// The proxy for a connection whose TLS Network.framework does: our own handshakes run above it and cannot.
        ///
        /// - Throws: `unsupported` for what `ProxyConfiguration` cannot express.
        func configuration() throws(TransportError) -> ProxyConfiguration {
            guard let endpoint = NWEndpoint(endpoint) else {
                throw TransportError(
                    .unsupported,
                    "Network.framework reaches no proxy at '\(self.endpoint)': give a host and a port, or on macOS "
                        + "choose the implementation .openSSL in the TLS options")
            }
            var configuration =
                switch kind {
                case .http: ProxyConfiguration(httpCONNECTProxy: endpoint)
                case .socks5: ProxyConfiguration(socksv5Proxy: endpoint)
                }
            // A server that may be reached through the proxy only is never tried without it.
            configuration.allowFailover = false
            if let login { configuration.applyCredential(username: login.userName, password: login.password) }
            return configuration
        }
    }
#endif
