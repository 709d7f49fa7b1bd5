import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Transport

/// A broker and its clients on one thread, where no time passes, and the processor time that an operation of them takes there.
final class GrowthBench: Sendable {
    let clock: ManualClock
    let broker: LoopbackBroker

    private init(_ options: LoopbackBrokerOptions) async throws {
        clock = try ManualClock()
        // Without a judge, whose work would be measured as well.
        broker = try await LoopbackBroker.start(options, clock: clock)  // not judged
    }

    /// Options under which nothing is dropped or refused for its number.
    static var roomy: LoopbackBrokerOptions {
        var options = LoopbackBrokerOptions()
        options.limits.maximumInFlight = 65_535
        options.limits.maximumPrefetch = 1_000_000
        options.limits.maximumQueueMessages = 1_000_000
        options.limits.maximumQueueBytes = 1 << 30
        options.limits.maximumSessionMessages = 1_000_000
        options.limits.maximumSessionBytes = 1 << 30
        options.limits.maximumRetainedMessages = 1_000_000
        options.limits.maximumSessions = 1_000_000
        options.limits.maximumOutboxBytes = 1 << 30
        return options
    }

    /// Runs `body` with a broker of its own on the thread of its clock.
    static func run(
        _ options: LoopbackBrokerOptions = roomy, _ body: @Sendable (GrowthBench) async throws -> Duration
    ) async throws -> Duration {
        let bench = try await GrowthBench(options)
        let time = try await withTaskExecutorPreference(bench.clock.loop) { try await body(bench) }
        await bench.broker.stop()
        return time
    }

    func mqtt(
        _ clientID: String = "", _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: clientID)
        configuration.version = .v5_0
        configuration.maximumQueuedMessages = 1_000_000
        configuration.maximumQueuedBytes = 1 << 30
        configuration.keepAlive = .zero
        change(&configuration)
        return MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
    }

    func connectedMQTT(
        _ clientID: String = "", _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> MQTTClient {
        let client = try await mqtt(clientID, change)
        try await client.connect()
        return client
    }

    func stomp(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        var configuration = STOMPConfiguration()
        change(&configuration)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        return client
    }

    /// The processor time of `body` on the thread of the clock, on which everything runs.
    func measure(_ body: () async throws -> Void) async rethrows -> Duration {
        let start = await clock.loop.result { ThreadTime.now }
        try await body()
        return await clock.loop.result { ThreadTime.now } - start
    }

    /// Returns when nothing is left to do.
    func settle() async { await clock.waitUntilQuiet() }
}
