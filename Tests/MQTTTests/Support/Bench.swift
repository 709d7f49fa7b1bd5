import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Transport

@testable import Messaging

/// A loopback broker of a test's own, and clients that reach it through memory, whose wires can be damaged.
final class Bench: Sendable {
    let broker: LoopbackBroker
    /// The client's ends of all connections that were opened, oldest first.
    private let wires = Mutex<[MemoryStream]>([])
    private let opensFail = Mutex(false)

    init(_ change: (inout LoopbackBrokerOptions) -> Void = { _ in }) async throws {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .none
        options.stompPort = .none
        change(&options)
        broker = try await LoopbackBroker.start(options)
    }

    /// A client that reconnects fast.
    func client(_ id: String = "test-%%%%", _ change: (inout MQTTConfiguration) -> Void = { _ in }) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: id)
        configuration.reconnect.initialDelay = .milliseconds(10)
        configuration.reconnect.maximumDelay = .milliseconds(50)
        change(&configuration)
        return MQTTClient("mqtt://bench", configuration: configuration, loop: .shared, override: override)
    }

    /// The same, connected.
    func connected(
        _ id: String = "test-%%%%", _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> MQTTClient {
        let client = client(id, change)
        try await client.connect()
        return client
    }

    private var override: StreamOpener.Override {
        { [self] () async throws(TransportError) in
            if opensFail.withLock({ $0 }) { throw TransportError(.connectionRefused, "no network on this bench") }
            let (near, far) = MemoryPair.make()
            wires.withLock { $0.append(near) }
            broker.attach(far, as: Service(.mqtt))
            return OpenedStream(stream: near)
        }
    }

    /// Whether new connections fail.
    func setNetwork(up: Bool) { opensFail.withLock { $0 = !up } }

    /// Cuts all connections now, as a failing network would.
    func cut() async { await broker.dropAllConnections() }

    /// The connection opened last.
    var wire: MemoryStream? { wires.withLock { $0.last } }

    func stop() async { await broker.stop() }
}

extension MQTTSubscription {
    /// The next `count` messages.
    func first(_ count: Int) async throws -> [MQTTMessage] {
        try await withTimeout(.seconds(20), "waiting for \(count) messages") { [self] in
            var messages: [MQTTMessage] = []
            for try await message in self {
                messages.append(message)
                if messages.count == count { break }
            }
            return messages
        }
    }
}
