public import MQTT
public import ServiceLifecycle

/// Keeps a client connected for as long as its group runs. It disconnects gracefully when the group shuts down.
public struct ClientService<Client: MessagingClient>: Service {
    private let client: Client

    /// Makes the service of an `MQTTClient` or a `STOMPClient`.
    public init(_ client: Client) { self.client = client }

    /// Returns when the group shuts down, once the client has disconnected.
    public func run() async throws {
        try await cancelWhenGracefulShutdown { try await client.run() }
    }
}
