import Synchronization
package import Transport

/// Opens the streams that a client's URLs ask for: the one place where both protocols get their transport.
///
/// A stream comes with its layers open: TLS verified, the WebSocket accepted.
package final class StreamOpener: Sendable {
    /// What tests open instead of the network.
    package typealias Override = @Sendable () async throws(TransportError) -> OpenedStream

    private let servers: Result<[BrokerURL], TransportError>
    private let timeout: Int64
    private let loop: EventLoop
    private let options: StreamOptions
    private let tls: TLSContexts
    private let proxies: ProxyChoice
    private let override: Override?
    private let tried = Mutex<BrokerURL?>(nil)

    /// - Parameters:
    ///   - urls: kept unread until the first attempt, so that a mistake in one is reported where people await.
    ///   - timeout: nanoseconds for the look-up of the name, the connection and all handshakes below the protocol.
    package init(urls: [String], options: StreamOptions, timeout: Int64, loop: EventLoop, override: Override?) {
        servers = Result { () throws(TransportError) in
            guard !urls.isEmpty else { throw TransportError(.badURL, "there is no server to connect to: name one") }
            var servers: [BrokerURL] = []
            for url in urls { servers.append(try BrokerURL(url).limited(to: options.schemes)) }
            return servers
        }
        self.timeout = timeout
        self.loop = loop
        self.options = options
        tls = TLSContexts(client: options.tls)
        proxies = ProxyChoice(options.proxy, variable: System.environment)
        self.override = override
    }

    package var serverCount: Int { (try? servers.get())?.count ?? 1 }

    /// The server that was opened last, or that is being opened.
    package var server: BrokerURL? { tried.withLock { $0 } }

    /// The servers that a server reference names; none if there is no URL that says how to get there.
    package func endpoints(inReference reference: String) -> [Endpoint] {
        server?.endpoints(inReference: reference) ?? []
    }

    /// Belongs behind the news that a server ended a connection before it had answered; empty if TLS was spoken.
    package var hintAtTLS: String {
        guard let secure = server?.scheme.secured else { return "" }
        return "; if it expects TLS at this port, use \(secure.rawValue):// instead"
    }

    /// Chooses the server for what follows.
    ///
    /// - Parameter other: an endpoint that is used instead of the one in the URL, with everything else as there.
    package func choose(_ index: Int, redirectedTo other: Endpoint? = nil) throws(TransportError) -> BrokerURL {
        let servers = try servers.get()
        var url = servers[index]
        if let other { url = url.redirected(to: other) }
        tried.withLock { $0 = url }
        return url
    }

    /// - Parameter isRedirected: whether the server is one that tests cannot stand in for.
    package func open(_ url: BrokerURL, isRedirected: Bool = false) async throws(TransportError) -> OpenedStream {
        if let override, !isRedirected { return try await override() }
        do throws(TransportError) {
            return try await openNow(url)
        } catch {
            // Certificates may have been replaced since they were read.
            if url.scheme.isSecure { tls.reload() }
            throw error
        }
    }

    private func openNow(_ url: BrokerURL) async throws(TransportError) -> OpenedStream {
        let deadline = MonotonicClock.now.advanced(byNanoseconds: timeout)
        // Before the connection: what cannot work needs no server.
        let proxy = try proxies.proxy(for: url.endpoint)
        let layers = try layers(for: url, proxy)
        let stream = try await connect(to: url, proxy)
        guard !layers.isEmpty else { return OpenedStream(stream: stream) }
        let stack = LayerStack(layers, deadline: deadline, timeout: handshakeTimeout(url, proxy))
        try await LayerHandshake.run(stack, over: stream, loop: loop)
        return OpenedStream(stream: stream, layers: stack)
    }

    private func connect(to url: BrokerURL, _ proxy: ProxyServer?) async throws(TransportError) -> SocketStream {
        guard let proxy else { return try await Connector.connect(to: url.endpoint, timeout: timeout, loop: loop) }
        do throws(TransportError) {
            let name = "\(url.endpoint), through the proxy \(proxy),"
            return try await Connector.connect(to: proxy.endpoint, peerName: name, timeout: timeout, loop: loop)
        } catch {
            throw TransportError(error.code, "no way to the proxy: \(error.message)", errno: error.errno)
        }
    }

    /// The lowest first.
    private func layers(for url: BrokerURL, _ proxy: ProxyServer?) throws(TransportError) -> [any ByteLayer] {
        guard case .host(let host, let port) = url.endpoint else { return [] }
        var layers: [any ByteLayer] = []
        if let proxy { layers.append(try proxy.layer(to: host, port: port)) }
        if url.scheme.isSecure {
            // A WebSocket begins with HTTP/1.1, and a server that prefers another version has to know.
            let protocols = url.scheme.isWebSocket ? ["http/1.1"] : []
            layers.append(try TLSLayer(client: tls, host: host, port: port, protocols: protocols))
        }
        if url.scheme.isWebSocket {
            layers.append(
                try WebSocketLayer(
                    host: host, port: port, isSecure: url.scheme.isSecure, target: url.resource,
                    subprotocols: options.subprotocols, options: options.webSocket, acceptsText: options.acceptsText))
        }
        return layers
    }

    private func handshakeTimeout(_ url: BrokerURL, _ proxy: ProxyServer?) -> TransportError {
        if let proxy {
            return TransportError(
                .timedOut,
                "the proxy \(proxy) accepted the connection, but \(url.endpoint) was not reached through it in time")
        }
        let handshakes = url.scheme == .ws ? "WebSocket" : url.scheme == .wss ? "TLS and WebSocket" : "TLS"
        return TransportError(
            .timedOut,
            "\(url.endpoint) accepted the connection, but did not finish the \(handshakes) handshake in time; does it "
                + "speak that at this port?")
    }
}

extension TransportError {
    /// Whether another attempt to connect is pointless until somebody changes the URL or installs something.
    package var isPermanent: Bool { code == .unsupported || code.isConfigurationMistake }
}
