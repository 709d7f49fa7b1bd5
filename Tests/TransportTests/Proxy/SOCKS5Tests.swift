import TestSupport
import Testing
import Transport

@Suite(.turns) struct SOCKS5Tests {
    private let proxy = ProxyServer(.socks5, endpoint: .host("proxy", port: 1080))
    private let withLogin = ProxyServer(
        .socks5, endpoint: .host("proxy", port: 1080), login: .init(userName: "ann", password: "pw:1"))
    private let granted: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0x12, 0x34]

    @Test func `sends the host's name, not its address`() throws {
        let outcome = try proxy.outcome(to: "broker", [5, 0] + granted + Array("first".utf8))
        #expect(outcome.wire == [5, 1, 0] + [5, 1, 0, 3, 6] + Array("broker".utf8) + [0x07, 0x5B])
        #expect(outcome.isOpen && outcome.error == nil)
        #expect(outcome.plain == Array("first".utf8))
    }

    @Test func `addresses go as numbers`() throws {
        let four = try proxy.outcome(to: "192.0.2.1", port: 8883, [5, 0] + granted)
        #expect(four.wire.dropFirst(3) == [5, 1, 0, 1, 192, 0, 2, 1, 0x22, 0xB3])
        let six = try proxy.outcome(to: "2001:db8::1", [5, 0] + granted)
        #expect(
            six.wire.dropFirst(3)
                == [5, 1, 0, 4, 0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x07, 0x5B])
        #expect(four.isOpen && six.isOpen)
    }

    @Test func `replies of every length end where they end`() throws {
        let name: [UInt8] = [5, 0, 0, 3, 255] + [UInt8](repeating: 0x61, count: 255) + [0, 1]
        let six: [UInt8] = [5, 0, 0, 4] + [UInt8](repeating: 9, count: 16) + [0, 1]
        let empty: [UInt8] = [5, 0, 0, 3, 0, 0, 1]
        for reply in [granted, name, six, empty] {
            let outcome = try proxy.outcome(to: "b", [5, 0] + reply + [0xAA])
            #expect(outcome.isOpen && outcome.plain == [0xAA])
            #expect(try !proxy.outcome(to: "b", [5, 0] + reply.dropLast()).isOpen)
        }
    }

    @Test func `logs in when the proxy wants it, and only then`() throws {
        let login: [UInt8] = [1, 3] + Array("ann".utf8) + [4] + Array("pw:1".utf8)
        let asked = try withLogin.outcome(to: "b", [5, 2, 1, 0] + granted)
        #expect(asked.wire == [5, 2, 0, 2] + login + [5, 1, 0, 3, 1, 0x62, 0x07, 0x5B])
        #expect(asked.isOpen)
        let notAsked = try withLogin.outcome(to: "b", [5, 0] + granted)
        #expect(notAsked.wire == [5, 2, 0, 2] + [5, 1, 0, 3, 1, 0x62, 0x07, 0x5B])
        #expect(notAsked.isOpen)
        let refused = try withLogin.outcome(to: "b", [5, 2, 1, 1])
        #expect(refused.error?.code == .proxyCredentialsRefused)
        #expect(refused.error?.message.contains("pw:1") == false)
        #expect(try withLogin.outcome(to: "b", [5, 0xFF]).error?.code == .proxyCredentialsRefused)
        let missing = try proxy.outcome(to: "b", [5, 0xFF])
        #expect(missing.error?.code == .proxyCredentialsRefused)
        #expect(missing.error?.message.contains("Put a user name") == true)
    }

    @Test(
        arguments: [
            (1, "general SOCKS server failure"), (2, "not allowed by ruleset"), (3, "network unreachable"),
            (4, "host unreachable"), (5, "connection refused"), (6, "TTL expired"), (7, "command not supported"),
            (8, "address type not supported"), (0x5B, "91"),
        ] as [(UInt8, String)])
    func `refusals have names`(reply: UInt8, name: String) throws {
        // Some proxies say no more than this.
        let outcome = try proxy.outcome(to: "broker", [5, 0, 5, reply])
        #expect(outcome.error?.code == .proxyRefused)
        #expect(outcome.error?.message.contains(name) == true)
        #expect(outcome.error?.message.contains("broker:1883") == true)
    }

    @Test(
        arguments: [
            Array("HTTP/1.0 400 Bad Request\r\n".utf8), [4], [5, 2], [5, 1], [5, 0, 4], [5, 0, 5, 0, 0, 2, 0], [0],
        ] as [[UInt8]])
    func `what is no SOCKS5 is said to be none`(answer: [UInt8]) throws {
        let outcome = try proxy.outcome(to: "b", answer)
        #expect(outcome.error?.code == .proxyFailed && !outcome.isOpen)
    }

    @Test(arguments: [[], [5], [5, 0, 5, 0, 0]] as [[UInt8]])
    func `a proxy that leaves in the middle is named`(answer: [UInt8]) throws {
        #expect(try proxy.outcome(to: "b", answer, ends: true).error?.code == .proxyClosed)
        #expect(try proxy.outcome(to: "b", [5, 0] + granted, ends: true).error == nil)
    }

    @Test func `what does not fit its length byte is refused`() {
        let long = String(repeating: "x", count: 256)
        for host in [long, "", "a b", "a:b:c"] {
            #expect { _ = try proxy.layer(to: host, port: 1) } throws: { ($0 as? TransportError)?.code == .badURL }
        }
        for (user, password) in [(long, "x"), ("", "x"), ("x", long), ("x", "")] {
            let odd = ProxyServer(
                .socks5, endpoint: .host("p", port: 1), login: .init(userName: user, password: password))
            #expect { _ = try odd.layer(to: "b", port: 1) } throws: { ($0 as? TransportError)?.code == .badURL }
        }
    }
}
