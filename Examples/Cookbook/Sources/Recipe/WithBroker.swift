public import LoopbackBroker
public import MQTT

/// Calls `body` with the address of the broker that an option names, or else of one inside this process.
public func withBroker<Result>(
    _ options: Options, _ address: KeyPath<LoopbackBroker.URLs, String?> = \.mqtt, option: String = "--broker",
    isolation: isolated (any Actor)? = #isolation, _ body: (String) async throws -> Result
) async throws -> Result {
    if let broker = options[option] { return try await body(broker) }
    let broker = try await LoopbackBroker.start()
    do {
        let result = try await body(broker.urls[keyPath: address] ?? "")
        await broker.stop()
        return result
    } catch {
        await broker.stop()
        throw error
    }
}

/// Where a client is connected, or tries to be. The URL in the arguments may contain a password, which this leaves out.
public func address(of client: some MessagingClient) -> String { client.server.map { "\($0)" } ?? "no broker" }
