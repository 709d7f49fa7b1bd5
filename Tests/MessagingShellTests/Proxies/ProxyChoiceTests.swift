import TestSupport
import Testing
import Transport

@testable import MessagingShell

@Suite(.turns) struct ProxyChoiceTests {
    private let broker = Endpoint.host("mqtt.example.com", port: 8883)

    private func choice(_ variables: [String: String]) -> ProxyChoice {
        ProxyChoice(.environment) { variables[$0] }
    }

    @Test func `there is none unless it is asked for`() throws {
        let none = ProxyChoice(.none) { _ in "http://proxy" }
        #expect(try none.proxy(for: broker) == nil)
        #expect(try choice([:]).proxy(for: broker) == nil)
        #expect(try choice(["https_proxy": ""]).proxy(for: broker) == nil)
        // What a web server lets its clients set is not looked at.
        #expect(try choice(["HTTP_PROXY": "http://proxy", "http_proxy": "http://p"]).proxy(for: broker) == nil)
    }

    @Test(arguments: [
        ("http://proxy", ProxyServer(.http, endpoint: .host("proxy", port: 80))),
        ("http://proxy:3128/", ProxyServer(.http, endpoint: .host("proxy", port: 3128))),
        ("HTTP://[::1]:8080", ProxyServer(.http, endpoint: .host("::1", port: 8080))),
        (
            "http://us%40er:p%3Aw%2F@proxy:1",
            ProxyServer(.http, endpoint: .host("proxy", port: 1), login: .init(userName: "us@er", password: "p:w/"))
        ),
        ("proxy:3128", ProxyServer(.http, endpoint: .host("proxy", port: 3128))),
    ])
    func `reads an HTTP proxy's URL`(url: String, expected: ProxyServer) throws {
        #expect(try ProxyChoice(.http(url)) { _ in nil }.proxy(for: broker) == expected)
        #expect(try choice(["https_proxy": url]).proxy(for: broker) == expected)
    }

    @Test(arguments: [
        ("socks5://proxy", ProxyServer(.socks5, endpoint: .host("proxy", port: 1080))),
        (
            "socks5h://a:b@10.0.0.1:9",
            ProxyServer(.socks5, endpoint: .host("10.0.0.1", port: 9), login: .init(userName: "a", password: "b"))
        ),
    ])
    func `reads a SOCKS5 proxy's URL`(url: String, expected: ProxyServer) throws {
        #expect(try ProxyChoice(.socks5(url)) { _ in nil }.proxy(for: broker) == expected)
        #expect(try choice(["ALL_PROXY": url]).proxy(for: broker) == expected)
    }

    @Test(arguments: [
        "https://ann:secret@proxy", "socks4://ann:secret@proxy", "socks5://ann:secret@proxy", "ann:secret@[::1",
        "http://ann:secret@", "http://ann:secret@proxy:0", "http://ann:secret@proxy/path", "http://ann:secret%@proxy",
        "http://ann:sec/secret@proxy",
    ])
    func `a mistake is told without the password, and is permanent`(url: String) {
        #expect { _ = try ProxyChoice(.http(url)) { _ in nil }.proxy(for: broker) } throws: { error in
            guard let error = error as? TransportError else { return false }
            return error.code == .badURL && error.isPermanent && !error.message.contains("secret")
                && error.message.contains("proxy") && error.message.last == "."
        }
    }

    @Test func `a proxy is never printed with its password`() {
        for url in ["http://ann:secret@proxy:1", "ann:secret@proxy:1", "http://ann:se/secret@proxy:1"] {
            let proxy = Proxy.http(url)
            var dumped = ""
            dump(proxy, to: &dumped)
            for text in ["\(proxy)", String(reflecting: proxy), dumped] {
                #expect(!text.contains("secret") && !text.contains("ann"), "\(text)")
            }
            #expect("\(proxy)".hasSuffix("@proxy:1"))
        }
    }

    @Test func `small letters win, and HTTPS before ALL`() throws {
        let all = [
            "https_proxy": "http://first", "HTTPS_PROXY": "http://second", "all_proxy": "socks5://third",
            "ALL_PROXY": "socks5://fourth",
        ]
        var left = all
        for (name, host) in [
            ("https_proxy", "first"), ("HTTPS_PROXY", "second"), ("all_proxy", "third"), ("ALL_PROXY", "fourth"),
        ] {
            guard case .host(host, _)? = try choice(left).proxy(for: broker)?.endpoint else {
                Issue.record("\(name) was passed over")
                continue
            }
            left[name] = nil
        }
        #expect(throws: TransportError.self) { try choice(["https_proxy": "ftp://x"]).proxy(for: broker) }
    }

    @Test(arguments: [
        ("*", true), ("mqtt.example.com", true), ("example.com", true), (".example.com", true),
        ("*.example.com", true), ("EXAMPLE.com.", true), ("other, example.com", true), ("other example.com:8883", true),
        ("example.com:1883", false), ("ample.com", false), ("mqtt.example.com.evil", false), ("com.", true),
        ("example", false), ("", false), (",", false), (".", false), ("a.mqtt.example.com", false),
    ])
    func `names what is reached directly`(list: String, isDirect: Bool) throws {
        for name in ["no_proxy", "NO_PROXY"] {
            let choice = choice(["https_proxy": "http://proxy", name: list])
            #expect(try (choice.proxy(for: broker) == nil) == isDirect)
        }
        // It is the environment's word about the environment's proxy.
        let explicit = ProxyChoice(.http("http://proxy")) { $0 == "no_proxy" ? list : nil }
        #expect(try explicit.proxy(for: broker) != nil)
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", true), ("::1", "::1", true), ("[::1]", "0:0:0:0:0:0:0:1", true),
        ("[::1]:8883", "::1", true), ("[::1]:1883", "::1", false), ("0.0.1", "127.0.0.1", false),
        ("127.0.0.1:8883", "127.0.0.1", true), ("::2", "::1", false),
    ])
    func `compares addresses as numbers`(list: String, host: String, isDirect: Bool) throws {
        let choice = choice(["all_proxy": "http://proxy", "no_proxy": list])
        #expect(try (choice.proxy(for: .host(host, port: 8883)) == nil) == isDirect)
    }

    @Test func `a Unix socket needs no proxy`() throws {
        #expect(try ProxyChoice(.http("http://proxy")) { _ in nil }.proxy(for: .unix(path: "/x")) == nil)
    }
}
