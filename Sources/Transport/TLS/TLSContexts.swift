import Synchronization

/// One configuration of TLS for all connections that a client or server makes with it. Files are read with the first
/// connection, and again after `reload()`.
package final class TLSContexts: Sendable {
    private let kind: TLSContext.Kind
    private let current = Lock<TLSContext?>(nil)

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
    }
}
