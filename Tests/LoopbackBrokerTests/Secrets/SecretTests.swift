import LoopbackBroker
import MQTT
import MQTTCore
import MessagingShell
import STOMP
import TestSupport
import Testing
import Transport

@testable import STOMPCore

/// A value that holds the secret, and what it is.
private struct Holder: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let value: any Sendable

    init(_ name: String, _ value: any Sendable) {
        (testDescription, self.value) = (name, value)
    }
}

private let secret = "hush-5ecret"

@Suite struct SecretTests {
    @Test func `the search itself finds text and bytes, in values and behind references`() {
        final class Reference {
            let text = secret
        }
        #expect(SecretSearch.leaks(of: secret, in: [1: secret]).count == 4)
        #expect(SecretSearch.leaks(of: secret, in: Array(secret.utf8)).count == 4)
        #expect(SecretSearch.leaks(of: secret, in: (1, Optional(Reference()))) == ["Mirror", "dump()"])
        #expect(SecretSearch.leaks(of: secret, in: "hush").isEmpty)
    }

    @Test(arguments: holders()) private func `nothing that prints a value shows the secret in it`(holder: Holder) {
        #expect(SecretSearch.leaks(of: secret, in: holder.value) == [])
    }

    @Test(arguments: ["mqtt", "mqtts", "stomp", "ws", "wss"], [("#", "%23"), ("/", "%2F"), ("?", "%3F")])
    func `a password that is not percent-encoded is not shown, whatever ends it`(
        scheme: String, sign: (String, String)
    ) {
        let (character, code) = sign
        for user in ["me:\(secret)\(character)x", "me:x\(character)\(secret)"] {
            #expect {
                _ = try BrokerURL("\(scheme)://\(user)@host:1883")
            } throws: { error in
                !"\(error)".contains(secret) && "\(error)".contains("must be written as \(code)")
            }
        }
    }

    /// Without the rule the user name would be the host, and the beginning of the password its port.
    @Test(arguments: ["mqtt://me:1883#x@host", "mqtt://me:1883/x@host", "mqtt://me:1883?x@host", "ws://me:80#x@host"])
    func `a password that begins like a port is no port`(url: String) {
        #expect(throws: TransportError.self) { try BrokerURL(url) }
    }

    @Test(arguments: ["ws://host/a@b", "wss://host:80/a@b?c@d", "wss://me:x@host/a@b", "mqtt://me:x@y@host#there"])
    func `an at sign that belongs to a path is accepted`(url: String) throws {
        #expect(try BrokerURL(url).host == "host")
    }

    private static func holders() -> [Holder] {
        var credentials = Credentials(userName: secret, password: secret)
        credentials.url = "wss://host/?\(secret)"
        credentials.query = secret
        credentials.webSocketHeaders = ["Authorization": secret]
        let identity = TLSIdentity(certificates: .file("a"), key: .text(secret), passphrase: secret)
        var webSocket = WebSocketOptions()
        webSocket.headers = [("Authorization", "Bearer \(secret)"), ("Cookie", secret)]
        var tls = TLSOptions()
        tls.identity = identity
        let urls = [
            "mqtt://me:\(secret)@host", "ws://me:\(secret)@host/path?access_token=\(secret)", "wss://host?\(secret)",
            "ws://host/path?a=b&t=\(secret)@x&\(secret)=",
        ]
        var holders = [
            Holder("Credentials", credentials), Holder("PEMSource", PEMSource.text(secret)),
            Holder("TLSIdentity", identity), Holder("TLSOptions", tls),
            Holder("TLSServerOptions", TLSServerOptions(identity: identity)), Holder("WebSocketOptions", webSocket),
            Holder("Proxy, HTTP", Proxy.http("http://me:\(secret)@proxy")),
            Holder("Proxy, SOCKS5", Proxy.socks5("socks5://me:\(secret)@proxy")),
            Holder("User", LoopbackBrokerOptions.User(name: "me", password: secret)),
        ]
        for url in urls.prefix(3) {
            do { holders.append(Holder("BrokerURL of \(url)", try BrokerURL(url))) } catch { Issue.record(error) }
        }
        for url in urls {
            // Without a scheme that there is, so that the message quotes it.
            do { _ = try BrokerURL("x" + url) } catch { holders.append(Holder("error about x\(url)", error)) }
        }
        return holders + mqttHolders(credentials, tls, webSocket, urls)
            + stompHolders(credentials, tls, webSocket, urls)
    }

    private static func mqttHolders(
        _ credentials: Credentials, _ tls: TLSOptions, _ webSocket: WebSocketOptions, _ urls: [String]
    ) -> [Holder] {
        let data: MQTTProperties = [MQTTProperty(.authenticationData, .binary(Array(secret.utf8)))]
        var configuration = MQTTConfiguration()
        configuration.credentials = credentials
        configuration.proxy = .http("http://me:\(secret)@proxy")
        (configuration.tls, configuration.webSocket) = (tls, webSocket)
        var engine = MQTTEngineConfiguration()
        (engine.userName, engine.password, engine.authenticationData) = (secret, Array(secret.utf8), Array(secret.utf8))
        let connect = MQTTPacket.Connect(
            clientID: "c", userName: secret, password: Array(secret.utf8), properties: data)
        return [
            Holder("MQTTConfiguration", configuration), Holder("MQTTEngineConfiguration", engine),
            Holder("MQTTPacket.Connect", connect), Holder("MQTTPacket", MQTTPacket.connect(connect)),
            Holder("MQTTProperties", data),
            Holder("MQTTClient", MQTTClient(Array(urls.prefix(3)), configuration: configuration)),
        ]
    }

    private static func stompHolders(
        _ credentials: Credentials, _ tls: TLSOptions, _ webSocket: WebSocketOptions, _ urls: [String]
    ) -> [Holder] {
        let headers: STOMPHeaders = [
            "Authorization": "Bearer \(secret)", "x-auth-token": secret, "login": secret, "passcode": secret,
            "Api-Key": secret, "client_secret": secret, "Cookie": secret,
        ]
        var configuration = STOMPConfiguration()
        configuration.credentials = credentials
        configuration.proxy = .socks5("socks5://me:\(secret)@proxy")
        configuration.connectHeaders = headers
        (configuration.tls, configuration.webSocket) = (tls, webSocket)
        var options = STOMPConnectOptions()
        (options.login, options.passcode, options.headers) = (secret, secret, headers)
        let request = STOMPConnectRequest(
            version: .v12, login: secret, passcode: secret, heartBeat: .none, headers: headers)
        return [
            Holder("STOMPConfiguration", configuration), Holder("STOMPHeaders", headers),
            Holder("STOMPHeaders.Field", headers.fields[0]), Holder("STOMPConnectOptions", options),
            Holder("STOMPFrame", STOMPFrame(.connect, headers: headers)), Holder("STOMPConnectRequest", request),
            Holder(
                "STOMPClient",
                STOMPClient(Array(urls.filter { $0.hasPrefix("w") }.prefix(2)), configuration: configuration)),
        ]
    }
}
