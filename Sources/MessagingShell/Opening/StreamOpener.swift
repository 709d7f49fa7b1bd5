package import MessagingWire
import Synchronization
package import Transport

/// The options of a client for everything below its protocol.
package struct StreamOptions: Equatable, Sendable {
    package var proxy = Proxy.none
    package var tls = TLSOptions()
    package var webSocket = WebSocketOptions()
    package var serviceClass = ServiceClass.standard
    package var network = NetworkOptions()
    /// Nanoseconds without traffic after which TCP asks for a sign of life; 0 for never.
    package var keepAlive: Int64 = 0
    /// Offered in a WebSocket handshake unless the options name others.
    package var subprotocols: [String] = []
    /// How the protocol is cut into text messages of a WebSocket; nil for one that is binary.
    package var textMessages: WebSocketTextMessages?
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
    private let resolver: Resolver
    private let state = Lock(State())

    private struct State {
        /// Made for the first connection that needs it.
        var tls: TLSContexts?
        var tried = Tried.none
        /// When the server that is being asked has been silent for too long.
        var patienceEnd = Int64.max
        /// The address in use and its alternatives; nil if there are none.
        var choice: AddressChoice?
        /// Nil as long as no address failed that has alternatives.
        var failed: FailedAddresses?
        var search = Search.off
    }

    /// Whether the client looks for an address that the look-ups had not found yet when the only known one failed.
    private enum Search {
        case off
        /// The next connection excludes the addresses of this round.
        case due
        /// It has found none that accepts connections.
        case failed
    }

    private enum Tried {
        case none
        case listed(Int32)
        case other(Shared<BrokerURL>)
    }

    /// - Parameters:
    ///   - urls: kept unread until the first attempt, so that a mistake in one is reported where people await.
    ///   - resolver: looks names up, unless the system does that itself.
    package init(
        urls: [String], options: Shared<StreamOptions>, loop: EventLoop, override: Override?,
        resolver: Resolver = .shared
    ) {
        self.resolver = resolver
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

    /// Whether what is sent to that server goes into binary messages of a WebSocket although its protocol may be text.
    package var sendsBinaryMessages: Bool {
        options.value.textMessages != nil && !options.value.webSocket.sendsText && server?.scheme.isWebSocket == true
    }

    /// When the server that is being asked has been silent for so long that the client leaves it for another one, or for
    /// another address; `Int64.max` if it has the whole time of the attempt.
    package var patienceEnd: Int64 { state.withLock { $0.patienceEnd } }

    /// Whether the server was left because of its silence although `connectTimeout` had not passed.
    package var wasHurried: Bool { loop.now >= patienceEnd }

    /// What an error says in that case.
    package static let hurry =
        "within \(patience / 1_000_000_000) seconds, so the client tries another server or address. If none answers, it tries them again, each for the whole connectTimeout."

    /// The attempt at the current address failed. Returns whether another address has not been tried in this round.
    package func addressFailed() -> Bool {
        state.withLock { state in
            state.patienceEnd = .max
            guard let choice = state.choice.take() else { return false }
            let failed = state.failed ?? FailedAddresses()
            state.failed = failed
            // Twice in one round: the others do not even accept connections.
            let isRepeated = failed.tried.contains(choice.address)
            failed.add(choice.address)
            let hasOther = choice.others.contains { !failed.tried.contains($0) }
            state.search = hasOther || !choice.mayHaveMore ? .off : .due
            return !isRepeated && (hasOther || choice.mayHaveMore)
        }
    }

    /// Whether the attempt that failed only looked for another address of a server whose own failure is known.
    package var foundNoOtherAddress: Bool { state.withLock { $0.search == .failed } }

    /// The server has accepted at the address in use.
    package func serverAnswered() {
        state.withLock { state in
            state.patienceEnd = .max
            if let choice = state.choice { state.failed?.remove(choice.address) }
        }
    }

    /// The client begins anew, as with the first server of its list.
    func forgetFailedAddresses() {
        state.withLock { state in
            state.failed = nil
            state.search = .off
        }
    }

    /// Every address may be tried again.
    package func roundEnded() {
        state.withLock { state in
            state.failed?.tried = []
            state.search = .off
        }
    }

    /// The first server of a server reference that can be used; nil also if there is no URL that says how to get there.
    package func endpoint(inReference reference: String) -> Endpoint? { server?.endpoint(inReference: reference) }

    /// What to add to the report that a server ended a connection before it had answered; empty if TLS was spoken, or a
    /// WebSocket handshake without it, which has succeeded by then.
    package var hintAtTLS: String {
        guard let scheme = server?.scheme, !scheme.isWebSocket, let secure = scheme.secured else { return "" }
        return " If it expects TLS at this port, use \(secure.rawValue):// instead."
    }

    /// What to add to the report that an attempt failed at a path of SockJS; empty at other paths.
    package var hintAtSockJS: String {
        guard let server, server.scheme.isWebSocket else { return "" }
        return SockJSPath.advice(on: server.resource)
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
            url = try BrokerURL(text, for: options.value.schemes)
            if let other { url = url.redirected(to: other) }
        }
        if let query = credentials.query { url = try url.with(query: query) }
        let tried = Shared(url)
        state.withLock { $0.tried = .other(tried) }
        return url
    }

    /// How long a server may be silent while there is another one, or another address, to ask: until its address has
    /// accepted the connection, and from then until it has accepted the client. Nanoseconds.
    static let patience: Int64 = 5_000_000_000

    /// - Parameters:
    ///   - headers: fields of the WebSocket handshake that the options do not have.
    ///   - isRedirected: whether a server redirected the client here; a test's `override` does not replace it.
    package func open(
        _ url: BrokerURL, headers: [String: String] = [:], isRedirected: Bool = false, for attempt: ConnectionAttempt
    ) async throws(TransportError) -> OpenedStream {
        state.withLock { state in
            state.choice = nil
            if state.search == .failed { state.search = .off }
        }
        _ = beginPatience(attempt)
        if let override, !isRedirected { return try await override() }
        do throws(TransportError) {
            return try await openNow(url, headers, attempt)
        } catch {
            throw url.scheme.isSecure ? tls().reload(after: error) : error
        }
    }

    /// The server has to show a sign of life. Returns until when.
    private func beginPatience(_ attempt: ConnectionAttempt) -> Int64 {
        let end = loop.now.advanced(byNanoseconds: Self.patience)
        return state.withLock { state in
            let isHurried = !attempt.isPatient && (servers.count > 1 || state.choice != nil) && end < attempt.deadline
            state.patienceEnd = isHurried ? end : .max
            return isHurried ? end : attempt.deadline
        }
    }

    private func openNow(
        _ url: BrokerURL, _ headers: [String: String], _ attempt: ConnectionAttempt
    ) async throws(TransportError) -> OpenedStream {
        // Before the connection, so that mistakes in the options are reported without a server.
        let proxy = try proxies?.value.proxy(for: url.endpoint)
        let systemDoesTLS = url.scheme.isSecure ? try tls().usesSystem() : false
        if url.scheme.isSecure { try await prepareTLS(attempt) }
        let layers = try layers(for: url, headers, proxy, systemDoesTLS: systemDoesTLS)
        var deadline = beginPatience(attempt)
        let stream =
            systemDoesTLS
            ? try await connectSecurely(to: url, proxy, deadline) : try await connect(to: url, proxy, deadline)
        deadline = beginPatience(attempt)
        guard !layers.isEmpty else { return OpenedStream(stream: stream) }
        let stack = LayerStack(
            layers, deadline: deadline, timeout: handshakeTimeout(url, systemDoesTLS ? nil : proxy),
            timeoutAboveLowest: proxy.map { handshakeTimeout(url, behind: $0) })
        try await LayerHandshake.run(stack, over: stream, loop: loop)
        return OpenedStream(stream: stream, layers: stack)
    }

    /// How long the files of the TLS options are waited for when they have been read before. Nanoseconds.
    private static let readingTime: Int64 = 1_000_000_000

    /// Reads the files of the TLS options, which may be on a disk that hangs: for each connection, so that a certificate that
    /// was renewed is shown from the next one on. A server may refuse the old one only after the handshake (TLS 1.3), or with
    /// an alert that is lost.
    private func prepareTLS(_ attempt: ConnectionAttempt) async throws(TransportError) {
        let tls = tls()
        // Options without files need no task, which would wait for a thread.
        if tls.isPrepared { return }
        let late = TransportError(
            .timedOut,
            "The certificates and keys of the TLS options were not read within connectTimeout. Check the disk that holds their files, or raise connectTimeout."
        )
        // A disk that hangs does not keep a client from connecting again with what it has read before.
        let isKnown = tls.isKnown
        let end =
            isKnown ? min(attempt.deadline, loop.now.advanced(byNanoseconds: Self.readingTime)) : attempt.deadline
        do {
            try await TimedCall.run(until: end, on: loop, late: late) { try await tls.prepare() }
        } catch let error as TransportError {
            if error == late, isKnown { return }
            throw error
        } catch {
            throw TransportError(.cancelled, "Connecting was cancelled.")
        }
    }

    private func connect(
        to url: BrokerURL, _ proxy: ProxyServer?, _ deadline: Int64
    ) async throws(TransportError) -> any ByteStream {
        let timeout = timeLeft(until: deadline)
        let (serviceClass, network) = (options.value.serviceClass, options.value.network)
        let keepAlive = options.value.keepAlive
        let (failed, excluded) = state.withLock { state in
            defer { state.search = state.search == .due ? .failed : .off }
            return (state.failed?.addresses ?? [], state.search == .due ? state.failed?.tried ?? [] : [])
        }
        let chosen: @Sendable (AddressChoice?) -> Void = { [self] choice in state.withLock { $0.choice = choice } }
        guard let proxy else {
            let stream = try await Connector.open(
                to: url.endpoint, serviceClass: serviceClass, network: network, keepAlive: keepAlive, timeout: timeout,
                avoiding: failed, excluding: excluded, chosen: chosen, resolver: resolver, loop: loop)
            state.withLock { $0.search = .off }
            return stream
        }
        do throws(TransportError) {
            let name = "\(url.endpoint), through the proxy \(proxy),"
            let stream = try await Connector.open(
                to: proxy.endpoint, peerName: name, serviceClass: serviceClass, network: network, keepAlive: keepAlive,
                timeout: timeout, avoiding: failed, excluding: excluded, chosen: chosen, resolver: resolver, loop: loop)
            state.withLock { $0.search = .off }
            return stream
        } catch {
            throw TransportError(error.code, "Could not reach the proxy: \(error.message)", errno: error.errno)
        }
    }

    private func timeLeft(until deadline: Int64) -> Int64 {
        let now = loop.now
        return deadline > now ? deadline - now : 0
    }

    /// The system's stream has TLS and has passed the proxy: both are below what a layer could do.
    private func connectSecurely(
        to url: BrokerURL, _ proxy: ProxyServer?, _ deadline: Int64
    ) async throws(TransportError) -> any ByteStream {
        try await Connector.openSecurely(
            to: url.endpoint, tls: tls(), protocols: protocols(for: url), proxy: proxy,
            serviceClass: options.value.serviceClass, network: options.value.network,
            keepAlive: options.value.keepAlive,
            timeout: timeLeft(until: deadline), loop: loop)
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
                    textMessages: options.textMessages, random: loop.random))
        }
        return layers
    }

    /// One for all connections of the client, so that sessions are resumed.
    private func tls() -> TLSContexts {
        state.withLock { state in
            if let tls = state.tls { return tls }
            let made = TLSContexts(client: options.value.tls)
            state.tls = made
            return made
        }
    }

    /// What to report when the handshake of the lowest layer takes too long.
    ///
    /// - Parameter proxy: whose handshake that is; nil for one of the server.
    private func handshakeTimeout(_ url: BrokerURL, _ proxy: ProxyServer?) -> TransportError {
        guard let proxy else {
            return TransportError(
                .timedOut, unfinishedHandshake(url, "\(url.endpoint) accepted the connection, but"))
        }
        return TransportError(
            .timedOut,
            "The proxy \(proxy) accepted the connection, but \(url.endpoint) was not reached through it in time.")
    }

    /// What to report when a proxy has reached the server, and the server's handshakes take too long.
    private func handshakeTimeout(_ url: BrokerURL, behind proxy: ProxyServer) -> TransportError {
        TransportError(.timedOut, unfinishedHandshake(url, "The proxy \(proxy) reached \(url.endpoint), which"))
    }

    private func unfinishedHandshake(_ url: BrokerURL, _ subject: String) -> String {
        let handshakes = url.scheme == .ws ? "WebSocket" : url.scheme == .wss ? "TLS and WebSocket" : "TLS"
        return "\(subject) did not finish the \(handshakes) handshake in time. Check that it speaks that at this port."
    }
}

/// The addresses that accepted connections and were of no use: silent, or left by the client. Used under a lock.
private final class FailedAddresses {
    /// The addresses that failed first come first. Bounded, since the addresses of a name may change for ever.
    private(set) var addresses: [SocketAddress] = []
    /// The addresses that failed in this round.
    var tried: [SocketAddress] = []

    private static let maximumCount = 64

    func add(_ address: SocketAddress) {
        remove(address)
        if addresses.count == Self.maximumCount { addresses.removeFirst() }
        addresses.append(address)
        if tried.count < Self.maximumCount { tried.append(address) }
    }

    func remove(_ address: SocketAddress) { addresses.removeAll { $0 == address } }
}
