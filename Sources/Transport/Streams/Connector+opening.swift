extension Connector {
    /// Connects without TLS by what the system advises: sockets on Linux and macOS, and for Unix-domain sockets
    /// everywhere; Network.framework on the other Apple systems.
    package static func open(
        to endpoint: Endpoint, peerName: String? = nil, timeout: Int64, loop: EventLoop
    ) async throws(TransportError) -> any ByteStream {
        #if canImport(Network) && !os(macOS) && !os(Linux)
            if case .host = endpoint {
                return try await connectByNetwork(to: endpoint, peerName: peerName, timeout: timeout, loop: loop)
            }
        #endif
        return try await connect(to: endpoint, peerName: peerName, timeout: timeout, loop: loop)
    }

    /// Connects with the system's TLS, where `contexts.usesSystem()` is true.
    package static func openSecurely(
        to endpoint: Endpoint, tls contexts: TLSContexts, protocols: [String], proxy: ProxyServer?, timeout: Int64,
        loop: EventLoop
    ) async throws(TransportError) -> any ByteStream {
        #if canImport(Network)
            return try await connectByNetwork(
                to: endpoint, secure: contexts, protocols: protocols, proxy: proxy, timeout: timeout, loop: loop)
        #else
            throw TransportError(.tlsUnavailable, "this system has no TLS of its own")
        #endif
    }
}
