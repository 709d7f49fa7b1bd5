// The code of Sources/MessagingShell/MessagingShell.docc/Connecting.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import STOMP

func makeSecureClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.tls.trust = .authorities([.file("/etc/meter/authority.pem")])
    configuration.tls.identity = TLSIdentity(
        certificates: .file("/etc/meter/client.pem"), key: .file("/etc/meter/client.key"))
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeDevelopmentClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.tls.trust = .authorities([.file("server.pem")])
    return MQTTClient("mqtts://localhost", configuration: configuration)
}

func makeWebSocketClient(token: String) -> STOMPClient {
    var configuration = STOMPConfiguration()
    configuration.webSocket.headers = [("Authorization", "Bearer \(token)")]
    return STOMPClient("wss://shop.example.com/ws", configuration: configuration)
}

func makeTokenClient(_ fetchToken: @escaping @Sendable (_ isFresh: Bool) async throws -> String) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.credentialsProvider = { request in
        Credentials(userName: "meter-1", password: try await fetchToken(request.wereRefused))
    }
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeGatewayClient(_ fetchToken: @escaping @Sendable () async throws -> String) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "browser-1")
    configuration.credentialsProvider = { _ in
        var credentials = Credentials()
        credentials.webSocketHeaders["Authorization"] = "Bearer \(try await fetchToken())"
        credentials.webSocketHeaders["Cookie"] = "session=7"
        credentials.query = "token=\(try await fetchToken())"
        return credentials
    }
    return MQTTClient("wss://gateway.example.com/mqtt", configuration: configuration)
}

func makeProxiedClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.proxy = .http("http://user:secret@proxy.example.com:3128")
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeMeterClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.network.interface = "wwan0"
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}
