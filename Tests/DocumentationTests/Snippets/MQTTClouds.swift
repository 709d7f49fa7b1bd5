// The code of Sources/MQTT/MQTT.docc/Clouds.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT

/// What all ways to AWS IoT Core have in common.
func awsIoT(clientID: String) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: clientID)
    configuration.version = .v5_0
    configuration.keepAlive = .seconds(60)  // 30 to 1,200
    configuration.maximumInFlight = 100
    // A client that publishes faster loses its connection.
    configuration.maximumPublishesPerSecond = 100
    configuration.maximumPublishedBytesPerSecond = 512 << 10
    return configuration
}

/// AWS IoT Core with a certificate of the device: `mqtts://ENDPOINT:8883`, or `mqtts://ENDPOINT:443` with `isPort443`.
func awsIoT(certificate: String, key: String, isPort443: Bool = false) -> MQTTConfiguration {
    var configuration = awsIoT(clientID: "thermometer-1")
    configuration.tls.identity = TLSIdentity(certificates: .file(certificate), key: .file(key))
    if isPort443 { configuration.tls.applicationProtocols = ["x-amzn-mqtt-ca"] }
    return configuration
}

/// AWS IoT Core with a custom authoriser: `mqtts://ENDPOINT:443`.
func awsIoTWithAuthoriser(_ name: String, token: @escaping @Sendable () async throws -> String) -> MQTTConfiguration {
    var configuration = awsIoT(clientID: "thermometer-1")
    configuration.tls.applicationProtocols = ["mqtt"]
    // Called before each attempt, because tokens expire.
    configuration.credentialsProvider = { _ in
        Credentials(userName: "thermometer-1?x-amz-customauthorizer-name=\(name)", password: try await token())
    }
    return configuration
}

/// AWS IoT Core over WebSocket, with a URL that your code or the AWS SDK signs (SigV4): `wss://ENDPOINT/mqtt`.
func awsIoTOverWebSocket(sign: @escaping @Sendable () async throws -> String) -> MQTTConfiguration {
    var configuration = awsIoT(clientID: "browser-%%%%")
    configuration.credentialsProvider = { _ in
        var credentials = Credentials()
        credentials.url = try await sign()
        return credentials
    }
    return configuration
}

/// What both ways to Azure Event Grid have in common.
func azureEventGrid() -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "thermometer-1")
    configuration.version = .v5_0
    // With 5 requests a second, as many as the service allows, all 50 subscriptions come back at once.
    configuration.maximumFiltersPerRequest = 10
    configuration.maximumPublishesPerSecond = 1_000
    configuration.maximumPublishedBytesPerSecond = 1 << 20
    return configuration
}

/// A namespace of Azure Event Grid with a certificate: `mqtts://NAMESPACE.REGION-1.ts.eventgrid.azure.net`.
func azureEventGrid(certificate: String, key: String) -> MQTTConfiguration {
    var configuration = azureEventGrid()
    configuration.credentials = Credentials(userName: "thermometer-1")  // The client's authentication name
    configuration.tls.identity = TLSIdentity(certificates: .file(certificate), key: .file(key))
    return configuration
}

/// A namespace of Azure Event Grid with a token of Microsoft Entra ID.
func azureEventGrid(token: @escaping @Sendable () async throws -> String) -> MQTTConfiguration {
    var configuration = azureEventGrid()
    configuration.authentication = MQTTAuthentication(method: "OAUTH2-JWT") {
        Array(try await token().utf8)
    } respond: { _ in
        nil
    }
    return configuration
}

/// Sends a new token each time before the old one expires; without that the service ends the connection.
func renewToken(of client: MQTTClient, every interval: Duration) async throws {
    while true {
        try await Task.sleep(for: interval)
        // Without a connection there is nothing to renew: the next one begins with a new token.
        if client.state.isConnected { try? await client.reauthenticate() }
    }
}

/// HiveMQ Cloud: `mqtts://CLUSTER.hivemq.cloud`, or `wss://CLUSTER.hivemq.cloud:8884/mqtt`.
func hiveMQCloud(user: String, password: String) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "thermometer-1")
    configuration.version = .v5_0
    configuration.credentials = Credentials(userName: user, password: password)
    return configuration
}

/// EMQX: `mqtts://HOST`, or `wss://HOST:8084/mqtt`.
func emqx(user: String, password: String) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "thermometer-1")
    configuration.version = .v5_0
    configuration.credentials = Credentials(userName: user, password: password)
    // A cluster that is rebalanced refers clients to other nodes (0x9C, 0x9D), which get the same credentials.
    configuration.followsRedirects = true
    return configuration
}

/// CloudAMQP, which is RabbitMQ: `mqtts://HOST`.
func cloudAMQP(virtualHost: String, user: String, password: String) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "thermometer-1")
    configuration.credentials = Credentials(userName: "\(virtualHost):\(user)", password: password)
    return configuration
}

func staysWithinTheLimits(_ program: (MQTTClient) async throws -> Void) async throws -> Bool {
    let broker = try await LoopbackBroker.start(.awsIoT)
    var configuration = MQTTConfiguration(clientID: "thermometer-1")
    // What is beyond a limit ends the connection, and so all calls of the program.
    configuration.reconnect = .never
    let client = MQTTClient(try broker.mqttURL, configuration: configuration)
    try await client.connect()
    try await program(client)
    let stays = client.state.isConnected
    await client.disconnect()
    await broker.stop()
    return stays
}
