package import Transport

/// Opens the streams that a client's URL asks for: the one place where both protocols get their transport.
package struct StreamOpener: Sendable {
    /// What tests open instead of the network.
    package typealias Override = @Sendable () async throws(TransportError) -> OpenedStream

    private let url: Result<BrokerURL, TransportError>
    private let timeout: Int64
    private let loop: EventLoop
    private let override: Override?

    /// - Parameters:
    ///   - url: kept unread until the first attempt, so that a mistake in it is reported where people await.
    ///   - timeout: nanoseconds for the look-up of the name, the connection and all handshakes below the protocol.
    package init(url: String, timeout: Int64, loop: EventLoop, override: Override?) {
        self.url = Result { () throws(TransportError) in try BrokerURL(url) }
        self.timeout = timeout
        self.loop = loop
        self.override = override
    }

    /// The credentials in the URL.
    package var credentials: Credentials? { (try? url.get())?.credentials }

    /// The servers that a server reference names; none if the URL is none.
    package func endpoints(inReference reference: String) -> [Endpoint] {
        (try? url.get())?.endpoints(inReference: reference) ?? []
    }

    /// The host's name, for protocols that say it to the server; empty without one.
    package var host: String { (try? url.get())?.host ?? "" }

    /// - Parameter other: a server that is used instead of the one in the URL, with everything else as there.
    package func open(redirectedTo other: Endpoint? = nil) async throws(TransportError) -> OpenedStream {
        if let override, other == nil { return try await override() }
        var url = try url.get()
        if let other { url = url.redirected(to: other) }
        guard !url.scheme.isSecure, !url.scheme.isWebSocket else {
            throw TransportError(
                .unsupported, "\(url.scheme.rawValue): is not supported yet; use a URL without TLS and WebSocket")
        }
        let stream = try await Connector.connect(to: url.endpoint, timeout: timeout, loop: loop)
        return OpenedStream(stream: stream)
    }
}

extension TransportError {
    /// Whether another attempt to connect is pointless until somebody changes the URL or installs something.
    package var isPermanent: Bool { code == .badURL || code == .unsupported }
}
