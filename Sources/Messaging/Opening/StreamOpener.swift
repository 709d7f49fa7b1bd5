import Synchronization
package import Transport
import Wire

/// The options of a client for everything below its protocol.
package struct StreamOptions: Equatable, Sendable {
    package var proxy = Proxy.none
    package var tls = TLSOptions()
    package var webSocket = WebSocketOptions()
    package var serviceClass = ServiceClass.standard
    /// Offered in a WebSocket handshake unless the options name others.
    package var subprotocols: [String] = []
    /// Whether the protocol may come in text messages of a WebSocket.
    package var acceptsText = false
    /// The schemes of URLs that the client accepts.
    package var schemes: [BrokerURL.Scheme] = []

    package init() {}
}

/// Opens the streams that a client's URLs ask for: the one place where both protocols get their transport.
///
/// A stream comes with its layers open: TLS verified, the WebSocket accepted.
package final class StreamOpener: Sendable {
    /// What tests open instead of the network.
    package typealias Override = @Sendable () async throws(TransportError) -> OpenedStream

    private let servers: ServerList
    private let loop: EventLoop
    private let options: Shared<StreamOptions>
    /// Nil without a proxy.
    private let proxies: Shared<ProxyChoice>?
    private let override: Override?
    private let state = Lock(State())

    private struct State {
        /// Made for the first connection that needs it.
        var tls: TLSContexts?
        var tried = Tried.none
    }

    private enum Tried {
        case none
        case listed(Int32)
        case other(Shared<BrokerURL>)
    }

    /// - Parameters:
    ///   - urls: kept unread until the first attempt, so that a mistake in one is reported where people await.
    package init(urls: [String], options: Shared<StreamOptions>, loop: EventLoop, override: Override?) {
        servers = ServerList(urls, schemes: options.value.schemes)
        self.loop = loop
        self.options = options
        let proxy = options.value.proxy
        proxies = proxy == .none ? nil : Shared(ProxyChoice(proxy, variable: System.environment))
        self.override = override
    }

    package var serverCount: Int { servers.count }

    /// The monitor, if no server can be reached while this device has no network.
    package func ifNeeded(_ monitor: NetworkMonitor?) -> NetworkMonitor? {
        // Without a monitor, as on most systems, the addresses need not be examined.
        monitor != nil && servers.needNetwork ? monitor : nil
    }

    /// A server of the list, for messages.
    func name(of index: Int) -> String { (try? servers.server(at: index).description) ?? "server \(index + 1)" }

    /// The server that was opened last, or that is being opened.
    package var server: BrokerURL? {
        switch state.withLock({ $0.tried }) {
        case .none: nil
        case .listed(let index): try? servers.server(at: Int(index))
        case .other(let url): url.value
        }
    }

    /// The servers that a server reference names; none if there is no URL that says how to get there.
    package func endpoints(inReference reference: String) -> [Endpoint] {
        server?.endpoints(inReference: reference) ?? []
    }

    /// What to add to the report that a server ended a connection before it had answered; empty if TLS was spoken, or a
    /// WebSocket handshake without it, which has succeeded by then.
    package var hintAtTLS: String {
        guard let scheme = server?.scheme, !scheme.isWebSocket, let secure = scheme.secured else { return "" }
        return " If it expects TLS at this port, use \(secure.rawValue):// instead."
    }

    /// Chooses the server for what follows.
    ///
    /// - Parameter other: an endpoint that is used instead of the one in the URL, with everything else as there.
    package func choose(_ index: Int, redirectedTo other: Endpoint? = nil) throws(TransportError) -> BrokerURL {
        let listed = try servers.server(at: index)
        let url = other.map { listed.redirected(to: $0) } ?? listed
        let tried = other == nil ? Tried.listed(Int32(index)) : .other(Shared(url))
        state.withLock { $0.tried = tried }
        return url
    }

    /// The URL for these credentials, which may change the one that was chosen.
    ///
    /// - Parameter other: as when it was chosen.
    package func url(
        of chosen: BrokerURL, for credentials: Credentials?, redirectedTo other: Endpoint? = nil
    ) throws(TransportError) -> BrokerURL {
        guard let credentials, credentials.url != nil || credentials.query != nil else { return chosen }
        var url = chosen
        if let text = credentials.url {
            url = try BrokerURL(text).limited(to: options.value.schemes)
            if let other { url = url.redirected(to: other) }
        }
        if let query = credentials.query { url = try url.with(query: query) }
        let tried = Shared(url)
        state.withLock { $0.tried = .other(tried) }
        return url
    }

    /// - Parameters:
    ///   - headers: fields of the WebSocket handshake that the options do not have.
    ///   - isRedirected: whether a server redirected the client here; a test's `override` does not replace it.
    ///   - deadline: for name resolution, the connection and the handshakes below the protocol.
    package func open(
        _ url: BrokerURL, headers: [String: String] = [:], isRedirected: Bool = false, deadline: Int64
    ) async throws(TransportError) -> OpenedStream {
        if let override, !isRedirected { return try await override() }
        do throws(TransportError) {
            return try await openNow(url, headers, deadline)
        } catch {
            // Certificates may have been replaced since they were read.
            if url.scheme.isSecure { tls().reload() }
            throw error
        }
    }

    private func openNow(
        _ url: BrokerURL, _ headers: [String: String], _ deadline: Int64
    ) async throws(TransportError) -> OpenedStream {
        // Before the connection, so that mistakes in the options are reported without a server.
        let proxy = try proxies?.value.proxy(for: url.endpoint)
        let systemDoesTLS = url.scheme.isSecure ? try tls().usesSystem() : false
        if url.scheme.isSecure { try await tls().prepare() }
        let layers = try layers(for: url, headers, proxy, systemDoesTLS: systemDoesTLS)
        let stream =
            systemDoesTLS
            ? try await connectSecurely(to: url, proxy, deadline) : try await connect(to: url, proxy, deadline)
        guard !layers.isEmpty else { return OpenedStream(stream: stream) }
        let stack = LayerStack(layers, deadline: deadline, timeout: handshakeTimeout(url, proxy))
        try await LayerHandshake.run(stack, over: stream, loop: loop)
        return OpenedStream(stream: stream, layers: stack)
    }

    private func connect(
        to url: BrokerURL, _ proxy: ProxyServer?, _ deadline: Int64
    ) async throws(TransportError) -> any ByteStream {
        let timeout = max(0, deadline - loop.now)
        let serviceClass = options.value.serviceClass
        guard let proxy else {
            return try await Connector.open(to: url.endpoint, serviceClass: serviceClass, timeout: timeout, loop: loop)
        }
        do throws(TransportError) {
            let name = "\(url.endpoint), through the proxy \(proxy),"
            return try await Connector.open(
                to: proxy.endpoint, peerName: name, serviceClass: serviceClass, timeout: timeout, loop: loop)
        } catch {
            throw TransportError(error.code, "Could not reach the proxy: \(error.message)", errno: error.errno)
        }
    }

    /// The system's stream has TLS and has passed the proxy: both are below what a layer could do.
    private func connectSecurely(
        to url: BrokerURL, _ proxy: ProxyServer?, _ deadline: Int64
    ) async throws(TransportError) -> any ByteStream {
        try await Connector.openSecurely(
            to: url.endpoint, tls: tls(), protocols: protocols(for: url), proxy: proxy,
            serviceClass: options.value.serviceClass, timeout: max(0, deadline - loop.now), loop: loop)
    }

    /// A WebSocket begins with HTTP/1.1, and a server that prefers another version has to know.
    private func protocols(for url: BrokerURL) -> [String] {
        url.scheme.isWebSocket ? ["http/1.1"] : []
    }

    /// The lowest first.
    private func layers(
        for url: BrokerURL, _ headers: [String: String], _ proxy: ProxyServer?, systemDoesTLS: Bool
    ) throws(TransportError) -> [any ByteLayer] {
        guard case .host(let host, let port) = url.endpoint else { return [] }
        let options = options.value
        var layers: [any ByteLayer] = []
        if let proxy, !systemDoesTLS { layers.append(try proxy.layer(to: host, port: port)) }
        if url.scheme.isSecure, !systemDoesTLS {
            layers.append(try TLSLayer(client: tls(), host: host, port: port, protocols: protocols(for: url)))
        }
        if url.scheme.isWebSocket {
            layers.append(
                try WebSocketLayer(
                    host: host, port: port, isSecure: url.scheme.isSecure, target: url.resource,
                    subprotocols: options.subprotocols, options: options.webSocket.replacing(headers),
                    acceptsText: options.acceptsText))
        }
        return layers
    }

    /// One for all connections of the client, so that files are read once and sessions are resumed.
    private func tls() -> TLSContexts {
        state.withLock { state in
            if let tls = state.tls { return tls }
            let made = TLSContexts(client: options.value.tls)
            state.tls = made
            return made
        }
    }

    private func handshakeTimeout(_ url: BrokerURL, _ proxy: ProxyServer?) -> TransportError {
        if let proxy {
            return TransportError(
                .timedOut,
                "The proxy \(proxy) accepted the connection, but \(url.endpoint) was not reached through it in time.")
        }
        let handshakes = url.scheme == .ws ? "WebSocket" : url.scheme == .wss ? "TLS and WebSocket" : "TLS"
        return TransportError(
            .timedOut,
            "\(url.endpoint) accepted the connection, but did not finish the \(handshakes) handshake in time. Check that it "
                + "speaks that at this port.")
    }
}
