import MessagingWire
import TestSupport
import Testing
import Transport

@Suite(.turns) struct HTTPConnectTests {
    private let proxy = ProxyServer(.http, endpoint: .host("proxy", port: 3128))
    private let withLogin = ProxyServer(
        .http, endpoint: .host("proxy", port: 3128), login: .init(userName: "Aladdin", password: "open sesame"))

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `asks for a tunnel by name and leaves what follows the answer to those above`() throws {
        let outcome = try proxy.outcome(
            to: "broker.example", bytes("HTTP/1.1 200 Connected\r\nVia: 1.1 p\r\n\r\nfirst"))
        #expect(
            outcome.wire
                == bytes("CONNECT broker.example:1883 HTTP/1.1\r\nHost: broker.example:1883\r\n\r\n"))
        #expect(outcome.plain == bytes("first"))
        #expect(outcome.isOpen && outcome.error == nil)
    }

    @Test func `authenticates as RFC 7617 shows, and brackets an IPv6 address without its zone`() throws {
        let outcome = try withLogin.outcome(to: "fe80::1%eth0", port: 443, bytes("HTTP/1.0 200 OK\r\n\r\n"))
        #expect(
            outcome.wire
                == bytes(
                    "CONNECT [fe80::1]:443 HTTP/1.1\r\nHost: [fe80::1]:443\r\n"
                        + "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"))
        #expect(outcome.isOpen)
    }

    @Test func `an interim answer is passed over, and a success has no body whatever it claims`() throws {
        let outcome = try proxy.outcome(
            to: "b", bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Fine\r\nContent-Length: 3\r\n\r\nabc"))
        #expect(outcome.isOpen && outcome.plain == bytes("abc"))
    }

    @Test(arguments: [
        (
            "HTTP/1.1 403 Access denied\r\nConnection: close\r\n\r\nno", TransportError.Code.proxyRefused,
            "403 Access denied"
        ),
        ("HTTP/1.0 502\r\n\r\n", .proxyRefused, "502"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", .proxyRefused, "101"),
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", .proxyCredentialsRefused,
            "Put a user name"
        ),
        (
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n",
            .proxyCredentialsRefused, "It wants Negotiate or NTLM, and only Basic is supported."
        ),
        (
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm=\"a, b\", qop = \"auth\", nonce=x\r\n\r\n",
            .proxyCredentialsRefused, "It wants Digest, and only Basic is supported."
        ),
        (
            "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM, basic realm=\"x\"\r\n\r\n", .proxyCredentialsRefused,
            "Put a user name"
        ),
        // As a portal of a network answers.
        ("HTTP/1.0 302 Found\nLocation: http://login/\n\n", .proxyRefused, "302 Found"),
        ("SSH-2.0-OpenSSH_9.2\r\n", .proxyFailed, "HTTP"), ("\u{05}\u{FF}", .proxyFailed, "HTTP"),
        ("HTTP/1.1 20 OK\r\n\r\n", .proxyFailed, "HTTP"),
    ])
    func `refusals and garbage are told apart`(answer: String, code: TransportError.Code, words: String) throws {
        let outcome = try proxy.outcome(to: "broker", bytes(answer))
        #expect(outcome.error?.code == code && !outcome.isOpen && outcome.plain.isEmpty)
        #expect(outcome.error?.message.contains(words) == true)
        #expect(outcome.error?.message.contains("proxy:3128") == true)
        #expect(outcome.error?.message.contains("broker:1883") == true)
    }

    @Test func `refused credentials are permanent and not shown`() throws {
        let outcome = try withLogin.outcome(to: "b", bytes("HTTP/1.1 401 Unauthorized\r\n\r\n"))
        let error = try #require(outcome.error)
        #expect(error.code == .proxyCredentialsRefused && error.code.isConfigurationMistake)
        #expect(error.message.contains("Check") && !error.message.contains("sesame"))
        #expect(!"\(withLogin)".contains("sesame") && !String(reflecting: withLogin).contains("sesame"))
    }

    @Test func `an answer without an end is cut off before it fills memory`() throws {
        let layer = try proxy.layer(to: "b", port: 1)
        var (wire, plain): ([UInt8], [UInt8]) = ([], [])
        try layer.opened(at: 0, wire: &wire)
        try layer.receive(bytes("HTTP/1.1 200 OK\r\nX: ").span.bytes, at: 0, plain: &plain, wire: &wire)
        let flood = [UInt8](repeating: 0x61, count: 1 << 20)
        #expect(throws: TransportError.self) {
            try layer.receive(flood.span.bytes, at: 0, plain: &plain, wire: &wire)
        }
        #expect(plain.isEmpty)
    }

    @Test(arguments: ["", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\n"])
    func `a proxy that leaves in the middle is named`(answer: String) throws {
        let outcome = try proxy.outcome(to: "broker", bytes(answer), ends: true)
        #expect(outcome.error?.code == .proxyClosed)
        #expect(try proxy.outcome(to: "b", bytes("HTTP/1.1 200 OK\r\n\r\n"), ends: true).error == nil)
    }

    @Test(arguments: ["a b", "a\r\nX: y", "", "b/c", "ü", "a:1\r\n"])
    func `a host that would forge the request is refused`(host: String) {
        #expect { _ = try proxy.layer(to: host, port: 1) } throws: { ($0 as? TransportError)?.code == .badURL }
    }

    @Test func `a colon in a user name is refused`() {
        let odd = ProxyServer(.http, endpoint: .host("p", port: 1), login: .init(userName: "a:b", password: "secret"))
        #expect { _ = try odd.layer(to: "b", port: 1) } throws: {
            ($0 as? TransportError)?.code == .badURL && !"\($0)".contains("secret")
        }
    }
}
