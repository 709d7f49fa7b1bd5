import ClientTestSupport
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Transport

@testable import MessagingShell

/// A loopback broker of a test's own, and clients that reach it through memory, whose wires can be damaged.
final class Bench: Sendable {
    let broker: LoopbackBroker
    /// The client's ends of all connections that each client opened, oldest first.
    private let wires = Lock<[[MemoryStream]]>([])
    private let clients = Lock<[ObjectIdentifier: Int]>([:])
    private let opensFail = Lock(false)

    init(_ change: (inout LoopbackBrokerOptions) -> Void = { _ in }) async throws {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .none
        options.stompPort = .none
        change(&options)
        broker = try await LoopbackBroker.judged(options)
    }

    /// A client that reconnects fast.
    func client(_ id: String = "test-%%%%", _ change: (inout MQTTConfiguration) -> Void = { _ in }) -> MQTTClient {
        let number = wires.withLock { wires in
            wires.append([])
            return wires.count - 1
        }
        var configuration = MQTTConfiguration(clientID: id)
        configuration.reconnect.initialDelay = .milliseconds(10)
        configuration.reconnect.maximumDelay = .milliseconds(50)
        configuration.allowSlowMachines()
        change(&configuration)
        let client = MQTTClient(
            ["mqtt://bench"], configuration: configuration, loop: .shared, override: override(number))
        clients.withLock { $0[ObjectIdentifier(client)] = number }
        return client
    }

    /// The same, connected.
    func connected(
        _ id: String = "test-%%%%", _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> MQTTClient {
        let client = client(id, change)
        try await client.connect()
        return client
    }

    /// Has a client with a kept session connected for which a message of QoS 2 waits that nobody has subscribed to yet: "job"
    /// on topic a.
    ///
    /// - Returns: its sender, which is connected.
    func jobWaits(for client: MQTTClient) async throws -> MQTTClient {
        let sender = try await connected()
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .exactlyOnce)
        await client.disconnect()
        withExtendedLifetime(first) {}
        // The session gets it.
        try await sender.publish("job", to: "a", qos: .exactlyOnce)
        try await client.connect()
        guard await eventually({ client.backlog.unmatchedMessages == 1 }) else { throw JobIsMissing() }
        return sender
    }

    private struct JobIsMissing: Error {}

    private func override(_ number: Int) -> StreamOpener.Override {
        { [self] () async throws(TransportError) in
            if opensFail.withLock({ $0 }) { throw TransportError(.connectionRefused, "no network on this bench") }
            let (near, far) = MemoryPair.make()
            wires.withLock { $0[number].append(near) }
            broker.attach(far, as: Service(.mqtt))
            return OpenedStream(stream: near)
        }
    }

    /// Whether new connections fail.
    func setNetwork(up: Bool) { opensFail.withLock { $0 = !up } }

    /// Cuts all connections now, as a failing network would.
    func cut() async { await broker.dropAllConnections() }

    /// Changes what goes wrong with what a client sends on the connection that it opened last.
    func damage(_ client: MQTTClient, _ change: (inout MemoryPair.Faults) -> Void) {
        let number = clients.withLock { $0[ObjectIdentifier(client)] ?? 0 }
        wires.withLock { $0[number].last }?.changeFaults(change)
    }

    /// The same for all clients.
    func damageAll(_ change: (inout MemoryPair.Faults) -> Void) {
        for wire in wires.withLock({ $0.compactMap(\.last) }) { wire.changeFaults(change) }
    }

    func stop() async { await broker.stop() }
}

extension MQTTConfiguration {
    /// Limits on real time that only what hangs exceeds: a busy machine may take longer than the defaults.
    mutating func allowSlowMachines() {
        connectTimeout = .patience
        requestTimeout = .patience
        acknowledgementTimeout = .patience
        pingTimeout = .patience
    }
}

extension MQTTSubscription {
    /// The next `count` messages.
    func first(_ count: Int) async throws -> [MQTTMessage] {
        try await withTimeout(.patience, "waiting for \(count) messages") { [self] in
            var messages: [MQTTMessage] = []
            for try await message in self {
                messages.append(message)
                if messages.count == count { break }
            }
            return messages
        }
    }
}
