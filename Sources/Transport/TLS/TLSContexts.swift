import Synchronization

/// One configuration of TLS for all connections that a client or server makes with it. Files are read with the first
/// connection, and again after `reload()`.
package final class TLSContexts: Sendable {
    private let kind: TLSContext.Kind
    private let current = Lock<TLSContext?>(nil)
    #if canImport(Network)
        private let currentOfSystem = Lock<NetworkTLS?>(nil)
    #endif

    package init(client options: TLSOptions) {
        kind = .client(options)
    }

    package init(server options: TLSServerOptions) {
        kind = .server(options)
    }

    /// - Throws: `tlsUnavailable`, `tlsConfiguration`.
    func context() throws(TransportError) -> TLSContext {
        if let known = current.withLock({ $0 }) { return known }
        // Outside the lock: this reads files.
        let made = try TLSContext(kind)
        current.withLock { $0 = made }
        return made
    }

    /// The next connection reads the files anew: a failure may be due to certificates that were replaced since.
    package func reload() {
        current.withLock { $0 = nil }
        #if canImport(Network)
            currentOfSystem.withLock { $0 = nil }
        #endif
    }

    /// Whether the system's Network.framework does the TLS, so that it comes with the stream and not as a layer.
    ///
    /// - Throws: `tlsUnavailable` if the options ask for it where it does not exist.
    package func usesSystem() throws(TransportError) -> Bool {
        guard case .client(let options) = kind else { return false }
        #if canImport(Network)
            switch options.implementation.kind {
            case .system: return true
            case .openSSL: return false
            case .automatic: return !options.needsOpenSSL
            }
        #else
            guard options.implementation == .system else { return false }
            throw TransportError(
                .tlsUnavailable,
                "Network.framework exists on Apple's systems only; choose the implementation .automatic in the TLS "
                    + "options")
        #endif
    }

    #if canImport(Network)
        /// - Throws: `tlsConfiguration`.
        func networkTLS() throws(TransportError) -> NetworkTLS {
            if let known = currentOfSystem.withLock({ $0 }) { return known }
            guard case .client(let options) = kind else {
                throw TransportError(.unsupported, "Network.framework serves clients only here")
            }
            let made = try NetworkTLS(options)
            currentOfSystem.withLock { $0 = made }
            return made
        }
    #endif
}
