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

extension TransportError.Code {
    /// The proxy did not open the connection; the message holds its status or reply.
    public static let proxyRefused = Self(name: "proxyRefused")
    /// The proxy wants a user name and a password, or others than it was given.
    public static let proxyCredentialsRefused = Self(name: "proxyCredentialsRefused")
    /// What the proxy says belongs to another protocol.
    public static let proxyFailed = Self(name: "proxyFailed")
    /// The proxy ended the connection before it had opened the one to the server.
    public static let proxyClosed = Self(name: "proxyClosed")
}
