import MessagingWire

/// A server that opens connections to others for its clients.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// CONNECT of HTTP (RFC 9110 section 9.3.6).
        case http
        /// RFC 1928.
        case socks5
    }

    /// Never printed.
    package struct Login: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
        CustomReflectable
    {
        package let userName: String
        package let password: String

        package init(userName: String, password: String) {
            self.userName = userName
            self.password = password
        }

        package var description: String { "•••" }
        package var debugDescription: String { description }
        package var customMirror: Mirror { Mirror(self, children: []) }
    }

    package let kind: Kind
    package let endpoint: Endpoint
    package let login: Login?

    package init(_ kind: Kind, endpoint: Endpoint, login: Login? = nil) {
        self.kind = kind
        self.endpoint = endpoint
        self.login = login
    }

    package var description: String { "\(endpoint)" }

    /// The handshake that asks it for a way to a host, which it looks up itself.
    ///
    /// - Throws: `badURL` for a host or a login that cannot be said to it.
    package func layer(to host: String, port: UInt16) throws(TransportError) -> any ByteLayer {
        switch kind {
        case .http: ProxyLayer(try HTTPConnect(self, host: host, port: port))
        case .socks5: ProxyLayer(try SOCKS5(self, host: host, port: port))
        }
    }
}

/// The exchange with a proxy before it passes bytes on.
protocol ProxyHandshake {
    /// Writes what the client begins with.
    mutating func begin(wire: inout [UInt8])
    /// Takes bytes of the proxy's answers and returns how many; what is left when `isDone` is the server's.
    mutating func receive(_ bytes: RawSpan, wire: inout [UInt8]) throws(TransportError) -> Int
    /// Whether the way is open.
    var isDone: Bool { get }
    /// What ended too early, at the beginning of a sentence: "The HTTP proxy 10.0.0.1:3128, asked for broker:1883,".
    var subject: String { get }
}

/// The lowest layer of a connection through a proxy: a handshake, and from then on nothing of its own.
final class ProxyLayer<Handshake: ProxyHandshake>: ByteLayer {
    private var handshake: Handshake

    init(_ handshake: Handshake) {
        self.handshake = handshake
    }

    var isOpen: Bool { handshake.isDone }
    var isFinished: Bool { false }

    func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError) {
        handshake.begin(wire: &wire)
    }

    func receive(
        _ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        let consumed = handshake.isDone ? 0 : try handshake.receive(bytes, wire: &wire)
        guard handshake.isDone else { return }
        bytes.extracting(droppingFirst: consumed).append(to: &plain)
    }

    func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        plain.append(to: &wire)
    }

    func close(wire: inout [UInt8]) {}

    func endReceived() throws(TransportError) {
        guard !handshake.isDone else { return }
        throw TransportError(
            .proxyClosed,
            "\(handshake.subject) ended the connection without a reply. Is it a proxy of this kind?")
    }
}
